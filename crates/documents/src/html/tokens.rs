//! A tokenizer for HTML, as forgiving as browsers are.
//!
//! It distinguishes only what decides about visible text; it builds no tree, so nesting takes no
//! memory.

use std::borrow::Cow;

use super::entities::{EntityContext, decode};

/// The most attributes of one tag that are read.
const MAX_ATTRIBUTES: usize = 64;

/// A start tag.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// The name in lower case.
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    pub(super) self_closing: bool,
}

impl Tag {
    /// Returns the value of an attribute; the first one if it appears twice.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known == name)?;
        Some(&found.1)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'p> {
    Text(Cow<'p, str>),
    Start(Tag),
    /// The name of an end tag, in lower case.
    End(String),
}

/// The reading of an element's text up to its end tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Raw {
    /// Unchanged.
    Verbatim,
    /// With entities decoded.
    Decoded,
}

/// Splits a page into tokens.
#[derive(Debug)]
pub(super) struct Tokens<'p> {
    rest: &'p str,
    /// The element in which only its own end tag is a tag.
    raw: Option<(String, Raw)>,
}

impl<'p> Tokens<'p> {
    pub(super) fn new(page: &'p str) -> Self {
        Self {
            rest: page,
            raw: None,
        }
    }

    fn take(&mut self, length: usize) -> &'p str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Skips past the next `end`, or to the end of the page.
    fn skip_past(&mut self, end: &str) {
        let at = memchr::memmem::find(self.rest.as_bytes(), end.as_bytes());
        self.take(at.map_or(self.rest.len(), |at| at + end.len()));
    }

    fn text(&mut self, length: usize) -> Token<'p> {
        Token::Text(decode(self.take(length), EntityContext::Text))
    }

    fn raw_text(&mut self, name: &str, raw: Raw) -> Token<'p> {
        let end = end_tag(self.rest, name).unwrap_or(self.rest.len());
        match raw {
            Raw::Verbatim => Token::Text(Cow::Borrowed(self.take(end))),
            Raw::Decoded => self.text(end),
        }
    }

    /// Reads markup that begins with `<`; `None` if it produces no token.
    fn markup(&mut self) -> Option<Token<'p>> {
        let after = &self.rest.as_bytes()[1..];
        match after {
            [b'!', b'-', b'-', ..] => {
                self.take(4);
                if self.rest.starts_with('>') || self.rest.starts_with("->") {
                    self.skip_past(">");
                } else {
                    self.skip_past("-->");
                }
                None
            }
            [b'!' | b'?', ..] => {
                self.skip_past(">");
                None
            }
            [b'/', letter, ..] if letter.is_ascii_alphabetic() => {
                self.take(2);
                let name = self.name();
                self.attributes().map(|_| Token::End(name))
            }
            [b'/', _, ..] => {
                self.skip_past(">");
                None
            }
            [letter, ..] if letter.is_ascii_alphabetic() => {
                self.take(1);
                let name = self.name();
                let (attributes, self_closing) = self.attributes()?;
                self.raw = raw(&name).map(|raw| (name.clone(), raw));
                Some(Token::Start(Tag {
                    name,
                    attributes,
                    self_closing,
                }))
            }
            _ => Some(self.text(1)),
        }
    }

    fn name(&mut self) -> String {
        let end = self
            .rest
            .find(|letter| is_blank(letter) || matches!(letter, '/' | '>'));
        self.take(end.unwrap_or(self.rest.len()))
            .to_ascii_lowercase()
    }

    /// Reads the rest of a tag: its attributes, and whether it closes itself. If the page ends
    /// inside the tag, it returns `None` and drops the rest, because reading again would end the
    /// same way.
    fn attributes(&mut self) -> Option<(Vec<(String, String)>, bool)> {
        let read = self.read_attributes();
        if read.is_none() {
            self.rest = "";
        }
        read
    }

    fn read_attributes(&mut self) -> Option<(Vec<(String, String)>, bool)> {
        let mut attributes = Vec::new();
        let mut slash = false;
        loop {
            self.rest = self.rest.trim_start_matches(is_blank);
            match self.rest.chars().next()? {
                '>' => {
                    self.take(1);
                    return Some((attributes, slash));
                }
                '/' => {
                    self.take(1);
                    slash = true;
                    continue;
                }
                _ => slash = false,
            }
            let attribute = self.attribute()?;
            if attributes.len() < MAX_ATTRIBUTES {
                attributes.push(attribute);
            }
        }
    }

    fn attribute(&mut self) -> Option<(String, String)> {
        let ends = |letter: char| is_blank(letter) || matches!(letter, '/' | '>' | '=');
        // An equals sign at the start belongs to the name.
        let first = self.rest.chars().next()?.len_utf8();
        let end = self.rest[first..]
            .find(ends)
            .map_or(self.rest.len(), |at| first + at);
        let name = self.take(end).to_ascii_lowercase();
        self.rest = self.rest.trim_start_matches(is_blank);
        if !self.rest.starts_with('=') {
            return Some((name, String::new()));
        }
        self.take(1);
        self.rest = self.rest.trim_start_matches(is_blank);
        let value = match self.rest.chars().next()? {
            quote @ ('"' | '\'') => {
                self.take(1);
                let end = self.rest.find(quote)?;
                let value = self.take(end);
                self.take(1);
                value
            }
            _ => {
                let end = self.rest.find(|letter| is_blank(letter) || letter == '>')?;
                self.take(end)
            }
        };
        Some((name, decode(value, EntityContext::Attribute).into_owned()))
    }
}

