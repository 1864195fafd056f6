//! From an import name and the file that says it to the file or built-in module meant.

use std::path::{Component, Path, PathBuf};

use super::builtins::{self, Builtin};
pub(crate) use super::packages::Wanted;
use super::packages::{Exported, Package};

/// Endings tried when a name has none, in this order.
const ENDINGS: &[&str] = &["ts", "tsx", "mts", "js", "mjs", "cjs", "jsx", "cts", "json"];

/// One import to resolve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// What is imported.
    pub(crate) name: &'a str,
    /// The file that imports it.
    pub(crate) from: &'a Path,
    /// How.
    pub(crate) wanted: Wanted,
}

/// What an import means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// An embedded module, by place.
    Builtin(&'static str),
    /// A file, and the query its name carried.
    File(PathBuf, String),
}

/// Why an import means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotFound {
    /// What to say.
    pub(crate) message: String,
}

/// The name an embedded module means by `name`; `None` when it means a file.
pub(crate) fn internal(base: &str, name: &str) -> Option<String> {
    if name.starts_with("pinion:") {
        return Some(name.to_owned());
    }
    if name.starts_with('.') {
        let place = base.strip_prefix("pinion:")?;
        let joined = tidy(&Path::new("/").join(place).join("..").join(name));
        let joined = joined.to_string_lossy();
        return Some(format!(
            "pinion:{}",
            joined.trim_start_matches('/').trim_end_matches(".js")
        ));
    }
    match builtins::find(name)? {
        Builtin::Here(place) => Some(format!("pinion:{place}")),
        Builtin::Missing => None,
    }
}

/// What `request` means.
pub(crate) fn resolve(request: Request<'_>) -> Result<Target, NotFound> {
    let Request { name, from, wanted } = request;
    match builtins::find(name) {
        Some(Builtin::Here(place)) => return Ok(Target::Builtin(place)),
        Some(Builtin::Missing) => {
            let bare = name.strip_prefix("node:").unwrap_or(name);
            // A package may carry the name of one of Node's modules (`punycode/`, `test`).
            let file = if name == bare {
                in_node_modules(name, from, wanted)
            } else {
                None
            };
            return file
                .map(|file| Target::File(file, String::new()))
                .ok_or_else(|| NotFound {
                    message: format!(
                        "Cannot find module '{name}'\nNode's module '{bare}' is not available to \
                     extensions here\nRequire stack:\n- {}",
                        from.display()
                    ),
                });
        }
        None => {}
    }
    let directory = from.parent().unwrap_or(Path::new("/"));
    let is_path = name.starts_with('/')
        || matches!(name, "." | "..")
        || name.starts_with("./")
        || name.starts_with("../")
        || name.starts_with("file:");
    let found = if is_path {
        by_path(name, directory)
    } else {
        by_package(name, from, wanted).map(|file| (file, String::new()))
    };
    let (file, query) = found.ok_or_else(|| NotFound {
        message: format!(
            "Cannot find module '{name}'\nRequire stack:\n- {}",
            from.display()
        ),
    })?;
    Ok(Target::File(file.canonicalize().unwrap_or(file), query))
}

fn by_path(name: &str, directory: &Path) -> Option<(PathBuf, String)> {
    let place = |path: &str| match path.strip_prefix("file:") {
        Some(_) => url::Url::parse(path).ok()?.to_file_path().ok(),
        None => Some(tidy(&directory.join(path))),
    };
    if let Some(file) = place(name).and_then(|path| file_or_directory(&path)) {
        return Some((file, String::new()));
    }
    let (path, query) = name.split_at(name.find(['?', '#'])?);
    Some((
        place(path).and_then(|path| file_or_directory(&path))?,
        query.to_owned(),
    ))
}

