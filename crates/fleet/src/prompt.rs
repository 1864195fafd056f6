//! Templates of prompts: replaces `{{ input }}` and a few other names by values of the run.

/// The names a child's prompt may use.
pub(crate) const CHILD_NAMES: [&str; 4] = ["input", "input_path", "name", "run_dir"];
/// The names the judge's prompt may use.
pub(crate) const JUDGE_NAMES: [&str; 6] = [
    "input",
    "input_path",
    "name",
    "run_dir",
    "results",
    "results_path",
];

/// Replaces names by their values; names without a value stay unchanged.
pub(crate) fn render(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut rendered = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, name, after)) = next(rest) {
        rendered.push_str(before);
        match value(name) {
            Some(value) => rendered.push_str(&value),
            None => rendered.push_str(&rest[before.len()..rest.len() - after.len()]),
        }
        rest = after;
    }
    rendered.push_str(rest);
    rendered
}

/// Reports whether a prompt uses this name.
pub(crate) fn uses(text: &str, name: &str) -> bool {
    let mut rest = text;
    while let Some((_, found, after)) = next(rest) {
        if found == name {
            return true;
        }
        rest = after;
    }
    false
}

/// Returns the names that are not in `known`, each with its line, counted from 0.
pub(crate) fn unknown_names<'a>(text: &'a str, known: &[&str]) -> Vec<(u64, &'a str)> {
    let mut unknown = Vec::new();
    let mut rest = text;
    while let Some((before, name, after)) = next(rest) {
        if !known.contains(&name) {
            let at = text.len() - rest.len() + before.len();
            let line = text[..at].matches('\n').count() as u64;
            unknown.push((line, name));
        }
        rest = after;
    }
    unknown
}

/// Finds the next `{{ name }}` and returns the text before it, the name, and the text after it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text.get(from..)?.find("{{")?;
        let inside = &text[start + 2..];
        let end = inside.find("}}")?;
        let name = inside[..end].trim();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !name.is_empty() && name.chars().all(fits) {
            return Some((&text[..start], name, &inside[end + 2..]));
        }
        // Braces with another content are ordinary text.
        from = start + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(name: &str) -> Option<String> {
        (name == "input").then(|| "{{ input }}!".to_owned())
    }

    #[test]
    fn names_are_replaced_once_and_braces_are_left_alone() {
        assert_eq!(
            render("a {{ input }} b {{input}}", value),
            "a {{ input }}! b {{ input }}!"
        );
        assert_eq!(
            render("{{ other }} {{ 1 + 1 }} {{", value),
            "{{ other }} {{ 1 + 1 }} {{"
        );
        assert_eq!(render("{{ {{ input }} }}", value), "{{ {{ input }}! }}");
        assert_eq!(
            unknown_names("{{ input }}\n{{ inptu }}", &["input"]),
            [(1, "inptu")]
        );
        assert!(uses("x {{ input }}", "input") && !uses("x", "input"));
    }

    proptest! {
        #[test]
        fn any_text_is_rendered(text in "[a{} \n]{0,40}") {
            prop_assert_eq!(render(&text, |_| None), text.clone());
            let _ = unknown_names(&text, &[]);
        }
    }
}
