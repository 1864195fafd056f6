//! Parses a command line: the command's own fields and the program's options, by one set of rules.

use std::collections::BTreeMap;

use crate::built_in::BuiltIn;
use crate::command::Command;
use crate::command_line::CommandLine;
use crate::convert;
use crate::error::CommandError;
use crate::field::{Field, FieldType, variable};
use crate::parsed::{BuiltInValue, BuiltInValues, Parsed, Source};
use crate::world::World;
use pinion_text::nearest;

/// Options that print information about a command. With them, no field is required.
const INFORMATION_OPTIONS: &[&str] =
    &["help", "long-help", "version", "print-yaml", "print-schema"];

/// An option of the command or of the program.
#[derive(Clone)]
struct KnownOption<'k> {
    option: String,
    short: Option<char>,
    kind: FieldType,
    choices: Vec<&'k str>,
}

/// The positional words of one field.
type PositionalWords = (Vec<String>, Source);

/// The texts given for each option and argument.
#[derive(Default)]
struct GivenTexts {
    options: BTreeMap<String, Vec<String>>,
    positional: Vec<String>,
}

impl Command {
    /// Parses a command line.
    ///
    /// Options may stand anywhere; `--` ends them. The value of a field comes from the command line, else from its
    /// positional argument, else from the alias, else from `PINOCCHIO_…`, else from its default. With `--help` and
    /// other options that only print information, fields are neither read nor required.
    pub fn parse(
        &self,
        line: &CommandLine,
        built_ins: &[BuiltIn],
        world: &mut World,
    ) -> Result<Parsed, CommandError> {
        let known = self.known(built_ins);
        let written = scan(&line.words, &known)?;
        let builtin = built_in_values(built_ins, &written, line, world)?;
        let claiming = |option: &&BuiltIn| option.claims_stdin && builtin.flag(option.name);
        if let Some(option) = built_ins.iter().find(claiming) {
            world.claim_stdin(option.name);
        }
        let looking = INFORMATION_OPTIONS.iter().any(|name| builtin.flag(name));
        let mut parsed = Parsed {
            values: BTreeMap::new(),
            sources: BTreeMap::new(),
            builtin,
        };
        for name in line.flags.keys() {
            let option = name.replace('_', "-");
            if !known.iter().any(|known| known.option == option) {
                return Err(unknown(&format!("--{option}"), &option, &known));
            }
        }
        if looking {
            return Ok(parsed);
        }
        let mut missing = Vec::new();
        let positional = self.positional(&written, line)?;
        for (field, argument) in self.fields().zip(positional) {
            match field_value(field, &written, argument, line, world)? {
                Some((value, source)) => {
                    parsed.values.insert(field.name.clone(), value);
                    parsed.sources.insert(field.name.clone(), source);
                }
                None if field.required && self.arguments.contains(field) => {
                    missing.push(format!("<{}>", field.name));
                }
                None if field.required => missing.push(format!("--{}", field.option())),
                None => {}
            }
        }
        if !missing.is_empty() {
            return Err(CommandError::Required { names: missing });
        }
        Ok(parsed)
    }

    fn known<'k>(&'k self, built_ins: &'k [BuiltIn]) -> Vec<KnownOption<'k>> {
        let own = self.fields().map(|field| KnownOption {
            option: field.option(),
            short: field.short,
            kind: field.kind,
            choices: field.choices.iter().map(String::as_str).collect(),
        });
        let program = built_ins.iter().map(|option| KnownOption {
            option: option.name.to_owned(),
            short: option.short,
            kind: option.kind,
            choices: option.choices.to_vec(),
        });
        own.chain(program).collect()
    }

