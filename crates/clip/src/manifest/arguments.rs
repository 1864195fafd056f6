//! Words of a command line as the input of a clip's command: `add --title "Buy milk" --done`.

use std::io::Read;

use serde_json::{Map, Value};

use super::Command;
use super::fields::input_fields;
use crate::ClipError;

/// The member that receives text from standard input.
const STDIN: &str = "stdin";

/// The parsed words that call a command.
#[derive(Debug, Default)]
pub struct Arguments {
    /// The first word of the command; the manifest may add a second one.
    pub command: Option<String>,
    /// `--help` is present.
    pub wants_help: bool,
    /// `--stream` is present.
    pub stream: bool,
    /// `--json` is present.
    pub json: bool,
    /// The value of `--jq`.
    pub filter: Option<String>,
    members: Vec<(String, Value)>,
    positional: Vec<String>,
    /// The whole input, as JSON text.
    whole: Option<String>,
    /// The word `-` is present: standard input is the input, or a member of it.
    reads_stdin: bool,
}

/// A command and its input.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandInput {
    pub command: String,
    /// JSON text.
    pub input: String,
}

impl Arguments {
    /// Parses the words after the alias of the clip.
    pub fn read(words: &[String]) -> Result<Self, ClipError> {
        let mut read = Self::default();
        let mut rest = words.iter().peekable();
        let mut literal = false;
        match rest.peek().map(|word| word.as_str()) {
            Some(word) if is_help(word) => read.wants_help = true,
            Some(_) => read.command = rest.next().cloned(),
            None => {}
        }
        while let Some(word) = rest.next() {
            match word.as_str() {
                "--" if !literal => literal = true,
                "--stream" if !literal => read.stream = true,
                "--json" if !literal => read.json = true,
                "--jq" if !literal => {
                    let filter = rest.next_if(|next| !is_key(next));
                    let filter =
                        filter.ok_or_else(|| ClipError::invalid("--jq needs a filter after it"))?;
                    read.filter = Some(filter.clone());
                }
                word if !literal && word.starts_with("--jq=") => {
                    read.filter = Some(word["--jq=".len()..].to_owned());
                }
                word if !literal && is_help(word) => read.wants_help = true,
                "-" => read.reads_stdin = true,
                word if word.len() > 2 && word.starts_with("--") => {
                    let key = &word[2..];
                    let (key, value) = match key.split_once('=') {
                        Some((key, value)) => (key, guessed(value)),
                        None => match rest.next_if(|next| !is_key(next)) {
                            Some(value) => (key, guessed(value)),
                            None => (key, Value::Bool(true)),
                        },
                    };
                    if key.is_empty() {
                        let message = format!("{word:?} has no name before the =");
                        return Err(ClipError::invalid(message));
                    }
                    read.members.push((key.to_owned(), value));
                }
                word => read.positional.push(word.to_owned()),
            }
        }
        read.take_whole()?;
        Ok(read)
    }

    /// Adds text as the member `stdin`, unless the input is already complete or reads standard input itself.
    pub fn take_text(&mut self, text: String) {
        if self.whole.is_none() && !self.reads_stdin {
            self.members.push((STDIN.to_owned(), Value::String(text)));
        }
    }

    /// Uses a single argument that is an object or a list as the whole input. Fails if it is not JSON.
    fn take_whole(&mut self) -> Result<(), ClipError> {
        let alone = self.members.is_empty() && !self.reads_stdin;
        if let ([word], true) = (self.positional.as_slice(), alone)
            && word.trim_start().starts_with(['{', '['])
        {
            if let Err(error) = serde_json::from_str::<Value>(word) {
                let message = format!("the input is not JSON: {error}");
                return Err(ClipError::invalid(message));
            }
            self.whole = self.positional.pop();
        }
        Ok(())
    }

    /// Reports whether the manifest is required to interpret the remaining words.
    pub fn needs_manifest(&self) -> bool {
        !self.positional.is_empty()
    }

