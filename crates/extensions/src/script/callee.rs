//! Finds the name of a called value that is not a function. The engine reports only the location, so the name is read
//! from the script as it was compiled.

use std::path::Path;

use super::load::MAX_SOURCE_BYTES;
use super::transform::transform;

/// Returns the message for "not a function", from the innermost frame of `stack`.
pub(crate) fn not_a_function(stack: &str) -> Option<String> {
    let frame = stack.lines().find(|line| line.starts_with("    at "))?;
    let (path, line, column) = frame_location(frame)?;
    let path = Path::new(path);
    if !path.is_absolute() {
        return None;
    }
    let source = pinion_files::read_text(path, MAX_SOURCE_BYTES).ok()?;
    let code = transform(path, source.trim_start_matches('\u{feff}'))
        .ok()?
        .code;
    message(code.lines().nth(line.checked_sub(1)?)?, column)
}

/// Parses `at name (file:line:column)`.
fn frame_location(frame: &str) -> Option<(&str, usize, usize)> {
    let frame_location = frame.trim().strip_prefix("at ")?;
    let frame_location = match frame_location.split_once(" (") {
        Some((_, frame_location)) => frame_location.strip_suffix(')')?,
        None => frame_location,
    };
    let (rest, column) = frame_location.rsplit_once(':')?;
    let (path, line) = rest.rsplit_once(':')?;
    Some((path, line.parse().ok()?, column.parse().ok()?))
}

fn message(line: &str, column: usize) -> Option<String> {
    let text: Vec<char> = line.chars().collect();
    let start = column.checked_sub(1)?;
    let mut end = start;
    while text.get(end).copied().is_some_and(is_word) {
        end += 1;
    }
    let rest: String = text.get(end..)?.iter().collect();
    let called = rest.starts_with('(') || rest.starts_with("?.(");
    let first = begin(&text, start)?;
    let before: String = text[..first].iter().collect();
    let new = before
        .trim_end()
        .strip_suffix("new")
        .filter(|_| before.ends_with(' '));
    if end == start || !(called || new.is_some()) {
        return None;
    }
    // `new` is reported at the start of the chain of members.
    while new.is_some()
        && text
            .get(end)
            .is_some_and(|next| *next == '.' || is_word(*next))
    {
        end += 1;
    }
    let callee: String = text[first..end].iter().collect();
    let what = if new.is_some() {
        "constructor"
    } else {
        "function"
    };
    Some(format!("{} is not a {what}", short(&callee)))
}

/// Returns the start of the chain of members that ends before `at`.
fn begin(text: &[char], mut at: usize) -> Option<usize> {
    loop {
        if at == 0 || text[at - 1] != '.' {
            return Some(at);
        }
        at -= 1;
        if at > 0 && text[at - 1] == '?' {
            at -= 1;
        }
        while at > 0 && matches!(text[at - 1], ')' | ']') {
            at = opening(text, at - 1)?;
        }
        while at > 0 && is_word(text[at - 1]) {
            at -= 1;
        }
    }
}

/// Returns the position of the bracket that opens the one at `close`.
fn opening(text: &[char], close: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        match text[at] {
            ')' | ']' => depth += 1,
            '(' | '[' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Shortens arguments within a chain: `a(...).b`.
fn short(callee: &str) -> String {
    let mut shortened = String::new();
    let mut depth = 0_usize;
    for character in callee.chars() {
        match character {
            '(' => {
                if depth == 0 {
                    shortened.push_str("(...)");
                }
                depth += 1;
            }
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => shortened.push(character),
            _ => {}
        }
    }
    shortened.replace("?.", ".")
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$' | '#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callee_is_read_from_the_line() {
        for (line, word, expected) in [
            (
                "  return ctx.ui.custom(1, 2);",
                "custom",
                Some("ctx.ui.custom is not a function"),
            ),
            ("f()", "f", Some("f is not a function")),
            (
                "x = new things.Thing(1)",
                "things",
                Some("things.Thing is not a constructor"),
            ),
            (
                "x = new Thing(1)",
                "Thing",
                Some("Thing is not a constructor"),
            ),
            (
                "a.make(1, (2)).run()",
                "run",
                Some("a.make(...).run is not a function"),
            ),
            ("list[0]?.go()", "go", Some("list[0].go is not a function")),
            (
                "this.#hidden()",
                "#hidden",
                Some("this.#hidden is not a function"),
            ),
            ("ctx.ui['x y']()", "ui", None),
        ] {
            let column = line.find(word).unwrap() + 1;
            assert_eq!(message(line, column).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn frames_name_file_line_and_column() {
        assert_eq!(
            frame_location("    at <anonymous> (/a/b.ts:12:3)"),
            Some(("/a/b.ts", 12, 3))
        );
        assert_eq!(
            frame_location("    at run (/a b/c (1).ts:5:33)"),
            Some(("/a b/c (1).ts", 5, 33))
        );
        assert_eq!(
            frame_location("    at /a/b.ts:12:3"),
            Some(("/a/b.ts", 12, 3))
        );
        assert_eq!(frame_location("    at native"), None);
    }
}