    /// Returns the words for each field, in the order of [`Command::fields`]: none for flags.
    fn positional(
        &self,
        written: &GivenTexts,
        line: &CommandLine,
    ) -> Result<Vec<Option<PositionalWords>>, CommandError> {
        let (words, source) = if written.positional.is_empty() {
            (&line.arguments, Source::Alias)
        } else {
            (&written.positional, Source::Argument)
        };
        let mut rest = words.as_slice();
        let mut shares: Vec<Option<PositionalWords>> = vec![None; self.flags.len()];
        for field in &self.arguments {
            let count = if field.kind.is_list() {
                rest.len()
            } else {
                1.min(rest.len())
            };
            let (share, after) = rest.split_at(count);
            rest = after;
            shares.push((!share.is_empty()).then(|| (share.to_vec(), source)));
        }
        match rest.first() {
            None => Ok(shares),
            Some(extra) => Err(CommandError::TooMany {
                argument: extra.clone(),
                takes: match self.arguments.len() {
                    0 => "no arguments".to_owned(),
                    _ => self
                        .arguments
                        .iter()
                        .map(|field| format!("<{}>", field.name))
                        .collect::<Vec<_>>()
                        .join(" "),
                },
            }),
        }
    }
}

fn unknown(option: &str, name: &str, known: &[KnownOption<'_>]) -> CommandError {
    CommandError::UnknownOption {
        option: option.to_owned(),
        suggestion: nearest(name, known.iter().map(|known| known.option.as_str()))
            .map(|near| format!("--{near}")),
    }
}

/// Splits words into options and positional arguments.
fn scan(words: &[String], known: &[KnownOption<'_>]) -> Result<GivenTexts, CommandError> {
    let mut written = GivenTexts::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            written.positional.extend(words.by_ref().cloned());
        } else if let Some(rest) = word.strip_prefix("--") {
            let (name, value) = match rest.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (rest, None),
            };
            let Some(option) = known.iter().find(|known| known.option == name) else {
                return Err(unknown(&format!("--{name}"), name, known));
            };
            let shown = format!("--{name}");
            let value = value_of(option, &shown, value, &mut words)?;
            written.put(option, value);
        } else if word.len() > 1 && word.starts_with('-') && !is_number(word) {
            letters(&word[1..], known, &mut words, &mut written)?;
        } else {
            written.positional.push(word.clone());
        }
    }
    Ok(written)
}

/// Counts the words at the beginning of a line that are options of the program, with their values.
///
/// They may come before the words of a command, whose own options are not known yet.
pub fn leading_options(words: &[String], built_ins: &[BuiltIn]) -> usize {
    let mut count = 0;
    while let Some(word) = words.get(count) {
        let (name, has_value) = match word.split_once('=') {
            Some((name, _)) => (name, true),
            None => (word.as_str(), false),
        };
        let letter = |option: &BuiltIn| option.short.map(|letter| format!("-{letter}"));
        let option = built_ins.iter().find(|option| {
            name.strip_prefix("--") == Some(option.name) || letter(option).as_deref() == Some(name)
        });
        let Some(option) = option else { break };
        count += if has_value || option.kind.is_flag() {
            1
        } else {
            2
        };
    }
    count.min(words.len())
}

/// `-v`, `-n 3`, `-n3`, `-n=3`, `-abc`.
fn letters(
    letters: &str,
    known: &[KnownOption<'_>],
    words: &mut std::slice::Iter<'_, String>,
    written: &mut GivenTexts,
) -> Result<(), CommandError> {
    for (at, letter) in letters.char_indices() {
        let shown = format!("-{letter}");
        let Some(option) = known.iter().find(|known| known.short == Some(letter)) else {
            // Probably an option with one dash instead of two.
            return Err(unknown(&format!("-{letters}"), letters, known));
        };
        let rest = &letters[at + letter.len_utf8()..];
        let attached = match rest.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if rest.is_empty() || option.kind.is_flag() => None,
            None => Some(rest.to_owned()),
        };
        let ends = attached.is_some();
        let value = value_of(option, &shown, attached, words)?;
        written.put(option, value);
        if ends {
            break;
        }
    }
    Ok(())
}

/// Reports whether a word is a negative number, which is an argument and not an option.
fn is_number(word: &str) -> bool {
    word.parse::<f64>().is_ok()
}

fn value_of(
    option: &KnownOption<'_>,
    shown: &str,
    attached: Option<String>,
    words: &mut std::slice::Iter<'_, String>,
) -> Result<String, CommandError> {
    match attached {
        Some(value) => Ok(value),
        None if option.kind.is_flag() => Ok("true".to_owned()),
        None => words
            .next()
            .cloned()
            .ok_or_else(|| CommandError::MissingValue {
                option: shown.to_owned(),
                expected: if option.choices.is_empty() {
                    option.kind.expected().to_owned()
                } else {
                    format!("one of {}", option.choices.join(", "))
                },
            }),
    }
}

