//! Checks Cargo.lock for crates that the project has decided against (`[bans] deny` in deny.toml) and for sources other
//! than the public registry. `cargo deny check` does the same and more where it is installed.

use std::fs;

use crate::shell::{Outcome, root};

/// Fails with the name of the first unwanted package.
pub fn check() -> Outcome {
    let read = |name: &str| {
        fs::read_to_string(root().join(name)).map_err(|error| format!("{name}: {error}"))
    };
    let (rules, lock) = (read("deny.toml")?, read("Cargo.lock")?);
    let banned: Vec<&str> = rules
        .lines()
        .filter_map(|line| quoted(line, "crate = "))
        .collect();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| package.lines().find_map(|line| quoted(line, name));
        let name = field("name = ").unwrap_or("?");
        if banned.contains(&name) {
            return Err(format!("Cargo.lock has {name}, which deny.toml bans"));
        }
        if field("source = ").is_some_and(|source| !source.starts_with("registry+")) {
            return Err(format!("{name} does not come from the registry"));
        }
    }
    Ok(())
}

/// Returns the text in quotes after `before`.
fn quoted<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    let line = line.trim_start().trim_start_matches("{ ");
    line.strip_prefix(before)?
        .strip_prefix('"')?
        .split('"')
        .next()
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_read_from_both_files() {
        assert_eq!(quoted("name = \"ring\"", "name = "), Some("ring"));
        let ban = "  { crate = \"native-tls\", reason = \"one TLS\" },";
        assert_eq!(quoted(ban, "crate = "), Some("native-tls"));
        assert_eq!(quoted("deny = [", "crate = "), None);
    }
}