impl<'p> Iterator for Tokens<'p> {
    type Item = Token<'p>;

    fn next(&mut self) -> Option<Token<'p>> {
        if let Some((name, raw)) = self.raw.take() {
            return Some(self.raw_text(&name, raw));
        }
        while !self.rest.is_empty() {
            match memchr::memchr(b'<', self.rest.as_bytes()) {
                Some(0) => {
                    if let Some(token) = self.markup() {
                        return Some(token);
                    }
                }
                found => return Some(self.text(found.unwrap_or(self.rest.len()))),
            }
        }
        None
    }
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

fn raw(name: &str) -> Option<Raw> {
    match name {
        "script" | "style" | "xmp" | "iframe" | "noembed" | "noframes" => Some(Raw::Verbatim),
        "title" | "textarea" => Some(Raw::Decoded),
        _ => None,
    }
}

/// Returns the offset of an element's end tag.
fn end_tag(text: &str, name: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memmem::find_iter(bytes, b"</").find(|at| {
        let after = &bytes[at + 2..];
        after
            .get(..name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
            && after
                .get(name.len())
                .is_none_or(|next| b" \t\n\r\x0c/>".contains(next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(page: &str) -> String {
        let mut shown = String::new();
        for token in Tokens::new(page) {
            match token {
                Token::Text(text) => shown.push_str(&text),
                Token::Start(tag) => {
                    shown.push_str(&format!("[{}", tag.name));
                    for (name, value) in &tag.attributes {
                        shown.push_str(&format!(" {name}={value}"));
                    }
                    shown.push_str(if tag.self_closing { "/]" } else { "]" });
                }
                Token::End(name) => shown.push_str(&format!("[/{name}]")),
            }
        }
        shown
    }

    #[test]
    fn tags_and_attributes_as_browsers_read_them() {
        let cases = [
            (
                "<P CLASS='a>b' id=x/y hidden>t</P >",
                "[p class=a>b id=x/y hidden=]t[/p]",
            ),
            ("<br/><img src = \"a&amp;b\" / >", "[br/][img src=a&b/]"),
            ("a < b <3 </ x></> c", "a < b <3  c"),
            ("<a =b=c d==e f='' g>", "[a =b=c d==e f= g=]"),
            (
                "x<!-- <b> --><!--> y<!---> z<!doctype html><?php echo '<i>' ?>w",
                "x y z' ?>w",
            ),
            ("<b a=1 a=2>c<i d='", "[b a=1 a=2]c"),
            ("end <!-- never", "end "),
            ("a<b c='d>e</b>f", "a"),
            ("a<b/c=<b/c=<b/c=", "a"),
        ];
        for (page, expected) in cases {
            assert_eq!(shown(page), expected, "{page}");
        }
    }

    #[test]
    fn some_elements_end_only_at_their_end_tag() {
        let cases = [
            (
                "<script>a<b</scripts>&amp;</SCRIPT x>c",
                "[script]a<b</scripts>&amp;[/script]c",
            ),
            ("<title>a<b&amp;</title>c", "[title]a<b&[/title]c"),
            ("<style>never", "[style]never"),
            ("<textarea></textarea>", "[textarea][/textarea]"),
        ];
        for (page, expected) in cases {
            assert_eq!(shown(page), expected, "{page}");
        }
    }
}
