//! The title of a session: its name, else the first line of its first message.

/// The longest title, in characters.
const MAX_CHARS: usize = 80;

/// Returns the title that a user's message gives to a session; `None` for a message without text.
pub(crate) fn of_message(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line.split("<file name=\"").next().unwrap_or(line);
    let line = without_links(line);
    let line = pinion_text::one_line(&line);
    let title: String = line.chars().take(MAX_CHARS).collect();
    let title = title.trim().to_owned();
    (!title.is_empty()).then_some(title)
}

/// Replaces `[name](address)` by `name`.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let (before, link) = rest.split_at(open);
        out.push_str(before);
        let named = link[1..].split_once("](").and_then(|(name, after)| {
            let (_, after) = after.split_once(')')?;
            (!name.contains(['[', '\n'])).then_some((name, after))
        });
        match named {
            Some((name, after)) => {
                out.push_str(name);
                rest = after;
            }
            None => {
                out.push('[');
                rest = &link[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_without_addresses() {
        for (text, title) in [
            ("run it", Some("run it")),
            ("\n  first \nsecond", Some("first")),
            (
                "Compare [a.txt](/home/u/a.txt) with this",
                Some("Compare a.txt with this"),
            ),
            ("a [b] c](d [e", Some("a [b] c](d [e")),
            ("", None),
            (" \n", None),
        ] {
            assert_eq!(of_message(text).as_deref(), title, "{text:?}");
        }
        assert_eq!(of_message(&"ä".repeat(200)).unwrap().chars().count(), 80);
    }
}
