//! Responses as lines.

use pinion_agent::{Answer, BashOutcome, Disposition, EngineError};
use pinion_jsonl::json;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::early::EarlyLine;
use crate::wire::WireMessages;

/// Which command a response answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// Echoed verbatim, whatever it is.
    pub id: Option<Value>,
    /// The command's `type`, whatever it is.
    pub command: Option<Value>,
}

#[derive(Serialize)]
struct Response<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a Value>,
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BashData<'a> {
    output: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    cancelled: bool,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    full_output_path: Option<&'a str>,
}

impl<'a> BashData<'a> {
    fn of(outcome: &'a BashOutcome) -> Self {
        Self {
            output: &outcome.output,
            exit_code: outcome.exit_code,
            cancelled: outcome.cancelled,
            truncated: outcome.truncated,
            full_output_path: outcome.full_output_path.as_deref(),
        }
    }
}

impl Asked {
    /// The line of a response, where the dialect has one.
    pub fn answer(&self, result: Result<Answer, EngineError>, dialect: Dialect) -> Option<Vec<u8>> {
        match (result, dialect) {
            (Ok(_), Dialect::Early) => None,
            (Err(error), Dialect::Early) => Some(self.early_error(&error)),
            (Ok(answer), _) => Some(self.success(&answer, dialect)),
            (Err(error), _) => Some(self.failure(&error.to_string())),
        }
    }

    fn early_error(&self, error: &EngineError) -> Vec<u8> {
        let compacts = self.command.as_ref().and_then(Value::as_str) == Some("compact");
        let error = match compacts {
            true => format!("Compaction failed: {error}"),
            false => error.to_string(),
        };
        EarlyLine::Error { error: &error }.to_vec()
    }

    /// The line of a failure.
    pub fn failure(&self, error: &str) -> Vec<u8> {
        self.print::<()>(false, None, Some(error))
    }

    /// The line of a success with nothing to tell.
    pub fn done(&self) -> Vec<u8> {
        self.print::<()>(true, None, None)
    }

    /// The line of a success with `data` that the front made itself.
    pub fn data(&self, data: &impl Serialize) -> Vec<u8> {
        self.print(true, Some(data), None)
    }

    fn success(&self, answer: &Answer, dialect: Dialect) -> Vec<u8> {
        match answer {
            Answer::Taken(disposition) if dialect == Dialect::Modern => {
                self.data(&json!({ "disposition": disposition_name(*disposition) }))
            }
            Answer::Done | Answer::Taken(_) => self.print::<()>(true, None, None),
            Answer::State(state) => self.data(state),
            Answer::Messages(messages) => {
                #[derive(Serialize)]
                struct Data<'a> {
                    messages: WireMessages<'a>,
                }
                self.data(&Data {
                    messages: WireMessages::of(messages, dialect),
                })
            }
            Answer::Stats(stats) => self.data(stats),
            Answer::Text(text) => self.data(&json!({ "text": text })),
            Answer::Model(model) => self.data(&**model),
            Answer::Cycled(None) | Answer::Level(None) => self.data(&Value::Null),
            Answer::Cycled(Some(cycled)) => self.data(&json!({
                "model": &*cycled.model,
                "thinkingLevel": cycled.thinking_level,
                "isScoped": cycled.is_scoped,
            })),
            Answer::Models(models) => self.data(&json!({ "models": models })),
            Answer::Level(Some(level)) => self.data(&json!({ "level": level })),
            Answer::Levels(levels) => self.data(&json!({ "levels": levels })),
            Answer::Compacted(result) => self.data(&**result),
            Answer::Bash(outcome) => self.data(&BashData::of(outcome)),
            Answer::Cancelled(cancelled) => self.data(&json!({ "cancelled": cancelled })),
            Answer::Forked { text, cancelled } => {
                #[derive(Serialize)]
                struct Data<'a> {
                    #[serde(skip_serializing_if = "Option::is_none")]
                    text: Option<&'a str>,
                    cancelled: bool,
                }
                self.data(&Data {
                    text: text.as_deref(),
                    cancelled: *cancelled,
                })
            }
            Answer::ForkMessages(messages) => {
                let messages: Vec<Value> = messages
                    .iter()
                    .map(|(id, text)| json!({ "entryId": id, "text": text }))
                    .collect();
                self.data(&json!({ "messages": messages }))
            }
            Answer::Queues {
                steering,
                follow_up,
            } => self.data(&json!({ "steering": steering, "followUp": follow_up })),
            Answer::Entries { entries, leaf_id } => {
                self.data(&json!({ "entries": entries, "leafId": leaf_id }))
            }
            Answer::Tree { tree, leaf_id } => {
                #[derive(Serialize)]
                #[serde(rename_all = "camelCase")]
                struct Data<'a> {
                    tree: &'a RawValue,
                    leaf_id: Option<&'a str>,
                }
                let leaf_id = leaf_id.as_deref();
                self.data(&Data { tree, leaf_id })
            }
            Answer::Commands(commands) => self.data(&json!({ "commands": commands })),
            Answer::Navigated { text, cancelled } => {
                self.data(&json!({ "cancelled": cancelled, "editorText": text }))
            }
            Answer::Exported(path) => self.data(&json!({ "path": path })),
        }
    }

    fn print<T: Serialize>(&self, success: bool, data: Option<T>, error: Option<&str>) -> Vec<u8> {
        let response = Response {
            id: self.id.as_ref(),
            r#type: "response",
            command: self.command.as_ref(),
            success,
            data,
            error,
        };
        let mut line = json::to_vec(&response);
        line.push(b'\n');
        line
    }
}

fn disposition_name(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Started => "started",
        Disposition::Queued => "queued",
        Disposition::Handled => "handled",
    }
}
