//! Questions that the next line answers.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::request::{Dialog, DialogKind};

/// The open questions; the first has been printed.
#[derive(Debug, Default)]
pub(super) struct Questions {
    waiting: VecDeque<(Dialog, Option<Instant>)>,
}

/// The id of the answered dialog, and the answer.
pub(super) type Answered = (String, Map<String, Value>);

impl Questions {
    pub fn is_open(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Adds a question. Returns its text if it is the first.
    pub fn push(&mut self, dialog: Dialog) -> Option<String> {
        let ends = dialog.timeout.map(|timeout| Instant::now() + timeout);
        let is_first = self.waiting.is_empty();
        let words = is_first.then(|| asked(&dialog));
        self.waiting.push_back((dialog, ends));
        words
    }

    /// Waits until a question expires; forever if none has a timeout.
    pub async fn over(&self) {
        let ends = self.waiting.iter().filter_map(|(_, ends)| *ends).min();
        match ends {
            Some(ends) => tokio::time::sleep_until(ends.into()).await,
            None => std::future::pending().await,
        }
    }

    /// Drops expired questions. Returns the text to print if the printed question was among them.
    pub fn drop_overdue(&mut self) -> Option<String> {
        let now = Instant::now();
        let first = self.waiting.front().map(|(dialog, _)| dialog.id.clone())?;
        self.waiting
            .retain(|(_, ends)| ends.is_none_or(|ends| ends > now));
        match self.waiting.front() {
            Some((dialog, _)) if dialog.id == first => None,
            next => {
                let next = next.map(|(dialog, _)| asked(dialog));
                Some(format!(
                    "The question has expired.\n{}",
                    next.unwrap_or_default()
                ))
            }
        }
    }

    /// Uses a line as the answer to the first question. Returns the answer, if the line is valid,
    /// and the text to print.
    pub fn answer(&mut self, line: &str) -> (Option<Answered>, String) {
        let Some((dialog, _)) = self.waiting.front() else {
            return (None, String::new());
        };
        let response = match meaning(&dialog.kind, line.trim()) {
            Ok(response) => response,
            Err(problem) => return (None, format!("{problem}\n")),
        };
        let id = dialog.id.clone();
        self.waiting.pop_front();
        let next = self.waiting.front().map(|(dialog, _)| asked(dialog));
        let response = match response {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        (Some((id, response)), next.unwrap_or_default())
    }
}

/// The text of a question.
fn asked(dialog: &Dialog) -> String {
    let mut words = format!("Question: {}\n", dialog.title);
    // Writing to a string cannot fail.
    let _ = match &dialog.kind {
        DialogKind::Select(options) => {
            for (number, option) in (1..).zip(options) {
                let _ = writeln!(words, "  {number}. {option}");
            }
            writeln!(words, "Answer with a number; an empty line cancels.")
        }
        DialogKind::Confirm { message } => {
            writeln!(words, "{message}\nAnswer yes or no.")
        }
        DialogKind::Input { placeholder } if !placeholder.is_empty() => {
            writeln!(words, "({placeholder}) An empty line cancels.")
        }
        DialogKind::Input { .. } => writeln!(words, "An empty line cancels."),
        DialogKind::Editor { prefill } => {
            writeln!(
                words,
                "{prefill}\nAnswer with a line; an empty line cancels."
            )
        }
    };
    words
}

/// Parses a line as an answer.
fn meaning(kind: &DialogKind, line: &str) -> Result<Value, String> {
    let cancelled = json!({"cancelled": true});
    match kind {
        DialogKind::Confirm { .. } => match line.to_lowercase().as_str() {
            "y" | "yes" => Ok(json!({"confirmed": true})),
            "n" | "no" => Ok(json!({"confirmed": false})),
            "" => Ok(cancelled),
            _ => Err("Answer yes or no.".to_owned()),
        },
        _ if line.is_empty() => Ok(cancelled),
        DialogKind::Select(options) => {
            let named = options.iter().find(|option| option.as_str() == line);
            let numbered = line
                .parse::<usize>()
                .ok()
                .and_then(|number| options.get(number.checked_sub(1)?));
            match named.or(numbered) {
                Some(option) => Ok(json!({"value": option})),
                None => Err(format!("Answer with a number from 1 to {}.", options.len())),
            }
        }
        DialogKind::Input { .. } | DialogKind::Editor { .. } => Ok(json!({"value": line})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select() -> DialogKind {
        DialogKind::Select(vec!["Allow once".to_owned(), "Refuse".to_owned()])
    }

    #[test]
    fn lines_are_answers() {
        let confirm = DialogKind::Confirm {
            message: String::new(),
        };
        for (kind, line, expected) in [
            (select(), "2", json!({"value": "Refuse"})),
            (select(), "Allow once", json!({"value": "Allow once"})),
            (select(), "", json!({"cancelled": true})),
            (confirm.clone(), "Yes", json!({"confirmed": true})),
            (confirm.clone(), "n", json!({"confirmed": false})),
        ] {
            assert_eq!(meaning(&kind, line), Ok(expected), "{kind:?} {line}");
        }
        for (kind, line) in [
            (select(), "0"),
            (select(), "3"),
            (select(), "y"),
            (confirm, "maybe"),
        ] {
            assert!(meaning(&kind, line).is_err(), "{kind:?} {line}");
        }
    }

    #[test]
    fn questions_come_one_after_the_other() {
        let question = |id: &str| Dialog {
            id: id.to_owned(),
            title: format!("Title {id}"),
            kind: select(),
            timeout: None,
        };
        let mut questions = Questions::default();
        assert!(
            questions
                .push(question("a"))
                .unwrap()
                .contains("1. Allow once")
        );
        assert_eq!(questions.push(question("b")), None);
        let (answered, words) = questions.answer("what?");
        assert!(answered.is_none() && words.contains("from 1 to 2"));
        let (answered, words) = questions.answer("1");
        assert_eq!(answered.unwrap().0, "a");
        assert!(words.contains("Title b"));
        let (answered, words) = questions.answer("");
        assert_eq!(answered.unwrap().1["cancelled"], true);
        assert!(words.is_empty() && !questions.is_open());
    }
}
