//! Converts the words after `invoke ALIAS` to the input of a command.

use std::io::Read;

use pinion_proto::hub::CommandInfo;
use serde_json::{Map, Value};

use crate::clip::fields;

/// The member that receives text from standard input.
const STDIN: &str = "stdin";

/// The parsed words of the command line.
#[derive(Debug, Default)]
pub(crate) struct Words {
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
    whole: Option<String>,
    stdin: bool,
}

/// A command and its input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Input {
    pub command: String,
    /// JSON text.
    pub input: String,
}

impl Words {
    /// Parses the words after the alias.
    pub fn read(words: &[String]) -> Result<Self, String> {
        let mut read = Self::default();
        let mut rest = words.iter().peekable();
        let mut literal = false;
        match rest.peek().map(|word| word.as_str()) {
            Some(word) if super::is_help(word) => read.wants_help = true,
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
                    let filter = filter.ok_or("--jq needs a filter after it")?;
                    read.filter = Some(filter.clone());
                }
                word if !literal && word.starts_with("--jq=") => {
                    read.filter = Some(word["--jq=".len()..].to_owned());
                }
                word if !literal && super::is_help(word) => read.wants_help = true,
                "-" => read.stdin = true,
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
                        return Err(format!("{word:?} has no name before the ="));
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
        if self.whole.is_none() && !self.stdin {
            self.members.push((STDIN.to_owned(), Value::String(text)));
        }
    }

    /// Uses a single argument that is an object or a list as the whole input. Fails if it is not JSON.
    fn take_whole(&mut self) -> Result<(), String> {
        let alone = self.members.is_empty() && !self.stdin;
        if let ([word], true) = (self.positional.as_slice(), alone)
            && word.trim_start().starts_with(['{', '['])
        {
            if let Err(error) = serde_json::from_str::<Value>(word) {
                return Err(format!("the input is not JSON: {error}"));
            }
            self.whole = self.positional.pop();
        }
        Ok(())
    }

    /// Reports whether the manifest is required to interpret the remaining words.
    pub fn needs_manifest(&self) -> bool {
        !self.positional.is_empty()
    }

    /// Returns the input. `commands` define the names of words without a key.
    pub fn input(mut self, commands: &[CommandInfo]) -> Result<Input, String> {
        let mut command = self.command.take().unwrap_or_default();
        if let Some(next) = self.positional.first() {
            let longer = format!("{command} {next}");
            let known = |name: &str| commands.iter().any(|it| it.name == *name);
            if !known(&command) && known(&longer) {
                command = longer;
                self.positional.remove(0);
                self.take_whole()?;
            }
        }
        if let Some(input) = self.whole {
            return Ok(Input { command, input });
        }
        self.place(&command, commands)?;
        let mut members = gathered(self.members);
        if self.stdin {
            match from_stdin(members)? {
                Ok(whole) => {
                    return Ok(Input {
                        command,
                        input: whole,
                    });
                }
                Err(with) => members = with,
            }
        }
        let input = Value::Object(members).to_string();
        Ok(Input { command, input })
    }

    /// Assigns words without a key to the command's fields that are not given yet, in the order of the schema.
    fn place(&mut self, command: &str, commands: &[CommandInfo]) -> Result<(), String> {
        let about = commands.iter().find(|it| it.name == *command);
        let fields = about.map(|it| fields(&it.input)).unwrap_or_default();
        let is_given = |name: &str| self.members.iter().any(|(given, _)| given == name);
        let free: Vec<_> = fields.iter().filter(|it| !is_given(&it.name)).collect();
        for (position, word) in self.positional.drain(..).enumerate() {
            let field = free.get(position).ok_or_else(|| {
                format!("{word:?} has no name: write --KEY {word}; the clip does not say what else {command} takes")
            })?;
            let value = match field.kind == "string" {
                true => Value::String(word),
                false => guessed(&word),
            };
            self.members.push((field.name.clone(), value));
        }
        Ok(())
    }
}

/// Reads standard input. Returns it as the whole input if it is a JSON object or list and no member is given, else the
/// members with one more, `stdin`.
fn from_stdin(
    mut members: Map<String, Value>,
) -> Result<Result<String, Map<String, Value>>, String> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| format!("standard input cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        "standard input is not UTF-8; write it with `pinion clip data` instead".to_owned()
    })?;
    let is_structure = text.trim_start().starts_with(['{', '[']);
    if members.is_empty() && is_structure && serde_json::from_str::<Value>(&text).is_ok() {
        return Ok(Ok(text));
    }
    members.insert(STDIN.to_owned(), Value::String(text));
    Ok(Err(members))
}

fn is_key(word: &str) -> bool {
    word.len() > 2 && word.starts_with("--")
}

/// Returns the members as an object; the values of a repeated member become a list.
fn gathered(members: Vec<(String, Value)>) -> Map<String, Value> {
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

    fn words(typed: &[&str]) -> Words {
        let typed: Vec<String> = typed.iter().map(ToString::to_string).collect();
        Words::read(&typed).unwrap()
    }

    fn input(typed: &[&str]) -> Value {
        let input = words(typed).input(&[]).unwrap();
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
        assert!(Words::read(&alone).unwrap_err().contains("--jq needs"));
        assert!(words(&["add", "-h"]).wants_help);
        assert!(words(&["--help"]).wants_help);
        assert!(words(&[]).command.is_none());
    }

    fn commands() -> Vec<CommandInfo> {
        let schema = json!({
            "type": "object",
            "properties": {"done": {"type": "boolean"}, "title": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["title", "count"],
        });
        ["add", "note add"]
            .map(|name| CommandInfo {
                name: name.into(),
                input: schema.to_string().into(),
                ..CommandInfo::default()
            })
            .to_vec()
    }

    #[test]
    fn words_without_names_fill_what_is_needed() {
        let of = |typed: &[&str]| words(typed).input(&commands());
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
                .contains("\"more\"")
        );
        assert!(of(&["other", "a"]).is_err());
    }

    #[test]
    fn what_looks_like_an_input_and_is_none_is_said() {
        let typed = ["add".to_owned(), "{\"a\":".to_owned()];
        assert!(Words::read(&typed).unwrap_err().contains("not JSON"));
    }
}
