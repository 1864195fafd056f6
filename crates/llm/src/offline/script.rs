//! The script language of the offline model: turns of steps, written as JSON.
//!
//! This module only parses and checks scripts; `docs/offline.md` describes the steps and `playback`
//! runs them. Unknown members are rejected, so that a misspelt step is not silently skipped.

use std::time::Duration;

use pinion_message::StopReason;
use serde::Deserialize;
use serde_json::Value;

/// Bytes of text that a single step may produce.
const MAX_STEP_BYTES: u64 = 256 * 1024 * 1024;

/// The default number of characters per delta.
pub(super) const DEFAULT_CHUNK: usize = 24;

/// A whole script.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Script {
    pub(super) turns: Vec<ScriptedTurn>,
}

/// One answer of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ScriptedTurn {
    pub(super) steps: Vec<Step>,
    pub(super) usage: Option<Tokens>,
    /// Identifies this turn among all scripts, for counting overloads.
    pub(super) key: u64,
}

/// Tokens to report instead of an estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    #[serde(alias = "cache_read")]
    pub(super) cache_read: u64,
    #[serde(alias = "cache_write")]
    pub(super) cache_write: u64,
}

/// Text that arrives in deltas.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Paced<T> {
    pub(super) what: T,
    /// Characters per delta.
    pub(super) chunk: usize,
    /// The delay before each delta.
    pub(super) pace: Duration,
}

/// One step of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Text(Paced<String>),
    Think(Paced<String>),
    /// Sets the signature of the reasoning so far.
    Signature(String),
    /// Numbered text deltas of one size.
    Deltas {
        count: u64,
        size: usize,
        pace: Duration,
    },
    Tool(Paced<ScriptedCall>),
    Fail(String),
    /// Fails this many times before the rest of the turn is played.
    Overload(u32),
    Stop(StopReason),
    Stall(Duration),
}

/// A tool call; `text` is the JSON of its arguments, which a script may break on purpose.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptedCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StepEntry {
    text: Option<String>,
    #[serde(alias = "thinking")]
    think: Option<String>,
    signature: Option<String>,
    deltas: Option<u64>,
    size: Option<usize>,
    tool: Option<String>,
    args: Option<Value>,
    #[serde(alias = "raw_args")]
    raw_args: Option<String>,
    id: Option<String>,
    chunk: Option<usize>,
    #[serde(alias = "pace_ms")]
    pace_ms: Option<f64>,
    error: Option<Value>,
    overload: Option<u32>,
    stop: Option<StopReason>,
    stall: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorEntry {
    status: Option<u16>,
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TurnEntry {
    steps: Vec<Value>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScriptEntry {
    turns: Vec<Value>,
    #[serde(alias = "pace_ms")]
    pace_ms: Option<f64>,
}

impl Script {
    /// Parses the script at the beginning of `text`. The text after it is ignored.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        match values.next() {
            None => Err("it is empty".to_owned()),
            Some(Err(error)) => Err(pinion_jsonl::explain_with_position(&error)),
            Some(Ok(value)) => Self::from_value(value),
        }
    }

    fn from_value(value: Value) -> Result<Self, String> {
        let key = hash(&value);
        let (turns, pace) = match value {
            Value::Object(ref members) if members.contains_key("turns") => {
                let entry: ScriptEntry = serde_json::from_value(value).map_err(explain)?;
                (entry.turns, entry.pace_ms)
            }
            Value::Object(_) | Value::Array(_) => (vec![value], None),
            _ => return Err("a script is an object or a list of steps".to_owned()),
        };
        let mut script = Self::default();
        for (number, turn) in (1..).zip(turns) {
            let mut turn = read_turn(turn, pace).map_err(|why| format!("turn {number}, {why}"))?;
            turn.key = key.wrapping_add(number);
            script.turns.push(turn);
        }
        Ok(script)
    }
}

fn read_turn(value: Value, pace: Option<f64>) -> Result<ScriptedTurn, String> {
    let entry = match value {
        Value::Array(steps) => TurnEntry { steps, usage: None },
        Value::Object(ref members) if members.contains_key("steps") => {
            serde_json::from_value(value).map_err(explain)?
        }
        step => TurnEntry {
            steps: vec![step],
            usage: None,
        },
    };
    let mut turn = ScriptedTurn {
        usage: entry.usage,
        ..ScriptedTurn::default()
    };
    for (number, step) in (1..).zip(entry.steps) {
        let read = serde_json::from_value::<StepEntry>(step).map_err(explain);
        let read = read.and_then(|step| read_step(step, pace, &mut turn.steps));
        read.map_err(|why| format!("step {number}: {why}"))?;
    }
    Ok(turn)
}

