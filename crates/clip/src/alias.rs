//! Aliases: the names under which clips are called. An alias consists of lower-case letters, digits and single dashes.
//!
//! The hub decides which clip has which alias.

use pinion_text::hex;

use crate::{ClipError, Code};

/// The longest alias, in bytes. Aliases are file names and parts of addresses.
pub const LONGEST: usize = 64;
/// The length of a suffix: a dash and four digits.
const SUFFIX: usize = 5;
/// The number of suffixes that are tried before choosing an alias fails.
const SUFFIXES: usize = 256;

/// Converts `text` to an alias; `None` if nothing of it can be part of one.
///
/// Letters become lower-case, runs of `-`, `_`, `.` and spaces become one dash, the rest disappears.
pub fn normalise(text: &str) -> Option<String> {
    let mut alias = String::with_capacity(text.len());
    for letter in text.trim().chars().flat_map(char::to_lowercase) {
        match letter {
            'a'..='z' | '0'..='9' => alias.push(letter),
            '-' | '_' | '.' | ' ' if !alias.is_empty() && !alias.ends_with('-') => alias.push('-'),
            _ => {}
        }
    }
    alias.truncate(alias.trim_end_matches('-').len());
    (!alias.is_empty()).then_some(alias)
}

/// Reports whether `text` is a valid alias without conversion.
pub fn is_alias(text: &str) -> bool {
    text.len() <= LONGEST && normalise(text).is_some_and(|alias| alias == text)
}

/// Derives an alias from a source: the last part of its name, or `clip` if nothing of that remains.
///
/// `@scope/name` gives `name`, `github/user/repo#branch` gives `repo`, `local/name:/path` gives `name`.
pub fn from_source(source: &str) -> String {
    let source = source.trim();
    let name = if let Some((_, package)) = split_registry(source) {
        package_name(package)
    } else if let Some(repository) = source.strip_prefix("github/") {
        let repository = repository.split('#').next().unwrap_or_default();
        let last = repository.trim_end_matches('/').rsplit('/').next();
        last.unwrap_or_default().trim_end_matches(".git")
    } else if let Some(local) = source.strip_prefix("local/") {
        local.split(':').next().unwrap_or_default()
    } else {
        package_name(source)
    };
    let mut alias = normalise(name).unwrap_or_else(|| "clip".into());
    // Leaves room for a suffix.
    alias.truncate(LONGEST - SUFFIX);
    alias.truncate(alias.trim_end_matches('-').len());
    alias
}

fn split_registry(source: &str) -> Option<(&str, &str)> {
    source.strip_prefix("registry:")?.rsplit_once('#')
}

/// Returns `name` of `@scope/name`, `@scope/name@version` and `@scope/name:version`.
fn package_name(package: &str) -> &str {
    let last = package.rsplit('/').next().unwrap_or_default();
    let unversioned = last.split(['@', ':']).find(|part| !part.is_empty());
    unversioned.unwrap_or_default()
}

/// Chooses the alias for a new clip: the requested one if there is one, else that of the source, with a suffix of four
/// hexadecimal digits only if it is taken.
///
/// Fails if a requested alias is taken.
pub fn choose(
    requested: Option<&str>,
    source: &str,
    is_taken: impl Fn(&str) -> bool,
) -> Result<String, ClipError> {
    if let Some(requested) = requested.filter(|requested| !requested.trim().is_empty()) {
        let alias = normalise(requested).ok_or_else(|| {
            ClipError::invalid(format!(
                "\"{requested}\" cannot be an alias: it needs a letter a-z or a digit"
            ))
        })?;
        if alias.len() > LONGEST {
            return Err(ClipError::invalid(format!(
                "the alias \"{alias}\" has {} characters; choose one of at most {LONGEST}",
                alias.len()
            )));
        }
        return if is_taken(&alias) {
            Err(taken(&alias))
        } else {
            Ok(alias)
        };
    }
    let base = from_source(source);
    if !is_taken(&base) {
        return Ok(base);
    }
    let suffixed = (0..SUFFIXES).map(|_| with_suffix(&base));
    let free = suffixed.into_iter().find(|alias| !is_taken(alias));
    free.ok_or_else(|| taken(&base))
}

/// The error for an alias that another clip has.
pub fn taken(alias: &str) -> ClipError {
    ClipError::new(
        Code::AlreadyExists,
        format!("clip \"{alias}\" already exists"),
    )
}

fn with_suffix(base: &str) -> String {
    let random = uuid::Uuid::new_v4();
    format!("{base}-{}", hex::encode(&random.as_bytes()[..2]))
}

