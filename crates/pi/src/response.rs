//! Prints responses as lines.

use pinion_agent::{Answer, EngineError};
use pinion_jsonl::json;
use serde::Serialize;
use serde_json::Value;

use crate::answers::{
    BashData, CancelledData, CommandsData, CycledData, EntriesData, ForkData, ForkMessagesData,
    LevelData, LevelsData, MessagesData, ModelsData, NavigatedData, PathData, QueuesData,
    TakenData, TextData, TreeData,
};
use crate::dialect::Dialect;
use crate::early::EarlyLine;
use crate::lines::CompactionView;
use crate::wire::WireMessages;

/// The id and type of the command that a response answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// Echoed unchanged; may be any JSON value.
    pub id: Option<Value>,
    /// The command's `type`; may be any JSON value.
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

/// Removes the members of commands that modern clients find in `sourceInfo`.
fn without_places(mut commands: Value) -> Value {
    for command in commands.as_array_mut().into_iter().flatten() {
        if let Some(command) = command.as_object_mut() {
            command.shift_remove("location");
            command.shift_remove("path");
        }
    }
    commands
}

impl Request {
    /// Prints a response; `None` if the dialect has none.
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
        let error = if compacts {
            format!("Compaction failed: {error}")
        } else {
            error.to_string()
        };
        EarlyLine::Error { error: &error }.to_vec()
    }

    /// Prints a failure.
    pub fn failure(&self, error: &str) -> Vec<u8> {
        self.print::<()>(false, None, Some(error))
    }

    /// Prints a success without data.
    pub fn done(&self) -> Vec<u8> {
        self.print::<()>(true, None, None)
    }

    /// Prints a success with `data`.
    pub fn data(&self, data: &impl Serialize) -> Vec<u8> {
        self.print(true, Some(data), None)
    }

    fn success(&self, answer: &Answer, dialect: Dialect) -> Vec<u8> {
        match answer {
            // pi has the disposition since 0.99. Clients of that age wait for it in every dialect.
            Answer::Taken(disposition) => self.data(&TakenData::from(*disposition)),
            Answer::Done => self.print::<()>(true, None, None),
            Answer::State(state) => self.data(state),
            Answer::Messages(messages) => self.data(&MessagesData {
                messages: WireMessages::of(messages, dialect),
            }),
            Answer::Stats(stats) => self.data(stats),
            Answer::Text(text) => self.data(&TextData {
                text: match (text, dialect) {
                    (None, Dialect::Modern) => None,
                    (text, _) => Some(text.as_deref()),
                },
            }),
            Answer::Model(model) => self.data(&**model),
            Answer::Cycled(cycled) => self.data(&cycled.as_ref().map(CycledData::from)),
            Answer::Models(models) => self.data(&ModelsData { models }),
            Answer::Level(level) => self.data(&level.map(|level| LevelData { level })),
            Answer::Levels(levels) => self.data(&LevelsData { levels }),
            Answer::Compacted(result) => self.data(&CompactionView::of(result, dialect)),
            Answer::Bash(outcome) => self.data(&BashData::from(outcome)),
            Answer::Cancelled(cancelled) => self.data(&CancelledData {
                cancelled: *cancelled,
            }),
            Answer::Forked { text, cancelled } => self.data(&ForkData {
                text: text.as_deref(),
                cancelled: *cancelled,
            }),
            Answer::ForkMessages(messages) => {
                self.data(&ForkMessagesData::from(messages.as_slice()))
            }
            Answer::Queues {
                steering,
                follow_up,
            } => self.data(&QueuesData {
                steering,
                follow_up,
            }),
            Answer::Entries { entries, leaf_id } => self.data(&EntriesData {
                entries,
                leaf_id: leaf_id.as_deref(),
            }),
            Answer::Tree { tree, leaf_id } => self.data(&TreeData {
                tree,
                leaf_id: leaf_id.as_deref(),
            }),
            Answer::Commands(commands) if dialect == Dialect::Modern => {
                let commands = &without_places(commands.clone());
                self.data(&CommandsData { commands })
            }
            Answer::Commands(commands) => self.data(&CommandsData { commands }),
            Answer::Navigated { text, cancelled } => self.data(&NavigatedData {
                cancelled: *cancelled,
                editor_text: text.as_deref(),
            }),
            Answer::Exported(path) => self.data(&PathData { path }),
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
