//! The images of `--images`.

use std::path::Path;

use pinion_message::Block;

use crate::{RunError, stderr};

/// The largest image that pinion reads, in bytes.
const IMAGE_LIMIT: u64 = 64 << 20;

/// Reads local images and prepares them for a model.
pub(crate) fn images(paths: &[String], cwd: &Path) -> Result<Vec<Block>, RunError> {
    let mut images = Vec::new();
    for path in paths {
        let file = cwd.join(path);
        let failed =
            |reason: &dyn std::fmt::Display| RunError::Failed(format!("--images {path}: {reason}"));
        let bytes = pinion_files::read_named(&file, IMAGE_LIMIT).map_err(|error| failed(&error))?;
        let (block, note) = pinion_tools::prepare_image(bytes)
            .map_err(|reason| failed(&format!("the picture {reason}")))?;
        if let Some(note) = note {
            stderr::print(format_args!("{path}: {note}"));
        }
        images.push(block);
    }
    Ok(images)
}
