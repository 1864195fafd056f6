//! Scales down the images of a prompt, with a note in its text, before the engine receives the command.

use pinion_agent::{Command, prepare_encoded_image};
use pinion_message::Block;

/// Returns the command with images that models accept. Blocks while it decodes them.
pub(crate) fn with_fitting_images(mut command: Command) -> Command {
    let (text, images) = match &mut command {
        Command::Prompt(prompt) => (&mut prompt.text, &mut prompt.images),
        Command::Queue { text, images, .. } => (text, images),
        _ => return command,
    };
    for block in images {
        if let Block::Image { data, .. } = block
            && let Some((fitting, note)) = prepare_encoded_image(data)
        {
            *block = fitting;
            text.push('\n');
            text.push_str(&note);
        }
    }
    command
}

/// Reports whether a command has images.
pub(crate) fn has_images(command: &Command) -> bool {
    match command {
        Command::Prompt(prompt) => !prompt.images.is_empty(),
        Command::Queue { images, .. } => !images.is_empty(),
        _ => false,
    }
}
