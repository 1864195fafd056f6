//! `schema`: the JSON Schema of a protocol's lines, as it is published in `docs/schemas`.

use std::io::Read;
use std::process::ExitCode;

use flate2::read::DeflateDecoder;
use pinion_pi::{Dialect, UnknownDialect};

use super::out;
use crate::failure::Failure;
use crate::nearest::nearest;

const PROTOCOLS: [&str; 2] = ["pi", "fleet"];
const USAGE: &str = "Usage: pinion schema pi [--dialect early|classic|modern | --multi-session]\n       pinion schema fleet";

/// A document that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Document {
    /// The lines of a dialect.
    Lines(Dialect),
    /// What `--multi-session` adds to them.
    Sessions,
    /// The report of a fleet.
    Fleet,
}

pub(super) fn run(arguments: &[String]) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    DeflateDecoder::new(packed(parse(arguments)?)).read_to_string(&mut text)?;
    out(&text)
}

fn packed(document: Document) -> &'static [u8] {
    macro_rules! packed {
        ($name:literal) => {
            include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".schema.json.deflate"))
        };
    }
    match document {
        Document::Lines(Dialect::Early) => packed!("pi-early"),
        Document::Lines(Dialect::Classic) => packed!("pi-classic"),
        Document::Lines(Dialect::Modern) => packed!("pi-modern"),
        Document::Sessions => packed!("pi-sessions"),
        Document::Fleet => packed!("fleet-report"),
    }
}

/// What is asked for.
fn parse(arguments: &[String]) -> Result<Document, Failure> {
    let mut protocol = None;
    let mut document = Document::Lines(Dialect::default());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let flag = argument.split_once('=').unwrap_or((argument, ""));
        match (argument.as_str(), flag) {
            ("--dialect", _) => {
                let name = rest.next().ok_or_else(|| {
                    Failure::usage(format!("Error: --dialect needs a name.\n{USAGE}"))
                })?;
                document = Document::Lines(named(name)?);
            }
            (_, ("--dialect", name)) => document = Document::Lines(named(name)?),
            ("--multi-session", _) => document = Document::Sessions,
            (word, _) if !word.starts_with('-') && protocol.is_none() => protocol = Some(word),
            (other, _) => {
                return Err(Failure::usage(format!(
                    "Error: {other} is not understood here.\n{USAGE}"
                )));
            }
        }
    }
    match protocol {
        Some("fleet") => Ok(Document::Fleet),
        Some(word) if PROTOCOLS.contains(&word) => Ok(document),
        Some(word) => Err(Failure::usage(match nearest(word, PROTOCOLS.into_iter()) {
            Some(nearest) => {
                format!("Error: there is no protocol \"{word}\". Did you mean {nearest}?")
            }
            None => format!("Error: there is no protocol \"{word}\"; use pi or fleet."),
        })),
        None => Err(Failure::usage(USAGE)),
    }
}

fn named(name: &str) -> Result<Dialect, Failure> {
    name.parse().map_err(|error: UnknownDialect| {
        let names = Dialect::ALL.map(Dialect::name);
        Failure::usage(match nearest(name, names.into_iter()) {
            Some(nearest) => format!("Error: {error}. Did you mean {nearest}?"),
            None => format!("Error: {error}."),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &str) -> Result<Document, String> {
        let arguments: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        parse(&arguments).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn a_dialect_is_named_or_classic() {
        assert_eq!(asked("pi"), Ok(Document::Lines(Dialect::Classic)));
        assert_eq!(
            asked("pi --dialect early"),
            Ok(Document::Lines(Dialect::Early))
        );
        assert_eq!(
            asked("--dialect=modern pi"),
            Ok(Document::Lines(Dialect::Modern))
        );
        assert_eq!(asked("pi --multi-session"), Ok(Document::Sessions));
    }

    #[test]
    fn a_slip_is_answered_with_what_may_be_meant() {
        for (words, part) in [
            ("pi --dialect modren", "Did you mean modern?"),
            ("pi --dialect clasic", "Did you mean classic?"),
            ("pi --dialect x", "use early, classic or modern"),
            ("pi --dialect", "needs a name"),
            ("pinochio", "there is no protocol"),
            ("pi --rpc-dialect early", "--rpc-dialect is not understood"),
            ("pi extra", "extra is not understood"),
            ("", "Usage"),
        ] {
            let error = asked(words).unwrap_err();
            assert!(error.contains(part), "{words}: {error}");
        }
    }
}
