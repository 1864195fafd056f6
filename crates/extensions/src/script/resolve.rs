//! Resolves an import name to a file or a built-in module.

use std::path::{Component, Path, PathBuf};

use super::builtins::{self, Builtin};
pub(crate) use super::packages::ImportKind;
use super::packages::{Exported, Package};

/// Extensions tried for a name without one, in this order.
const ENDINGS: &[&str] = &["ts", "tsx", "mts", "js", "mjs", "cjs", "jsx", "cts", "json"];

/// One import to resolve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The name that is imported.
    pub(crate) name: &'a str,
    /// The file that imports it.
    pub(crate) from: &'a Path,
    pub(crate) wanted: ImportKind,
}

/// The result of resolving an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// An embedded module, by its path.
    Builtin(&'static str),
    /// A file, and the query of its name.
    File(PathBuf, String),
}

/// An import that cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotFound {
    /// The reason, for people.
    pub(crate) message: String,
}

/// Resolves `name` for an embedded module; `None` if it is a file.
pub(crate) fn internal(base: &str, name: &str) -> Option<String> {
    if name.starts_with("pinion:") {
        return Some(name.to_owned());
    }
    if name.starts_with('.') {
        let path = base.strip_prefix("pinion:")?;
        let joined = normalize(&Path::new("/").join(path).join("..").join(name));
        let joined = joined.to_string_lossy();
        return Some(format!(
            "pinion:{}",
            joined.trim_start_matches('/').trim_end_matches(".js")
        ));
    }
    match builtins::find(name)? {
        Builtin::Here(path) => Some(format!("pinion:{path}")),
        Builtin::Missing => None,
    }
}

/// Resolves `request`.
pub(crate) fn resolve(request: Request<'_>) -> Result<Target, NotFound> {
    let Request { name, from, wanted } = request;
    match builtins::find(name) {
        Some(Builtin::Here(path)) => return Ok(Target::Builtin(path)),
        Some(Builtin::Missing) => {
            let bare = name.strip_prefix("node:").unwrap_or(name);
            // A package may have the name of one of Node's modules (`punycode/`, `test`).
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
    let to_path = |path: &str| match path.strip_prefix("file:") {
        Some(_) => url::Url::parse(path).ok()?.to_file_path().ok(),
        None => Some(normalize(&directory.join(path))),
    };
    if let Some(file) = to_path(name).and_then(|path| file_or_directory(&path)) {
        return Some((file, String::new()));
    }
    let (path, query) = name.split_at(name.find(['?', '#'])?);
    Some((
        to_path(path).and_then(|path| file_or_directory(&path))?,
        query.to_owned(),
    ))
}

fn by_package(name: &str, from: &Path, wanted: ImportKind) -> Option<PathBuf> {
    if name.starts_with('#') {
        let package = Package::around(from)?;
        let target = package.imported(name, wanted)?;
        return if target.starts_with("./") {
            file_or_directory(&package.directory.join(target))
        } else {
            in_node_modules(&target, from, wanted)
        };
    }
    in_node_modules(name, from, wanted).or_else(|| own_package(name, from, wanted))
}

/// Resolves a package's import of itself by its own name.
fn own_package(name: &str, from: &Path, wanted: ImportKind) -> Option<PathBuf> {
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

fn in_node_modules(name: &str, from: &Path, wanted: ImportKind) -> Option<PathBuf> {
    let (package_name, subpath) = split(name)?;
    for directory in from.ancestors().skip(1) {
        if directory
            .file_name()
            .is_some_and(|name| name == "node_modules")
        {
            continue;
        }
        let package_directory = directory.join("node_modules").join(package_name);
        if !package_directory.is_dir() {
            if subpath == "." {
                // `node_modules` may also contain single files.
                if let Some(file) = with_ending(&package_directory) {
                    return Some(file);
                }
            }
            continue;
        }
        let found = match Package::read(&package_directory) {
            Some(package) => match package.exported(&subpath, wanted) {
                Exported::File(file) => file_or_directory(&file),
                Exported::Refused => None,
                Exported::Open if subpath == "." => package
                    .entries()
                    .find_map(|entry| file_or_directory(&entry))
                    .or_else(|| index_of(&package_directory)),
                Exported::Open => file_or_directory(&package_directory.join(&subpath[2..])),
            },
            None if subpath == "." => index_of(&package_directory),
            None => file_or_directory(&package_directory.join(&subpath[2..])),
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Splits `@scope/name/a/b` into the package `@scope/name` and its subpath `./a/b`.
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
    typescript_source(path)
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

/// Finds the source of an import that names the compiled file: `./x.js` may be `x.ts`.
fn typescript_source(path: &Path) -> Option<PathBuf> {
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

/// Removes `.` and `..` from `path` without reading the disk.
fn normalize(path: &Path) -> PathBuf {
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
