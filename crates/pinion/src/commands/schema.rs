//! `schema`: the JSON Schema of a protocol's lines, as it is published in `docs/schemas`.

use std::io::Read;
use std::process::ExitCode;

use flate2::read::DeflateDecoder;
use pinion_pi::{Dialect, UnknownDialect};

use super::out;
use crate::failure::Failure;
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::nearest;

const PROTOCOLS: [&str; 2] = ["pi", "fleet"];

/// A document that the command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Document {
    /// The lines of a dialect.
    Lines(Dialect),
    /// The lines that `--multi-session` adds.
    Sessions,
    /// The report of a fleet.
    Fleet,
}

pub(super) const VERB: Verb = Verb::new("pinion", &tables::commands::SCHEMA, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    DeflateDecoder::new(packed(asked(line)?)).read_to_string(&mut text)?;
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

/// Returns the document that the command line names.
fn asked(line: &Line) -> Result<Document, Failure> {
    let [protocol] = line.exactly()?;
    let dialect = line.value("--dialect").map(named).transpose()?;
    let sessions = line.has("--multi-session");
    match (protocol, dialect) {
        ("pi", _) if sessions => Ok(Document::Sessions),
        ("pi", dialect) => Ok(Document::Lines(dialect.unwrap_or_default())),
        ("fleet", None) if !sessions => Ok(Document::Fleet),
        ("fleet", _) => Err(line.wrong("fleet takes no options")),
        (word, _) => Err(match nearest(word, PROTOCOLS) {
            Some(nearest) => {
                line.wrong(format!("unknown protocol {word:?}, did you mean {nearest}"))
            }
            None => line.wrong(format!("unknown protocol {word:?}; use pi or fleet")),
        }),
    }
}

fn named(name: &str) -> Result<Dialect, Failure> {
    name.parse().map_err(|_: UnknownDialect| {
        let [first, second, third] = Dialect::ALL.map(Dialect::name);
        let problem = format!("unknown dialect {name:?}; use {first}, {second} or {third}.");
        let failure = Failure::usage(problem);
        match nearest(name, [first, second, third]) {
            Some(nearest) => failure.hint(format!("Did you mean {nearest}?")),
            None => failure,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Document, String> {
        let arguments: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let line = Line::read(&VERB, &arguments).map_err(|failure| failure.to_string())?;
        asked(&line.unwrap()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_dialect_is_named_or_classic() {
        assert_eq!(read("pi"), Ok(Document::Lines(Dialect::Classic)));
        assert_eq!(
            read("pi --dialect early"),
            Ok(Document::Lines(Dialect::Early))
        );
        assert_eq!(
            read("--dialect=modern pi"),
            Ok(Document::Lines(Dialect::Modern))
        );
        assert_eq!(read("pi --multi-session"), Ok(Document::Sessions));
    }

    #[test]
    fn a_slip_is_answered_with_what_may_be_meant() {
        for (words, part) in [
            ("pi --dialect modren", "Did you mean modern?"),
            ("pi --dialect clasic", "Did you mean classic?"),
            ("pi --dialect x", "use early, classic or modern"),
            ("pi --dialect", "--dialect needs a value"),
            ("pinochio", "unknown protocol \"pinochio\""),
            ("pi --rpc-dialect early", "unknown option --rpc-dialect"),
            ("pi extra", "\"extra\" is one word too many"),
            ("fleet --multi-session", "fleet takes no options"),
            ("", "PROTOCOL is missing: pinion schema pi"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(part), "{words}: {error}");
        }
    }
}
