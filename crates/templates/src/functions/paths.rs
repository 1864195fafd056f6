//! Functions on file names. They use the text only and never access a disk.

use super::{Function, exactly, text_value};

pub(super) const TABLE: &[Function] = &[
    exactly("base", 1, |_, args| text_value(base(args.text(0)?))),
    exactly("dir", 1, |_, args| text_value(dir(args.text(0)?))),
    exactly("clean", 1, |_, args| text_value(clean(args.text(0)?))),
    exactly("ext", 1, |_, args| text_value(ext(args.text(0)?))),
    exactly("isAbs", 1, |_, args| {
        Ok(args.text(0)?.starts_with('/').into())
    }),
    exactly("osBase", 1, |_, args| text_value(base(args.text(0)?))),
    exactly("osDir", 1, |_, args| text_value(dir(args.text(0)?))),
    exactly("osClean", 1, |_, args| text_value(clean(args.text(0)?))),
    exactly("osExt", 1, |_, args| text_value(ext(args.text(0)?))),
    exactly("osIsAbs", 1, |_, args| {
        Ok(args.text(0)?.starts_with('/').into())
    }),
];

fn base(path: &str) -> &str {
    if path.is_empty() {
        return ".";
    }
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return "/";
    }
    trimmed.rsplit('/').next().unwrap_or(trimmed)
}

fn dir(path: &str) -> String {
    let end = path.rfind('/').map_or(0, |at| at + 1);
    clean(&path[..end])
}

fn ext(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rfind('.').map_or("", |at| &name[at..])
}

/// Returns the shortest path to the same file.
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&"..") | None if !rooted => parts.push(".."),
                None => {}
                _ => {
                    parts.pop();
                }
            },
            name => parts.push(name),
        }
    }
    let joined = parts.join("/");
    match (rooted, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}
