//! The text before the cursor that can be completed: a command, a reference to a file, or any word.

use crate::editor::{is_marker, starts_reference};

/// A text that can be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Bytes before the cursor.
    pub(super) length: usize,
    /// The name typed so far, without quotes.
    pub(super) query: String,
    /// A quote is open.
    pub(super) is_quoted: bool,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `/name` at the start of the text.
    Command,
    /// `@path` or `@"path`.
    Reference,
    /// A path without `@`, completed only on request.
    Word,
}

impl Token {
    /// The token that is completed without a request: a command or a reference.
    pub(super) fn before(text: &str) -> Option<Self> {
        command(text).or_else(|| reference(text))
    }

    /// The word before the cursor, as a path.
    pub(super) fn word(text: &str) -> Option<Self> {
        let line = last_line(text);
        if let Some(start) = open_quote(line) {
            let quoted = &line[start + 1..];
            return Some(Self {
                kind: TokenKind::Word,
                length: line.len() - start,
                query: unescaped(quoted),
                is_quoted: true,
            });
        }
        let is_end = |character: char| {
            separates(character) || matches!(character, '"' | '\'' | '=' | '(' | '`')
        };
        let start = line.rfind(is_end).map_or(0, |at| {
            at + line[at..].chars().next().map_or(1, char::len_utf8)
        });
        let word = &line[start..];
        (!word.is_empty()).then(|| Self {
            kind: TokenKind::Word,
            length: word.len(),
            query: word.to_owned(),
            is_quoted: false,
        })
    }

    /// The text to insert for a path.
    pub(super) fn written(&self, path: &str) -> String {
        let at = if self.kind == TokenKind::Reference {
            "@"
        } else {
            ""
        };
        if !self.is_quoted && !needs_quotes(path) {
            return format!("{at}{path}");
        }
        let escaped = path.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{at}\"{escaped}\"")
    }
}

fn command(text: &str) -> Option<Token> {
    let name = text.strip_prefix('/')?;
    (!name.contains(separates)).then(|| Token {
        kind: TokenKind::Command,
        length: text.len(),
        query: name.to_owned(),
        is_quoted: false,
    })
}

/// The reference that extends to the end of the text, if any.
fn reference(text: &str) -> Option<Token> {
    let line = last_line(text);
    let mut before = None;
    let mut start = 0;
    while let Some(at) = line[start..].find('@').map(|at| start + at) {
        before = line[start..at].chars().next_back().or(before);
        let may_start = before.is_none_or(|before| is_marker(before) || starts_reference(before));
        before = Some('@');
        start = at + 1;
        if !may_start {
            continue;
        }
        let rest = &line[start..];
        let token = |query: String, is_quoted| Token {
            kind: TokenKind::Reference,
            length: line.len() - at,
            query,
            is_quoted,
        };
        let end = match rest.strip_prefix('"') {
            Some(quoted) => match closing_quote(quoted) {
                None => return Some(token(unescaped(quoted), true)),
                Some(end) => end + 2,
            },
            None => match rest.find(separates) {
                None => return Some(token(rest.to_owned(), false)),
                Some(end) => end,
            },
        };
        before = rest[..end].chars().next_back().or(before);
        start += end;
    }
    None
}

fn last_line(text: &str) -> &str {
    text.rfind('\n')
        .map_or(text, |newline| &text[newline + 1..])
}

fn separates(character: char) -> bool {
    character.is_whitespace() || is_marker(character)
}

/// The position of a quote that was opened at the start of a word and not closed.
fn open_quote(line: &str) -> Option<usize> {
    let mut start = 0;
    while let Some(at) = line[start..].find('"').map(|at| start + at) {
        let opens = line[..at].chars().next_back().is_none_or(separates);
        start = at + 1;
        if opens {
            match closing_quote(&line[start..]) {
                None => return Some(at),
                Some(end) => start += end + 1,
            }
        }
    }
    None
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, character)| {
        let closes = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        closes.then_some(at)
    })
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let next =
            (character == '\\').then(|| characters.next_if(|next| matches!(next, '"' | '\\')));
        plain.push(next.flatten().unwrap_or(character));
    }
    plain
}

fn needs_quotes(path: &str) -> bool {
    path.starts_with('"') || path.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(TokenKind, String, usize, bool)> {
        Token::before(text).map(|token| (token.kind, token.query, token.length, token.is_quoted))
    }

    #[test]
    fn commands_stand_at_the_start() {
        assert_eq!(
            found("/"),
            Some((TokenKind::Command, String::new(), 1, false))
        );
        assert_eq!(
            found("/mod"),
            Some((TokenKind::Command, "mod".into(), 4, false))
        );
        for text in ["", "/model x", " /mod", "a\n/mod", "x/mod", "/a\n"] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn references_stand_anywhere() {
        let reference = |query: &str, length, quoted| {
            Some((TokenKind::Reference, query.to_owned(), length, quoted))
        };
        let cases = [
            ("@", reference("", 1, false)),
            ("see @src/ma", reference("src/ma", 7, false)),
            ("(@x", reference("x", 2, false)),
            ("a\n@x", reference("x", 2, false)),
            ("@\"my fi", reference("my fi", 7, true)),
            ("@\"my file\" @b", reference("b", 2, false)),
            ("@\"a\\\"b", reference("a\"b", 6, true)),
            ("/name @x", reference("x", 2, false)),
            ("mail me@host", None),
            ("@src ", None),
            ("@\"my file\"", None),
            ("@a\nb", None),
            ("@@scope", reference("@scope", 7, false)),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn a_word_is_what_a_shell_would_complete() {
        let cases = [
            ("cat src/m", Some(("src/m", 5, false))),
            ("x=~/a", Some(("~/a", 3, false))),
            ("cat \"my d", Some(("my d", 5, true))),
            ("it's", Some(("s", 1, false))),
            ("a ", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let word = Token::word(text).map(|token| (token.query, token.length, token.is_quoted));
            let expected =
                expected.map(|(query, length, quoted)| (query.to_owned(), length, quoted));
            assert_eq!(word, expected, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for path in [
            "plain.rs",
            "my file.txt",
            "dir/",
            "my dir/",
            "a\"b c",
            "back\\slash x",
            "é 中",
        ] {
            let token = Token::before("@").expect("a token");
            let written = token.written(path);
            let open = written.strip_suffix('"').unwrap_or(&written);
            let again = Token::before(open).expect("a token");
            assert_eq!(again.query, path, "{written}");
            assert_eq!(again.length, open.len());
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_looked_at(text in "[@/\"\\\\ a.\n中\u{100003}~=]{0,30}") {
            for token in [Token::before(&text), Token::word(&text)].into_iter().flatten() {
                let start = text.len() - token.length;
                assert!(text.is_char_boundary(start));
                assert!(!text[start..].contains('\n'));
            }
        }

        #[test]
        fn any_path_is_read_as_it_was_written(path in "[a-z/.@\"\\\\ 中~-]{1,20}") {
            let token = Token::before("@").expect("a token");
            let written = token.written(&path);
            let quoted = written.strip_prefix("@\"").and_then(|rest| rest.strip_suffix('"'));
            let open = if quoted.is_some() { &written[..written.len() - 1] } else { &written };
            assert_eq!(Token::before(open).map(|token| token.query), Some(path));
            if quoted.is_some() {
                assert_eq!(Token::before(&written), None);
            }
        }
    }
}