    /// Returns the input. `commands` define the names of words without a key; `stdin` is read if the words ask for it.
    pub fn input(
        mut self,
        commands: &[Command],
        stdin: impl Read,
    ) -> Result<CommandInput, ClipError> {
        let mut command = self.command.take().unwrap_or_default();
        if let Some(next) = self.positional.first() {
            let longer = format!("{command} {next}");
            let known = |name: &str| commands.iter().any(|it| it.name == name);
            if !known(&command) && known(&longer) {
                command = longer;
                self.positional.remove(0);
                self.take_whole()?;
            }
        }
        if let Some(input) = self.whole {
            return Ok(CommandInput { command, input });
        }
        self.name_positional(&command, commands)?;
        let members = collect_members(self.members);
        let input = if self.reads_stdin {
            with_stdin(members, stdin)?
        } else {
            Value::Object(members).to_string()
        };
        Ok(CommandInput { command, input })
    }

    /// Assigns words without a key to the command's fields that are not given yet, in the order of the schema.
    fn name_positional(&mut self, command: &str, commands: &[Command]) -> Result<(), ClipError> {
        let known = commands.iter().find(|it| it.name == command);
        let fields = known.map(|it| input_fields(&it.input)).unwrap_or_default();
        let is_given = |name: &str| self.members.iter().any(|(given, _)| given == name);
        let free: Vec<_> = fields.iter().filter(|it| !is_given(&it.name)).collect();
        for (position, word) in self.positional.drain(..).enumerate() {
            let field = free.get(position).ok_or_else(|| {
                ClipError::invalid(format!(
                    "{word:?} has no name: write --KEY {word}; the clip describes no further input of {command}"
                ))
            })?;
            let value = if field.kind == "string" {
                Value::String(word)
            } else {
                guessed(&word)
            };
            self.members.push((field.name.clone(), value));
        }
        Ok(())
    }
}