/// Finds the one of `clips`, given as alias and package, that `name` refers to: the clip with that alias, else the only
/// clip of that package or of that package's short name.
pub fn resolve<'a>(
    name: &str,
    clips: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<&'a str, ClipError> {
    let name = name.trim();
    let alias = normalise(name);
    let mut matches = Vec::new();
    for (candidate, package) in clips {
        if name == candidate || (alias.as_deref() == Some(candidate) && !name.contains('/')) {
            return Ok(candidate);
        }
        let short = package.rsplit('/').next().unwrap_or_default();
        if !name.is_empty() && (package == name || short == name) {
            matches.push(candidate);
        }
    }
    match matches.as_slice() {
        [] => Err(ClipError::no_clip(name)),
        [one] => Ok(one),
        several => Err(ClipError::invalid(format!(
            "\"{name}\" matches {}; use one of these aliases",
            several.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn aliases_are_made_of_what_can_be_kept() {
        for (text, alias) in [
            ("My_Clip.v2", "my-clip-v2"),
            ("  A  B ", "a-b"),
            ("@acme/todo", "acmetodo"),
            ("--x--", "x"),
            ("._ -a-._b", "a-b"),
            ("caf\u{e9}", "caf"),
        ] {
            assert_eq!(normalise(text).as_deref(), Some(alias), "{text}");
        }
        assert_eq!(normalise(" -_. "), None);
        assert_eq!(normalise("\u{65e5}\u{672c}"), None);
    }

    #[test]
    fn sources_suggest_their_last_name() {
        for (source, alias) in [
            ("@acme/todo", "todo"),
            ("@acme/todo@1.2.0", "todo"),
            ("@acme/todo:beta", "todo"),
            ("registry:https://r.example:8080/x#@acme/To_Do@1", "to-do"),
            ("github/user/repo", "repo"),
            ("github/user/repo.git#main", "repo"),
            ("local/notes:/home/me/notes", "notes"),
            ("local/", "clip"),
            ("", "clip"),
        ] {
            assert_eq!(from_source(source), alias, "{source}");
        }
    }

    #[test]
    fn an_alias_has_a_length() {
        let (fits, long) = ("a".repeat(LONGEST), "a".repeat(LONGEST + 1));
        assert_eq!(choose(Some(&fits), "", |_| false).unwrap(), fits);
        assert!(is_alias(&fits) && !is_alias(&long));
        let refused = choose(Some(&long), "", |_| false).unwrap_err();
        assert_eq!(refused.code, Code::InvalidArgument);
        let source = format!("@me/{}", "b".repeat(10_000));
        assert!(is_alias(&from_source(&source)));
        let first = std::cell::Cell::new(true);
        assert!(is_alias(
            &choose(None, &source, |_| first.replace(false)).unwrap()
        ));
    }

    #[test]
    fn a_suffix_comes_only_with_a_collision() {
        assert_eq!(choose(None, "@a/todo", |_| false).unwrap(), "todo");
        let second = choose(None, "@a/todo", |alias| alias == "todo").unwrap();
        let suffix = second.strip_prefix("todo-").unwrap();
        assert!(suffix.len() == 4 && suffix.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(
            choose(Some("My Todo"), "@a/x", |_| false).unwrap(),
            "my-todo"
        );
        let conflict = choose(Some("todo"), "", |_| true).unwrap_err();
        assert_eq!(conflict.code, Code::AlreadyExists);
        assert_eq!(conflict.message, "clip \"todo\" already exists");
        assert_eq!(
            choose(Some("@/"), "", |_| false).unwrap_err().code,
            Code::InvalidArgument
        );
        assert_eq!(
            choose(None, "", |_| true).unwrap_err().code,
            Code::AlreadyExists
        );
    }

    #[test]
    fn names_resolve_to_aliases_first_and_packages_second() {
        let clips = [
            ("todo", "@acme/list"),
            ("list", "@acme/todo"),
            ("todo-1f00", "@other/mail"),
            ("mail", "@acme/mail2"),
        ];
        assert_eq!(resolve("todo", clips).unwrap(), "todo");
        assert_eq!(resolve("Todo", clips).unwrap(), "todo");
        assert_eq!(resolve("@acme/todo", clips).unwrap(), "list");
        assert_eq!(resolve("mail2", clips).unwrap(), "mail");
        let twins = [("a", "@x/mail"), ("b", "@y/mail")];
        let several = resolve("mail", twins).unwrap_err();
        assert_eq!(several.code, Code::InvalidArgument);
        assert!(several.message.contains("a, b"));
        assert_eq!(resolve("@y/mail", twins).unwrap(), "b");
        assert_eq!(resolve("ghost", twins).unwrap_err().code, Code::NotFound);
        assert_eq!(resolve("", twins).unwrap_err().code, Code::NotFound);
    }

    proptest! {
        #[test]
        fn normalising_is_done_once(text in any::<String>()) {
            if let Some(alias) = normalise(&text) {
                prop_assert!(is_alias(&alias), "{}", alias);
                prop_assert!(alias.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
                prop_assert!(!alias.starts_with('-') && !alias.ends_with('-') && !alias.contains("--"));
            }
        }

        #[test]
        fn every_source_suggests_an_alias(source in "(local/|github/|registry:|@)?[ -~]{0,30}") {
            prop_assert!(is_alias(&from_source(&source)));
        }
    }
}
