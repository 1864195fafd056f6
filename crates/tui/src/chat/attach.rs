//! Pictures that a text names with `@` go along with it.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use pinion_message::{Block, image_type};

/// The largest picture that is sent, and the most of them.
const LARGEST: u64 = 10 << 20;
const MOST: usize = 20;

/// The pictures among these files.
pub(super) fn images(files: &[PathBuf]) -> Vec<Block> {
    let images = files.iter().filter_map(|file| picture(file));
    images.take(MOST).collect()
}

fn picture(file: &Path) -> Option<Block> {
    if file.metadata().ok()?.len() > LARGEST {
        return None;
    }
    let mut head = [0; 16];
    let mut open = std::fs::File::open(file).ok()?;
    let read = std::io::Read::read(&mut open, &mut head).ok()?;
    let mime_type = image_type(&head[..read])?;
    let bytes = std::fs::read(file).ok()?;
    Some(Block::Image {
        data: base64::engine::general_purpose::STANDARD.encode(bytes),
        mime_type: mime_type.to_owned(),
    })
}