fn read_step(entry: StepEntry, pace: Option<f64>, steps: &mut Vec<Step>) -> Result<(), String> {
    let pace = milliseconds(entry.pace_ms.or(pace).unwrap_or(0.0))?;
    let chunk = entry.chunk.unwrap_or(DEFAULT_CHUNK).max(1);
    let before = steps.len();
    if let Some(times) = entry.overload {
        steps.push(Step::Overload(times));
    }
    if let Some(what) = entry.think {
        steps.push(Step::Think(Paced { what, chunk, pace }));
        steps.extend(entry.signature.map(Step::Signature));
    }
    if let Some(what) = entry.text {
        steps.push(Step::Text(Paced { what, chunk, pace }));
    }
    if let Some(count) = entry.deltas {
        let size = entry.size.unwrap_or(DEFAULT_CHUNK).max(1);
        if count.saturating_mul(size as u64) > MAX_STEP_BYTES {
            return Err(format!(
                "\"deltas\" times \"size\" is more than {MAX_STEP_BYTES} bytes"
            ));
        }
        steps.push(Step::Deltas { count, size, pace });
    }
    if let Some(name) = entry.tool {
        let text = match (entry.raw_args, entry.args) {
            (Some(raw), _) => raw,
            (None, Some(arguments)) => arguments.to_string(),
            (None, None) => "{}".to_owned(),
        };
        steps.push(Step::Tool(Paced {
            what: ScriptedCall {
                id: entry.id,
                name,
                text,
            },
            chunk,
            pace,
        }));
    }
    if let Some(stall) = entry.stall {
        steps.push(Step::Stall(milliseconds(stall)?));
    }
    if let Some(error) = entry.error {
        steps.push(Step::Fail(read_error(error)?));
    }
    if let Some(stop) = entry.stop {
        if matches!(stop, StopReason::Error | StopReason::Aborted) {
            return Err("\"stop\" is one of stop, length and toolUse".to_owned());
        }
        steps.push(Step::Stop(stop));
    }
    match steps.len() - before {
        0 => Err("it does nothing; add a member such as \"text\" or \"tool\"".to_owned()),
        _ => Ok(()),
    }
}

/// The message of a failed request, in the form in which providers report a status.
fn read_error(value: Value) -> Result<String, String> {
    if let Value::String(message) = value {
        return Ok(message);
    }
    let ErrorEntry { status, message } = serde_json::from_value(value).map_err(explain)?;
    Ok(status.map_or_else(|| message.clone(), |status| format!("{status} {message}")))
}

fn milliseconds(number: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number / 1000.0)
        .map_err(|_| format!("{number} is not a time in milliseconds"))
}

fn explain(error: serde_json::Error) -> String {
    pinion_jsonl::explain(&error)
}

fn hash(value: &Value) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(script: &str) -> Vec<Step> {
        Script::parse(script).unwrap().turns.swap_remove(0).steps
    }

    #[test]
    fn one_step_a_list_a_turn_or_a_whole_script() {
        let hi = Step::Text(Paced {
            what: "hi".into(),
            chunk: DEFAULT_CHUNK,
            pace: Duration::ZERO,
        });
        for script in [
            r#"{"text":"hi"}"#,
            r#"[{"text":"hi"}] and words"#,
            r#"{"steps":[{"text":"hi"}]}"#,
            r#"{"turns":[[{"text":"hi"}]]}"#,
            r#"{"turns":[{"text":"hi"}],"paceMs":0}"#,
        ] {
            assert_eq!(steps(script), std::slice::from_ref(&hi), "{script}");
        }
    }

    #[test]
    fn every_kind_of_step_is_read() {
        let script = r#"[{"overload":2},{"think":"t","chunk":3,"signature":"s"},{"deltas":4,"size":5,"paceMs":1.5},
            {"tool":"bash","args":{"command":"ls"},"id":"c1"},{"tool":"bash","rawArgs":"{\"x"},
            {"stall":7},{"stop":"length"},{"error":{"status":529,"message":"busy"}},{"error":"plain"}]"#;
        let call = |id: Option<&str>, text: &str| {
            let call = ScriptedCall {
                id: id.map(Into::into),
                name: "bash".into(),
                text: text.into(),
            };
            Step::Tool(Paced {
                what: call,
                chunk: DEFAULT_CHUNK,
                pace: Duration::ZERO,
            })
        };
        assert_eq!(
            steps(script),
            [
                Step::Overload(2),
                Step::Think(Paced {
                    what: "t".into(),
                    chunk: 3,
                    pace: Duration::ZERO
                }),
                Step::Signature("s".into()),
                Step::Deltas {
                    count: 4,
                    size: 5,
                    pace: Duration::from_micros(1500)
                },
                call(Some("c1"), r#"{"command":"ls"}"#),
                call(None, "{\"x"),
                Step::Stall(Duration::from_millis(7)),
                Step::Stop(StopReason::Length),
                Step::Fail("529 busy".into()),
                Step::Fail("plain".into()),
            ]
        );
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (script, expected) in [
            ("", "empty"),
            ("[{]", "line 1"),
            ("7", "object or a list"),
            (r#"[{"txt":"a"}]"#, "turn 1, step 1: unknown member \"txt\""),
            (
                r#"{"turns":[[{"text":"a"}],[{"text":"b"},{}]]}"#,
                "turn 2, step 2: it does nothing",
            ),
            (r#"[{"stop":"error"}]"#, "one of stop, length"),
            (r#"[{"stall":-1}]"#, "-1 is not a time"),
            (r#"[{"deltas":1000000000,"size":1000000000}]"#, "more than"),
        ] {
            let error = Script::parse(script).unwrap_err();
            assert!(error.contains(expected), "{script}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]{}\":,a-z0-9 -]{0,60}") {
            let _ = Script::parse(&text);
        }
    }
}
