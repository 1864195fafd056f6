//! Commands of two words such as `pinion hub serve`: their flags, their help and their functions.

use std::process::ExitCode;
use std::str::FromStr;

use crate::commands::out;
use crate::failure::Failure;
use pinion_spelling::nearest;

/// The `raw_after` of a command whose flags may stand anywhere.
pub(crate) const ALL_FLAGS: usize = usize::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    Value,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Flag {
    name: &'static str,
    short: &'static str,
    takes: Takes,
}

impl Flag {
    /// Creates a flag without a value.
    pub const fn bare(name: &'static str) -> Self {
        Self {
            name,
            short: "",
            takes: Takes::Nothing,
        }
    }

    /// Creates a flag with a value.
    pub const fn valued(name: &'static str) -> Self {
        Self {
            name,
            short: "",
            takes: Takes::Value,
        }
    }

    /// Adds a short form such as `-f`.
    pub const fn or(mut self, short: &'static str) -> Self {
        self.short = short;
        self
    }
}

#[derive(Debug)]
pub(crate) struct Verb {
    /// The words of the command, without the name of the program.
    pub name: &'static str,
    /// The accepted flags, in groups that commands share.
    pub flags: &'static [&'static [Flag]],
    /// The number of words after which all arguments are passed on unparsed, flags included.
    pub raw_after: usize,
    /// The text of `--help`.
    pub help: &'static str,
    pub run: fn(&Line) -> Result<ExitCode, Failure>,
}

impl Verb {
    /// Parses the arguments and runs the command, or prints its help.
    pub fn run(&'static self, arguments: &[String]) -> Result<ExitCode, Failure> {
        self.run_with(arguments, None)
    }

    /// Runs the command with text that was piped to it.
    pub fn run_with(
        &'static self,
        arguments: &[String],
        piped: Option<String>,
    ) -> Result<ExitCode, Failure> {
        match Line::read(self, arguments)? {
            Some(line) => (self.run)(&Line { piped, ..line }),
            None => out(self.help),
        }
    }

    /// Returns the last word of the name.
    pub fn word(&self) -> &'static str {
        self.name.rsplit(' ').next().unwrap_or(self.name)
    }

    fn flag(&self, written: &str) -> Option<Flag> {
        let mut flags = self.flags.iter().flat_map(|group| group.iter().copied());
        flags.find(|flag| flag.name == written || (!flag.short.is_empty() && flag.short == written))
    }
}

/// Commands with the same first word.
#[derive(Debug)]
pub(crate) struct Group {
    /// The first word.
    pub name: &'static str,
    /// The text of `--help`.
    pub help: &'static str,
    pub verbs: &'static [&'static Verb],
    /// The command to run if no command is named.
    pub otherwise: Option<&'static Verb>,
}

impl Group {
    /// Finds the command that `arguments` name, and runs it.
    pub fn run(&self, arguments: &[String]) -> Result<ExitCode, Failure> {
        let word = arguments.first().map(String::as_str);
        match (word, self.otherwise) {
            (Some("--help" | "-h" | "help"), _) | (None, None) => out(self.help),
            (None, Some(verb)) => verb.run(arguments),
            (Some(flag), Some(verb)) if flag.starts_with('-') => verb.run(arguments),
            (Some(word), _) => match self.verbs.iter().find(|verb| verb.word() == word) {
                Some(verb) => verb.run(&arguments[1..]),
                None => Err(self.unknown(word)),
            },
        }
    }

    fn unknown(&self, word: &str) -> Failure {
        let Self { name, .. } = self;
        let hint = match nearest(word, self.verbs.iter().map(|verb| verb.word())) {
            Some(nearest) => format!("Did you mean `pinion {name} {nearest}`?"),
            None => format!("`pinion {name} --help` lists the commands."),
        };
        Failure::usage(format!("Error: unknown command `{name} {word}`. {hint}"))
    }
}

/// A parsed command line.
#[derive(Debug)]
pub(crate) struct Line {
    verb: &'static Verb,
    flags: Vec<(&'static str, String)>,
    /// The arguments that are not flags.
    pub words: Vec<String>,
    /// The arguments that were not parsed.
    pub raw: Vec<String>,
    /// Text that was piped to the command.
    pub piped: Option<String>,
}

impl Line {
    /// Parses flags and words; `None` if help is requested.
    pub fn read(verb: &'static Verb, arguments: &[String]) -> Result<Option<Self>, Failure> {
        let mut line = Self {
            verb,
            flags: Vec::new(),
            words: Vec::new(),
            raw: Vec::new(),
            piped: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if line.words.len() >= verb.raw_after {
                line.raw.push(argument.clone());
                continue;
            }
            match argument.as_str() {
                "--help" | "-h" => return Ok(None),
                "--" => {
                    line.words.extend(rest.by_ref().cloned());
                }
                flag if flag.starts_with('-') && flag.len() > 1 => {
                    let (name, attached) = match flag.split_once('=') {
                        Some((name, value)) => (name, Some(value.to_owned())),
                        None => (flag, None),
                    };
                    let known = verb.flag(name).ok_or_else(|| line.unknown(name))?;
                    let value = match (known.takes, attached) {
                        (Takes::Nothing, None) => String::new(),
                        (Takes::Nothing, Some(_)) => {
                            return Err(line.wrong(&format!("{name} takes no value")));
                        }
                        (Takes::Value, Some(value)) => value,
                        (Takes::Value, None) => rest
                            .next()
                            .cloned()
                            .ok_or_else(|| line.wrong(&format!("{name} needs a value after it")))?,
                    };
                    line.flags.push((known.name, value));
                }
                _ => line.words.push(argument.clone()),
            }
        }
        Ok(Some(line))
    }

