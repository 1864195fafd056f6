//! A transcript as a web page: one file without scripts and external resources. All content is
//! escaped text.

use std::fmt::Write;

use super::{Author, Entry, Part, Transcript};

const STYLE: &str = include_str!("page.css");

/// A policy that lets the page load and run nothing, whatever its content.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

pub(super) fn page(transcript: &Transcript) -> String {
    let mut out = String::with_capacity(4096);
    let title = escaped(&transcript.title);
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<dl>\n"
    );
    for (name, value) in &transcript.facts {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(value));
    }
    out.push_str("</dl>\n");
    for entry in &transcript.entries {
        article(&mut out, entry);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn article(out: &mut String, entry: &Entry) {
    let heading = escaped(&entry.heading());
    let class = entry.author.name().to_ascii_lowercase();
    let _ = writeln!(out, "<article class=\"{class}\">");
    // Entries that few people read again are folded.
    let folded = matches!(entry.author, Author::System | Author::Thinking);
    let _ = if folded {
        writeln!(out, "<details><summary>{heading}</summary>")
    } else {
        writeln!(out, "<h2>{heading}</h2>")
    };
    for part in &entry.parts {
        let _ = match part {
            Part::Text(text) => writeln!(out, "<p>{}</p>", escaped(text.trim_end())),
            Part::Code(code) => writeln!(out, "<pre>{}</pre>", escaped(code.trim_end())),
        };
    }
    if folded {
        out.push_str("</details>\n");
    }
    out.push_str("</article>\n");
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // A control character is neither text nor allowed in a page.
            '\0' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Author, Entry, Part, Transcript};
    use proptest::prelude::*;

    #[test]
    fn what_was_said_stays_text() {
        let evil = "</p></article><script>alert(1)</script><img src=x onerror='y'>\" & \0";
        let transcript = Transcript {
            title: evil.to_owned(),
            facts: vec![("session", evil.to_owned())],
            entries: vec![Entry {
                author: Author::User,
                label: evil.to_owned(),
                note: evil.to_owned(),
                parts: vec![Part::Text(evil.to_owned()), Part::Code(evil.to_owned())],
            }],
        };
        let page = transcript.html();
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\0'));
        assert_eq!(page.matches("</article>").count(), 1);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    }

    proptest! {
        #[test]
        fn no_text_makes_a_tag(text in "\\PC*") {
            let with = |text: &str| {
                let transcript = Transcript {
                    title: text.to_owned(),
                    facts: Vec::new(),
                    entries: vec![Entry {
                        author: Author::Assistant,
                        label: text.to_owned(),
                        note: String::new(),
                        parts: vec![Part::Text(text.to_owned())],
                    }],
                };
                transcript.html().matches(['<', '>']).count()
            };
            prop_assert_eq!(with(&text), with("x"));
        }
    }
}
