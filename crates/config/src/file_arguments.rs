//! `@file` on the command line: text goes into the first message, images go beside it.
//!
//! Images are only recognised here. The caller passes in the functions that encode images and that
//! resolve paths.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use pinion_message::{Block, image_type};

use crate::{ConfigError, text_file};

/// Bytes; more than any model reads in one message.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// An image as it is on disk.
#[derive(Debug)]
pub struct FileImage {
    pub bytes: Vec<u8>,
    /// According to the first bytes.
    pub mime_type: &'static str,
}

/// An image in the form for a model.
#[derive(Debug)]
pub struct PreparedImage {
    /// The image block; `None` if it cannot be shown.
    pub block: Option<Block>,
    /// A note for the model, such as that the image was scaled.
    pub note: Option<String>,
}

/// The content of the files on a command line.
#[derive(Debug, Default, PartialEq)]
pub struct FileArguments {
    /// Comes before the first message; empty if there is no file.
    pub text: String,
    /// The image blocks in order.
    pub images: Vec<Block>,
}

impl FileArguments {
    /// Reads the files in order; `arguments` come with or without their `@`. Empty files are left
    /// out, a missing one is an error.
    pub fn read(
        arguments: &[String],
        resolve: &dyn Fn(&str) -> PathBuf,
        prepare: &mut dyn FnMut(FileImage) -> PreparedImage,
    ) -> Result<Self, ConfigError> {
        let mut read = Self::default();
        for argument in arguments {
            let path = resolve(argument.strip_prefix('@').unwrap_or(argument));
            let bytes = read_file(&path)?;
            if bytes.is_empty() {
                continue;
            }
            read.add(&path, bytes, prepare);
        }
        Ok(read)
    }

    fn add(
        &mut self,
        path: &Path,
        bytes: Vec<u8>,
        prepare: &mut dyn FnMut(FileImage) -> PreparedImage,
    ) {
        let name = path.display();
        match image_type(&bytes) {
            Some(mime_type) => {
                let image = prepare(FileImage { bytes, mime_type });
                let note = image.note.unwrap_or_default();
                let _ = writeln!(self.text, "<file name=\"{name}\">{note}</file>");
                self.images.extend(image.block);
            }
            None => {
                let content = text_file::text_from(bytes);
                let _ = write!(self.text, "<file name=\"{name}\">\n{content}\n</file>\n");
            }
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, ConfigError> {
    pinion_files::read_named(path, MAX_FILE_BYTES).map_err(|error| {
        let path = path.to_owned();
        if text_file::is_absent(&error) {
            ConfigError::FileNotFound { path }
        } else {
            ConfigError::Unreadable {
                path,
                message: error.to_string(),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(directory: &Path, arguments: &[&str]) -> Result<FileArguments, ConfigError> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        FileArguments::read(&arguments, &|text| directory.join(text), &mut |image| {
            PreparedImage {
                block: Some(Block::Image {
                    data: image.bytes.len().to_string(),
                    mime_type: image.mime_type.to_owned(),
                }),
                note: (image.mime_type == "image/gif").then(|| "[scaled]".to_owned()),
            }
        })
    }

    #[test]
    fn texts_and_images_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        fs::write(at("a.txt"), "one\ntwo\n").unwrap();
        fs::write(at("empty"), "").unwrap();
        fs::write(at("b.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
        fs::write(at("c"), b"GIF89a").unwrap();
        fs::write(at("bad"), b"\xFFx").unwrap();
        let read = read(dir.path(), &["@a.txt", "empty", "b.png", "c", "bad"]).unwrap();
        let expected = format!(
            "<file name=\"{}\">\none\ntwo\n\n</file>\n<file name=\"{}\"></file>\n\
             <file name=\"{}\">[scaled]</file>\n<file name=\"{}\">\n\u{FFFD}x\n</file>\n",
            at("a.txt"),
            at("b.png"),
            at("c"),
            at("bad")
        );
        assert_eq!(read.text, expected);
        let image = |data: &str, kind: &str| Block::Image {
            data: data.into(),
            mime_type: kind.into(),
        };
        assert_eq!(
            read.images,
            [image("12", "image/png"), image("6", "image/gif")]
        );
    }

    #[test]
    fn a_missing_file_and_a_directory_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let missing = read(dir.path(), &["none"]).unwrap_err();
        assert_eq!(missing.code(), "file_not_found");
        let path = dir.path().join("none");
        assert_eq!(
            missing.to_string(),
            format!("File not found: {}", path.display())
        );
        assert_eq!(
            read(dir.path(), &["."]).unwrap_err().code(),
            "unreadable_file"
        );
    }

    #[test]
    fn images_are_known_by_their_first_bytes() {
        for (bytes, expected) in [
            (&b"\xFF\xD8\xFF\xE0"[..], Some("image/jpeg")),
            (b"GIF87a..", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"RIFF", None),
            (b"\x89PNG", None),
            (b"", None),
        ] {
            assert_eq!(image_type(bytes), expected, "{bytes:?}");
        }
    }
}