    fn unknown(&self, flag: &str) -> Failure {
        let known = self.verb.flags.iter().flat_map(|group| group.iter());
        let known = known.map(|flag| flag.name).chain(["--help"]);
        match nearest(flag, known) {
            Some(nearest) => self.wrong(&format!("unknown option {flag}, did you mean {nearest}")),
            None => self.wrong(&format!("unknown option {flag}")),
        }
    }

    /// Returns the failure for a wrong command line, with a reference to the help.
    pub fn wrong(&self, what: &str) -> Failure {
        let end = if what.contains("did you mean") {
            '?'
        } else {
            '.'
        };
        let name = self.verb.name;
        Failure::usage(format!("Error: {what}{end} See `pinion {name} --help`."))
    }

    /// Reports whether the flag is present.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|(name, _)| *name == flag)
    }

    /// Returns the value of a flag. The last one overrides the others.
    pub fn value(&self, flag: &str) -> Option<&str> {
        let mut named = self.flags.iter().rev().filter(|(name, _)| *name == flag);
        named.next().map(|(_, value)| value.as_str())
    }

    /// Returns all values of a flag that may be repeated.
    pub fn values(&self, flag: &str) -> impl Iterator<Item = &str> {
        let named = self.flags.iter().filter(move |(name, _)| *name == flag);
        named.map(|(_, value)| value.as_str())
    }

    /// Parses the value of a flag. `what` names the expected value in the error.
    pub fn parsed<T: FromStr>(&self, flag: &str, what: &str) -> Result<Option<T>, Failure> {
        let read = |text: &str| {
            let wrong = |_| self.wrong(&format!("{flag} needs {what}, not {text:?}"));
            text.parse().map_err(wrong)
        };
        self.value(flag).map(read).transpose()
    }

    pub fn name(&self) -> &'static str {
        self.verb.name
    }

    /// Returns the words if there are exactly `COUNT`.
    pub fn exactly<const COUNT: usize>(&self) -> Result<[&str; COUNT], Failure> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        words.try_into().map_err(|words: Vec<&str>| {
            let extra = words.get(COUNT);
            extra.map_or_else(|| self.missing(), |word| self.too_many(word))
        })
    }

    /// Returns the first word and the optional second one. Fails for another number of words.
    pub fn one_or_two(&self) -> Result<(&str, Option<&str>), Failure> {
        match self.words.as_slice() {
            [one] => Ok((one, None)),
            [one, two] => Ok((one, Some(two))),
            [] => Err(self.missing()),
            [_, _, third, ..] => Err(self.too_many(third)),
        }
    }

    /// Returns the optional word. Fails if there are more.
    pub fn at_most_one(&self) -> Result<Option<&str>, Failure> {
        match self.words.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            [_, second, ..] => Err(self.too_many(second)),
        }
    }

    fn too_many(&self, word: &str) -> Failure {
        self.wrong(&format!("{word:?} is one word too many"))
    }

    /// Returns the failure for a missing word, with the usage line of the help.
    fn missing(&self) -> Failure {
        let name = self.verb.name;
        let usage = format!("pinion {name} ");
        let shown = self.verb.help.lines().map(str::trim_start);
        let shown = shown
            .filter_map(|line| line.strip_prefix(&usage))
            .find_map(|rest| rest.split("  ").next());
        self.wrong(&match shown {
            Some(rest) => format!("{name} needs more than that: pinion {name} {}", rest.trim()),
            None => format!("{name} needs an argument"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERB: Verb = Verb {
        name: "hub serve",
        flags: &[&[Flag::valued("--port"), Flag::bare("--follow").or("-f")]],
        raw_after: usize::MAX,
        help: "help",
        run: |_| Ok(ExitCode::SUCCESS),
    };

    fn read(arguments: &[&str]) -> Result<Option<Line>, Failure> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        Line::read(&VERB, &arguments)
    }

    #[test]
    fn flags_and_words_may_be_mixed() {
        let line = read(&["a", "--port", "1", "-f", "--port=2", "--", "--x"]);
        let line = line.unwrap().unwrap();
        assert_eq!(line.words, ["a", "--x"]);
        assert_eq!(line.value("--port"), Some("2"));
        assert_eq!(line.values("--port").collect::<Vec<_>>(), ["1", "2"]);
        assert!(line.has("--follow"));
    }

    #[test]
    fn slips_are_answered_with_what_may_be_meant() {
        let said = |arguments: &[&str]| read(arguments).unwrap_err().to_string();
        assert!(said(&["--prot", "1"]).contains("did you mean --port?"));
        assert!(said(&["--port"]).contains("--port needs a value"));
        assert!(said(&["--follow=1"]).contains("takes no value"));
        assert!(read(&["x", "-h"]).unwrap().is_none());
    }
}