/// Reads `stdin` and returns the input: the text itself if it is a JSON object or list and no member is given, else the
/// members with one more, `stdin`.
fn with_stdin(mut members: Map<String, Value>, mut stdin: impl Read) -> Result<String, ClipError> {
    let mut bytes = Vec::new();
    let read = stdin.read_to_end(&mut bytes);
    read.map_err(|error| ClipError::invalid(format!("standard input cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        ClipError::invalid("standard input is not UTF-8; write it with `pinion clip data` instead")
    })?;
    let is_structure = text.trim_start().starts_with(['{', '[']);
    if members.is_empty() && is_structure && serde_json::from_str::<Value>(&text).is_ok() {
        return Ok(text);
    }
    members.insert(STDIN.to_owned(), Value::String(text));
    Ok(Value::Object(members).to_string())
}

/// Reports whether `word` asks for help.
fn is_help(word: &str) -> bool {
    matches!(word, "--help" | "-h")
}

fn is_key(word: &str) -> bool {
    word.len() > 2 && word.starts_with("--")
}

/// Returns the members as an object; the values of a repeated member become a list.
fn collect_members(members: Vec<(String, Value)>) -> Map<String, Value> {
    let mut object = Map::new();
    let mut several: Vec<String> = Vec::new();
    for (key, value) in members {
        match object.get_mut(&key) {
            None => {
                object.insert(key, value);
            }
            Some(Value::Array(list)) if several.contains(&key) => list.push(value),
            Some(one) => {
                *one = Value::Array(vec![one.take(), value]);
                several.push(key);
            }
        }
    }
    object
}

/// Parses a value as `true`, `false`, a number, an object or a list, else as text.
fn guessed(text: &str) -> Value {
    let parsed = || serde_json::from_str(text).ok();
    let looks_like_json = match text {
        "true" | "false" => true,
        text if text.starts_with(['{', '[']) => true,
        // A number that would not be printed as it was typed stays text: 007, 1e400, 9007199254740993.0…
        text => is_number(text),
    };
    match looks_like_json.then(parsed).flatten() {
        Some(Value::Number(number)) if number.to_string() != text && !is_same(&number, text) => {
            Value::String(text.to_owned())
        }
        Some(value) => value,
        None => Value::String(text.to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|first: char| first.is_ascii_digit())
}

/// Reports whether a number has the typed value in another notation, such as `1.50` or `1e3`.
fn is_same(number: &serde_json::Number, text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    digits <= 15
        && number
            .as_f64()
            .is_some_and(|value| text.parse() == Ok(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn words(typed: &[&str]) -> Arguments {
        let typed: Vec<String> = typed.iter().map(ToString::to_string).collect();
        Arguments::read(&typed).unwrap()
    }

    fn input(typed: &[&str]) -> Value {
        let input = words(typed).input(&[], std::io::empty()).unwrap();
        assert_eq!(input.command, typed[0]);
        serde_json::from_str(&input.input).unwrap()
    }

    #[test]
    fn members_are_what_they_look_like() {
        for (typed, expected) in [
            (&["add"][..], json!({})),
            (
                &["add", "--title", "Buy milk"],
                json!({"title": "Buy milk"}),
            ),
            (&["add", "--title=a=b"], json!({"title": "a=b"})),
            (
                &["add", "--n", "3", "--x", "-1.5", "--e", "1e3"],
                json!({"n": 3, "x": -1.5, "e": 1000.0}),
            ),
            (&["add", "--done"], json!({"done": true})),
            (
                &["add", "--done", "--title", "x"],
                json!({"done": true, "title": "x"}),
            ),
            (&["add", "--done", "false"], json!({"done": false})),
            (
                &["add", "--t", "a", "--t", "b", "--t", "c"],
                json!({"t": ["a", "b", "c"]}),
            ),
            (
                &["add", "--t", "[1]", "--t", "[2]"],
                json!({"t": [[1], [2]]}),
            ),
            (
                &["add", "--o", "{\"a\":[1]}", "--bad", "{x"],
                json!({"o": {"a": [1]}, "bad": "{x"}),
            ),
            (
                &["add", "--zip", "007", "--id", "12345678901234567890123"],
                json!({"zip": "007", "id": "12345678901234567890123"}),
            ),
            (
                &["add", "--v", "1.2.3", "--d", "2026-01-02"],
                json!({"v": "1.2.3", "d": "2026-01-02"}),
            ),
            (&["add", "{\"a\":1}"], json!({"a": 1})),
            (&["add", "[1,2]"], json!([1, 2])),
            (
                &["add", "--", "--json", "yes", "--stream", "--jq", "."],
                json!({"json": "yes", "stream": true, "jq": "."}),
            ),
            (&["add", "--json=x"], json!({"json": "x"})),
        ] {
            assert_eq!(input(typed), expected, "{typed:?}");
        }
    }

    #[test]
    fn flags_of_ours_may_stand_at_the_end() {
        let read = words(&["add", "--title", "x", "--stream", "--json"]);
        assert!(read.stream && read.json && !read.wants_help);
        for typed in [&["add", "--jq", "-1", "x"][..], &["add", "--jq=-1", "x"]] {
            let read = words(typed);
            assert_eq!(read.filter.as_deref(), Some("-1"));
            assert_eq!(read.positional, ["x"]);
        }
        let alone = ["add".to_owned(), "--jq".to_owned()];
        assert!(
            Arguments::read(&alone)
                .unwrap_err()
                .message
                .contains("--jq needs")
        );
        assert!(words(&["add", "-h"]).wants_help);
        assert!(words(&["--help"]).wants_help);
        assert!(words(&[]).command.is_none());
    }

    fn commands() -> Vec<Command> {
        let schema = json!({
            "type": "object",
            "properties": {"done": {"type": "boolean"}, "title": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["title", "count"],
        });
        ["add", "note add"]
            .map(|name| Command {
                name: name.into(),
                input: schema.to_string(),
                ..Command::default()
            })
            .to_vec()
    }

    #[test]
    fn words_without_names_fill_what_is_needed() {
        let of = |typed: &[&str]| words(typed).input(&commands(), std::io::empty());
        let add = of(&["add", "007", "3"]).unwrap();
        assert_eq!(add.input, json!({"title": "007", "count": 3}).to_string());
        let grouped = of(&["note", "add", "x", "--count", "2"]).unwrap();
        assert_eq!(grouped.command, "note add");
        assert_eq!(
            serde_json::from_str::<Value>(&grouped.input).unwrap(),
            json!({"title": "x", "count": 2})
        );
        let whole = of(&["note", "add", "{\"a\":1}"]).unwrap();
        assert_eq!(
            (whole.command.as_str(), whole.input.as_str()),
            ("note add", "{\"a\":1}")
        );
        assert!(
            of(&["add", "a", "1", "true", "more"])
                .unwrap_err()
                .message
                .contains("\"more\"")
        );
        assert!(of(&["other", "a"]).is_err());
    }

    #[test]
    fn what_looks_like_an_input_and_is_none_is_said() {
        let typed = ["add".to_owned(), "{\"a\":".to_owned()];
        assert!(
            Arguments::read(&typed)
                .unwrap_err()
                .message
                .contains("not JSON")
        );
    }
}
