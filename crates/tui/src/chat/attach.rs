//! Attaches images that a text names with `@`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use pinion_message::{Block, image_type};

/// Bytes of the largest image that is sent, and the most images per message.
const MAX_IMAGE_BYTES: u64 = 10 << 20;
const MAX_IMAGES: usize = 20;

/// The images among these files.
pub(super) fn images(files: &[PathBuf]) -> Vec<Block> {
    let images = files.iter().filter_map(|file| picture(file));
    images.take(MAX_IMAGES).collect()
}

fn picture(file: &Path) -> Option<Block> {
    let mut head = [0; 16];
    let read = pinion_files::open(file).ok()?.read(&mut head).ok()?;
    let mime_type = image_type(&head[..read])?;
    let bytes = pinion_files::read(file, MAX_IMAGE_BYTES).ok()?;
    Some(Block::Image {
        data: base64::engine::general_purpose::STANDARD.encode(bytes),
        mime_type: mime_type.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_fifo_is_not_a_picture_and_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo.png");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let picture = dir.path().join("picture.png");
        std::fs::write(&picture, b"\x89PNG\r\n\x1a\nrest").unwrap();
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || send.send(images(&[fifo, picture])));
        let blocks = receive.recv_timeout(Duration::from_secs(5)).unwrap();
        let encoded = base64::engine::general_purpose::STANDARD.encode(b"\x89PNG\r\n\x1a\nrest");
        assert!(
            matches!(&blocks[..], [Block::Image { data, mime_type }] if *data == encoded && mime_type == "image/png"),
            "{blocks:?}"
        );
    }
}
