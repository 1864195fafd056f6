//! Unique names of tools that every provider accepts.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The longest name that every provider accepts, in bytes.
const LONGEST: usize = 64;

/// The names in use.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// Returns `<clip>_<command>` in letters, digits, `_` and `-`, with a number after it if the name is in use.
    pub fn give(&mut self, clip: &str, command: &str) -> String {
        let plain = plain(clip, command);
        let numbered = (2_u64..).map(|number| {
            let suffix = format!("_{number}");
            let kept = plain.len().min(LONGEST - suffix.len());
            format!("{}{suffix}", &plain[..kept])
        });
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let free = candidates.find(|name| !self.0.contains(name));
        let name = free.unwrap_or_else(|| plain.clone());
        self.0.insert(name.clone());
        name
    }
}

fn plain(clip: &str, command: &str) -> String {
    let mut name = String::new();
    // Some providers require a letter at the start.
    if !clip.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name.push_str("clip_");
    }
    put(&mut name, clip);
    name.push('_');
    put(&mut name, command);
    if name.len() <= LONGEST {
        return name;
    }
    let mut hasher = DefaultHasher::new();
    (clip, command).hash(&mut hasher);
    let mark = format!("_{:08x}", hasher.finish() as u32);
    name.truncate(LONGEST - mark.len());
    name + &mark
}

/// Appends `text`, with one `_` for each sequence of characters other than letters, digits, `_` and `-`.
fn put(name: &mut String, text: &str) {
    let mut gap = false;
    let start = name.len();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || letter == '_' || letter == '-' {
            if gap && name.len() > start {
                name.push('_');
            }
            gap = false;
            name.push(letter);
        } else {
            gap = true;
        }
    }
    if name.len() == start {
        name.push_str("command");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_say_clip_and_command() {
        let mut names = Names::default();
        for (clip, command, name) in [
            ("todo", "add", "todo_add"),
            ("todo", "note add", "todo_note_add"),
            ("todo", "note/add", "todo_note_add_2"),
            ("todo", "note  / add", "todo_note_add_3"),
            ("linux", "systemd.status", "linux_systemd_status"),
            ("my-clip", "--help", "my-clip_--help"),
            ("3d", "print", "clip_3d_print"),
            ("wetter", "für heute", "wetter_f_r_heute"),
            ("x", "日本", "x_command"),
        ] {
            assert_eq!(names.give(clip, command), name);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_name_is_taken_by_every_provider_and_given_once(
            pairs in proptest::collection::vec(("[a-z0-9-]{0,70}", ".{0,70}"), 0..12),
        ) {
            let mut names = Names::default();
            let given: Vec<String> = pairs.iter().map(|(clip, command)| names.give(clip, command)).collect();
            for name in &given {
                prop_assert!(name.len() <= LONGEST && !name.is_empty());
                prop_assert!(name.starts_with(|first: char| first.is_ascii_alphabetic()));
                prop_assert!(name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter)));
            }
            let once: HashSet<&String> = given.iter().collect();
            prop_assert_eq!(once.len(), given.len());
        }
    }
}
