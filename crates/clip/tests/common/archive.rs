//! Builds archives, including hostile ones.
#![allow(dead_code, reason = "each test file uses its part")]

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

/// An entry of an archive.
pub enum Item<'a> {
    File(&'a str, &'a str),
    Link(&'a str, &'a str),
    Other(&'a str, EntryType),
}

/// Builds an archive with these entries, whatever their names.
pub fn archive(items: &[Item<'_>]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for item in items {
        let mut header = Header::new_ustar();
        header.set_mode(0o755);
        let (name, content, kind) = match item {
            Item::File(name, content) => (name, *content, EntryType::Regular),
            Item::Link(name, to) => {
                header.set_link_name_literal(to).unwrap();
                (name, "", EntryType::Symlink)
            }
            Item::Other(name, kind) => {
                header.set_link_name_literal("clip.json").unwrap();
                (name, "", *kind)
            }
        };
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.append(&header, content.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}