impl GivenTexts {
    fn put(&mut self, option: &KnownOption<'_>, value: String) {
        let values = self.options.entry(option.option.clone()).or_default();
        if option.kind.is_list() {
            values.extend(split(option.kind, &value));
        } else {
            *values = vec![value];
        }
    }
}

/// Splits a list at its commas; a file of pairs stays one word.
fn split(kind: FieldType, text: &str) -> Vec<String> {
    if kind == FieldType::KeyValue && text.starts_with('@') {
        return vec![text.to_owned()];
    }
    crate::tables::items(text)
}

fn given(kind: FieldType, text: &str) -> Vec<String> {
    if kind.is_list() {
        convert::listed(text)
    } else {
        vec![text.to_owned()]
    }
}

fn bad(name: impl Into<String>) -> impl FnOnce(String) -> CommandError {
    let name = name.into();
    move |reason| CommandError::BadValue { name, reason }
}

fn field_value(
    field: &Field,
    written: &GivenTexts,
    argument: Option<PositionalWords>,
    line: &CommandLine,
    world: &mut World,
) -> Result<Option<(pinion_templates::Value, Source)>, CommandError> {
    let choices: Vec<&str> = field.choices.iter().map(String::as_str).collect();
    let option = field.option();
    let (texts, source, name) = if let Some(texts) = written.options.get(&option) {
        (texts.clone(), Source::CommandLine, format!("--{option}"))
    } else if let Some((texts, source)) = argument {
        (texts, source, format!("<{}>", field.name))
    } else if let Some(text) = line
        .flags
        .get(&field.name)
        .or_else(|| line.flags.get(&option))
    {
        (
            given(field.kind, text),
            Source::Alias,
            format!("--{option}"),
        )
    } else if let Some(text) = (world.environment)(&field.variable()) {
        (
            given(field.kind, &text),
            Source::Environment,
            field.variable(),
        )
    } else if let Some(default) = &field.default {
        let value = convert::default_value(field, default, world)
            .map_err(bad(format!("default of {}", field.name)))?;
        return Ok(Some((value, Source::Default)));
    } else {
        return Ok(None);
    };
    let value = convert::value(field.kind, &choices, &texts, world).map_err(bad(name))?;
    Ok(Some((value, source)))
}

fn built_in_values(
    built_ins: &[BuiltIn],
    written: &GivenTexts,
    line: &CommandLine,
    world: &mut World,
) -> Result<BuiltInValues, CommandError> {
    let mut values = BuiltInValues::default();
    for option in built_ins {
        let (texts, source, name) = if let Some(texts) = written.options.get(option.name) {
            (
                texts.clone(),
                Source::CommandLine,
                format!("--{}", option.name),
            )
        } else if let Some(text) = line.flags.get(option.name) {
            (
                given(option.kind, text),
                Source::Alias,
                format!("--{}", option.name),
            )
        } else if let Some(text) = (world.environment)(&variable(option.name)) {
            (
                given(option.kind, &text),
                Source::Environment,
                variable(option.name),
            )
        } else if let Some(default) = option.default {
            (
                given(option.kind, default),
                Source::Default,
                format!("--{}", option.name),
            )
        } else {
            continue;
        };
        let texts: Vec<String> = texts
            .into_iter()
            .map(|text| as_listed(option.choices, text))
            .collect();
        let value =
            convert::value(option.kind, option.choices, &texts, world).map_err(bad(name))?;
        values.slots.insert(
            option.name.to_owned(),
            BuiltInValue {
                kind: option.kind,
                value,
                source,
            },
        );
    }
    Ok(values)
}

/// Returns a choice in the spelling of its list: `JSONL` becomes `jsonl`.
fn as_listed(choices: &[&str], text: String) -> String {
    let same = |choice: &&&str| choice.eq_ignore_ascii_case(&text);
    match choices.iter().find(same) {
        Some(choice) => (*choice).to_owned(),
        None => text,
    }
}