fn by_package(name: &str, from: &Path, wanted: Wanted) -> Option<PathBuf> {
    if name.starts_with('#') {
        let package = Package::around(from)?;
        let target = package.imported(name, wanted)?;
        return if target.starts_with("./") {
            file_or_directory(&package.directory.join(target))
        } else {
            in_node_modules(&target, from, wanted)
        };
    }
    in_node_modules(name, from, wanted).or_else(|| itself(name, from, wanted))
}

/// A package may import itself by its own name.
fn itself(name: &str, from: &Path, wanted: Wanted) -> Option<PathBuf> {
    let package = Package::around(from)?;
    let (own, subpath) = split(name)?;
    if package.name() != Some(own) {
        return None;
    }
    match package.exported(&subpath, wanted) {
        Exported::File(file) => file_or_directory(&file),
        Exported::Open | Exported::Refused => None,
    }
}

fn in_node_modules(name: &str, from: &Path, wanted: Wanted) -> Option<PathBuf> {
    let (package_name, subpath) = split(name)?;
    for directory in from.ancestors().skip(1) {
        if directory
            .file_name()
            .is_some_and(|name| name == "node_modules")
        {
            continue;
        }
        let place = directory.join("node_modules").join(package_name);
        if !place.is_dir() {
            if subpath == "." {
                // A single file may lie there too.
                if let Some(file) = with_ending(&place) {
                    return Some(file);
                }
            }
            continue;
        }
        let found = match Package::read(&place) {
            Some(package) => match package.exported(&subpath, wanted) {
                Exported::File(file) => file_or_directory(&file),
                Exported::Refused => None,
                Exported::Open if subpath == "." => package
                    .entries()
                    .find_map(|entry| file_or_directory(&entry))
                    .or_else(|| index_of(&place)),
                Exported::Open => file_or_directory(&place.join(&subpath[2..])),
            },
            None if subpath == "." => index_of(&place),
            None => file_or_directory(&place.join(&subpath[2..])),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// `@scope/name/a/b` is the package `@scope/name` and its subpath `./a/b`.
fn split(name: &str) -> Option<(&str, String)> {
    let parts = if name.starts_with('@') { 2 } else { 1 };
    let end = name
        .match_indices('/')
        .nth(parts - 1)
        .map_or(name.len(), |(at, _)| at);
    let package = &name[..end];
    let valid = !package.is_empty()
        && !package.starts_with(['.', '\\'])
        && !package.contains(['%', ':'])
        && (parts == 1 || package.contains('/'));
    let rest = name[end..].trim_end_matches('/');
    valid.then(|| (package, format!(".{rest}")))
}

fn file_or_directory(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    written_for_another(path)
        .or_else(|| with_ending(path))
        .or_else(|| {
            if !path.is_dir() {
                return None;
            }
            Package::read(path)
                .and_then(|package| {
                    package.entries().find_map(|entry| {
                        if entry.is_file() {
                            Some(entry)
                        } else {
                            with_ending(&entry).or_else(|| index_of(&entry))
                        }
                    })
                })
                .or_else(|| index_of(path))
        })
}

/// TypeScript names the file it will become: `./x.js` may be `x.ts`.
fn written_for_another(path: &Path) -> Option<PathBuf> {
    let endings: &[&str] = match path.extension()?.to_str()? {
        "js" => &["ts", "tsx", "jsx"],
        "jsx" => &["tsx"],
        "mjs" => &["mts"],
        "cjs" => &["cts"],
        _ => return None,
    };
    endings
        .iter()
        .map(|ending| path.with_extension(ending))
        .find(|path| path.is_file())
}

fn with_ending(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    ENDINGS
        .iter()
        .map(|ending| {
            let mut name = name.to_owned();
            name.push(".");
            name.push(ending);
            path.with_file_name(name)
        })
        .find(|path| path.is_file())
}

fn index_of(directory: &Path) -> Option<PathBuf> {
    with_ending(&directory.join("index"))
}

/// `path` without `.` and `..`, as names tell it.
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                tidied.pop();
            }
            part => tidied.push(part),
        }
    }
    tidied
}
