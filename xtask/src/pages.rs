//! Checks that pages agree with the code: the paths and dependencies that ARCHITECTURE.md names, and the tests that
//! docs/promises.md names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Returns one line per statement of the pages that is not true.
pub fn faults(root: &Path) -> Vec<String> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let architecture = read("ARCHITECTURE.md");
    let mut faults = missing_paths(root, &architecture);
    faults.extend(wrong_dependencies(root, &architecture));
    faults.extend(missing_tests(
        &read("docs/promises.md"),
        &names_in_code(root),
    ));
    faults
}

/// The paths in ARCHITECTURE.md that do not exist. In the last cell of a row of the code map, names are below the `src`
/// directory of the crate in the first cell; elsewhere they are below `crates` or the root.
fn missing_paths(root: &Path, page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let cells: Vec<&str> = line.split('|').collect();
        let map_row = match cells[..] {
            [_, name, _, files, _] => Some((name.trim().trim_matches('`'), files)),
            _ => None,
        };
        for path in code_spans(line).filter(|span| is_path(span)) {
            let beside = match map_row {
                Some((name, files)) if files.contains(path) => {
                    root.join("crates").join(name).join("src").join(path)
                }
                Some((name, _)) => root.join("crates").join(name).join(path),
                None => root.join(path),
            };
            let places = [beside, root.join("crates").join(path), root.join(path)];
            if !places.iter().any(|place| place.exists()) {
                let line = index + 1;
                faults.push(format!("ARCHITECTURE.md:{line}: {path} does not exist"));
            }
        }
    }
    faults
}

fn is_path(span: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "./_-".contains(letter);
    let endings = [".rs", ".md", ".js", ".jsonl"];
    span.chars().all(plain)
        && !span.starts_with('/')
        && (span.contains('/') || endings.iter().any(|ending| span.ends_with(ending)))
}

/// The rows of the table of dependencies that differ from the crates' `Cargo.toml`.
fn wrong_dependencies(root: &Path, page: &str) -> Vec<String> {
    let section = page
        .split("\n## ")
        .find(|part| part.starts_with("Dependencies"));
    let mut stated = BTreeMap::new();
    for line in section.unwrap_or_default().lines() {
        if let [_, name, uses, _] = line.split('|').collect::<Vec<_>>()[..]
            && let Some(name) = code_spans(name).next()
        {
            let uses = uses.split(',').map(str::trim).filter(|name| *name != "–");
            stated.insert(
                name.to_owned(),
                uses.map(str::to_owned).collect::<BTreeSet<_>>(),
            );
        }
    }
    let mut faults = Vec::new();
    for entry in fs::read_dir(root.join("crates"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap_or_default();
        let uses = dependencies(&manifest);
        match stated.remove(&name) {
            _ if name == "pinion" => {}
            None => faults.push(format!(
                "ARCHITECTURE.md: the dependencies of {name} are missing"
            )),
            Some(stated) if stated != uses => {
                let uses: Vec<_> = uses.into_iter().collect();
                faults.push(format!("ARCHITECTURE.md: {name} uses {}", uses.join(", ")));
            }
            Some(_) => {}
        }
    }
    let gone = stated
        .keys()
        .map(|name| format!("ARCHITECTURE.md: {name} is not a crate"));
    faults.extend(gone);
    faults
}

/// The crates of the workspace in the section `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let section = manifest
        .split("\n[")
        .find(|part| part.starts_with("dependencies]"));
    let lines = section.unwrap_or_default().lines();
    let names = lines.filter_map(|line| line.strip_prefix("pinion-"));
    let end = |letter: char| !letter.is_ascii_alphanumeric() && letter != '-';
    names
        .filter_map(|name| Some(name.split(end).next()?.to_owned()))
        .collect()
}

/// The tests in the last cells of docs/promises.md that no function, module or file is called. A name before `…` is the
/// beginning of a test's name.
fn missing_tests(page: &str, names: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for (index, line) in page
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with('|'))
    {
        let Some(cell) = line.rsplit('|').nth(1) else {
            continue;
        };
        let parts: Vec<&str> = cell.split('`').collect();
        for (at, test) in parts.iter().enumerate().skip(1).step_by(2) {
            let last = test.rsplit("::").next().unwrap_or_default();
            let is_name =
                |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
            let is_beginning = parts.get(at + 1).is_some_and(|rest| rest.starts_with('…'));
            let exists = names.contains(last)
                || is_beginning
                    && names
                        .range(last.to_owned()..)
                        .next()
                        .is_some_and(|name| name.starts_with(last));
            if test.chars().all(is_name) && !exists {
                faults.push(format!(
                    "docs/promises.md:{}: there is no test {test}",
                    index + 1
                ));
            }
        }
    }
    faults
}

/// The names of all functions, modules and files below `crates` and `tests`.
fn names_in_code(root: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut open = vec![root.join("crates"), root.join("tests")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if let Some(stem) = path.file_stem() {
                names.insert(stem.to_string_lossy().into_owned());
            }
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                let words: Vec<&str> = text
                    .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
                    .filter(|word| !word.is_empty())
                    .collect();
                let named = words
                    .windows(2)
                    .filter(|pair| ["fn", "mod"].contains(&pair[0]));
                names.extend(named.map(|pair| pair[1].to_owned()));
            }
        }
    }
    names
}

fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_does_not_exist_is_a_fault() {
        let root = tempdir();
        let page = "| `a` | text | `lib.rs`, `gone.rs` |\n`a/src/lib.rs` and `a/src/no.rs`, `Type`, `/proto`\n";
        let faults = missing_paths(&root, page);
        assert_eq!(
            faults,
            [
                "ARCHITECTURE.md:1: gone.rs does not exist",
                "ARCHITECTURE.md:2: a/src/no.rs does not exist"
            ]
        );
        let page = "\n## Dependencies\n| `a` | b |\n| `c` | – |\n\n## Next\n";
        assert_eq!(
            wrong_dependencies(&root, page),
            [
                "ARCHITECTURE.md: a uses b, d",
                "ARCHITECTURE.md: c is not a crate"
            ]
        );
        let _ = fs::remove_dir_all(root);
    }

    #[test]
    fn a_test_that_does_not_exist_is_a_fault() {
        let names: BTreeSet<String> = ["one_two".to_owned(), "module".to_owned()].into();
        let page = "| a | `x::one_two`, `one_`…, `module`, `gone`, `cargo xtask` |\n";
        let faults = missing_tests(page, &names);
        assert_eq!(faults, ["docs/promises.md:1: there is no test gone"]);
    }

    fn tempdir() -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("pinion-pages-{}", std::process::id()));
        let source = root.join("crates/a/src");
        fs::create_dir_all(&source).expect("a directory");
        fs::write(source.join("lib.rs"), "").expect("a file");
        let manifest = "[package]\n\n[dependencies]\npinion-b.workspace = true\npinion-d = { path = \"x\" }\nserde = \"1\"\n";
        fs::write(root.join("crates/a/Cargo.toml"), manifest).expect("a file");
        root
    }
}
