//! A scenario: which turn answers which request. Turns stay JSON values; this file only picks them
//! and reads their steps. What a step looks like on the wire is the business of the dialects.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::directive;
use super::inspect::RequestView;

/// One thing the model does within a turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Text(Vec<Delta>),
    Thinking {
        deltas: Vec<Delta>,
        signature: Option<String>,
    },
    Tool(ToolStep),
    /// An error inside the stream; `None` is the dialect's usual overload.
    Error(Option<Value>),
    /// Bytes sent as they are.
    Raw(Vec<u8>),
    Control(Control),
}

/// One piece of a block, or something that happens between two pieces.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Delta {
    Piece(String),
    Control(Control),
}

/// An instruction that delays or ends a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Control {
    Delay(u64),
    Gate(String),
    Disconnect,
    Reset,
    Stall,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolStep {
    pub id: Option<String>,
    pub name: String,
    pub args: Value,
    /// The argument text in the pieces in which it is sent.
    pub pieces: Vec<String>,
}

/// A turn and its position in its list.
#[derive(Debug, Clone)]
pub(super) struct Pick {
    pub list: String,
    pub index: i64,
    pub turn: Value,
}

#[derive(Debug, Default)]
pub(super) struct Scenario {
    spec: Value,
    lists: HashMap<String, TurnList>,
    used: HashSet<(String, usize)>,
    cursors: HashMap<(String, String), usize>,
}

#[derive(Debug, Default)]
struct TurnList {
    turns: Vec<Value>,
    cursor: String,
}

impl Scenario {
    pub(super) fn new(spec: Value) -> Self {
        let cursor = |v: &Value| v["cursor"].as_str().map(str::to_owned);
        let default = cursor(&spec).unwrap_or_else(|| "global".into());
        let mut lists = HashMap::new();
        lists.insert(
            String::new(),
            TurnList {
                turns: expand(&spec["turns"]),
                cursor: default.clone(),
            },
        );
        if let Some(named) = spec["scenarios"].as_object() {
            for (name, list) in named {
                let cursor = cursor(list).unwrap_or_else(|| default.clone());
                lists.insert(
                    name.clone(),
                    TurnList {
                        turns: expand(&list["turns"]),
                        cursor,
                    },
                );
            }
        }
        Self {
            spec,
            lists,
            ..Self::default()
        }
    }

    /// Forgets which turns were used.
    pub(super) fn rewind(&mut self) {
        self.used.clear();
        self.cursors.clear();
    }

    /// Reports whether turns are answered in order without reading the requests.
    pub(super) fn is_blind(&self) -> bool {
        self.spec["blind"] == json!(true)
    }

    /// A setting of the turn, else of the scenario.
    pub(super) fn setting<'a>(&'a self, turn: &'a Value, name: &str) -> &'a Value {
        turn.get(name).unwrap_or(&self.spec[name])
    }

    /// The turn that answers this request: the first fitting matcher, else the next in order.
    pub(super) fn pick(&mut self, view: &RequestView) -> Pick {
        if self.spec["directives"] == json!(true) {
            return Pick {
                list: String::new(),
                index: -1,
                turn: directive::turn(view),
            };
        }
        let name = named_list(&view.last_user)
            .filter(|name| self.lists.contains_key(*name))
            .unwrap_or_default()
            .to_owned();
        let list = &self.lists[&name];
        for (index, turn) in list.turns.iter().enumerate() {
            let Some(rule) = turn.get("match") else {
                continue;
            };
            let key = (name.clone(), index);
            if self.used.contains(&key) || !fits(rule, view) {
                continue;
            }
            if rule["sticky"] != json!(true) {
                self.used.insert(key);
            }
            return Pick {
                list: name,
                index: index as i64,
                turn: turn.clone(),
            };
        }
        let position = match list.cursor.as_str() {
            "history" => view.assistant_count,
            mode => {
                let scope = if mode == "conversation" {
                    &view.first_user
                } else {
                    "*"
                };
                let cursor = self
                    .cursors
                    .entry((name.clone(), scope.to_owned()))
                    .or_insert(0);
                *cursor += 1;
                *cursor - 1
            }
        };
        let in_order = || {
            list.turns
                .iter()
                .enumerate()
                .filter(|(_, t)| t.get("match").is_none())
        };
        if let Some((index, turn)) = in_order().nth(position) {
            return Pick {
                list: name,
                index: index as i64,
                turn: turn.clone(),
            };
        }
        match (self.spec["on_exhausted"].as_str(), in_order().next_back()) {
            (Some("repeat_last"), Some((index, turn))) => Pick {
                list: name,
                index: index as i64,
                turn: turn.clone(),
            },
            (Some("error"), _) => {
                let body = json!({"error": {"message": "scenario exhausted"}});
                Pick {
                    list: name,
                    index: -1,
                    turn: json!({"http": {"status": 500, "body": body}}),
                }
            }
            _ => Pick {
                list: name,
                index: -1,
                turn: json!({"steps": ["(scenario exhausted)"]}),
            },
        }
    }
}

fn fits(rule: &Value, view: &RequestView) -> bool {
    if rule.get("no_tools").is_some() {
        return view.tools == 0;
    }
    let hay = match rule["in"].as_str() {
        Some("system") => &view.system,
        Some("any") => &view.raw,
        _ => &view.last_user,
    };
    rule["contains"]
        .as_str()
        .is_some_and(|needle| hay.contains(needle))
}

/// `[[scenario:name]]` in the last user message selects a named list.
fn named_list(text: &str) -> Option<&str> {
    let rest = &text[text.find("[[scenario:")? + "[[scenario:".len()..];
    rest.split_once("]]").map(|(name, _)| name)
}

/// Writes out `{"repeat_turn": n, "turn": {…}}`, in which `{i}` counts.
fn expand(turns: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    for turn in turns.as_array().into_iter().flatten() {
        match turn["repeat_turn"].as_u64() {
            Some(count) => {
                let template = turn["turn"].to_string();
                for i in 0..count {
                    let text = template.replace("{i}", &i.to_string());
                    out.push(serde_json::from_str(&text).expect("a repeated turn stays JSON"));
                }
            }
            None => out.push(turn.clone()),
        }
    }
    out
}

/// The steps of a turn, shorthand resolved.
pub(super) fn steps(turn: &Value) -> Vec<Step> {
    turn["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(step)
        .collect()
}

/// Returns the stop reason of a turn: its own, else `tool` if it calls one, else `stop`.
pub(super) fn stop_reason(turn: &Value) -> String {
    if let Some(stop) = turn["stop"].as_str() {
        return stop.to_owned();
    }
    let calls = steps(turn).iter().any(|s| matches!(s, Step::Tool(_)));
    if calls { "tool" } else { "stop" }.to_owned()
}

fn step(value: &Value) -> Step {
    if let Some(text) = value.as_str() {
        return Step::Text(vec![Delta::Piece(text.to_owned())]);
    }
    if let Some(control) = control(value) {
        return Step::Control(control);
    }
    if let Some(text) = value.get("text") {
        return Step::Text(deltas(value, text));
    }
    if let Some(text) = value.get("thinking") {
        let signature = value["signature"].as_str().map(str::to_owned);
        return Step::Thinking {
            deltas: deltas(value, text),
            signature,
        };
    }
    if let Some(name) = value["tool"].as_str() {
        let args = value.get("args").cloned().unwrap_or_else(|| json!({}));
        let text = value["raw_args"]
            .as_str()
            .map_or_else(|| args.to_string(), str::to_owned);
        return Step::Tool(ToolStep {
            id: value["id"].as_str().map(str::to_owned),
            name: name.to_owned(),
            args,
            pieces: pieces(&text, value["chunk"].as_u64()),
        });
    }
    if let Some(error) = value.get("error") {
        return Step::Error(error.is_object().then(|| error.clone()));
    }
    if let Some(raw) = value["raw"].as_str() {
        return Step::Raw(raw.as_bytes().to_vec());
    }
    if let Some(raw) = value["raw_bytes"].as_array() {
        return Step::Raw(raw.iter().map(|b| b.as_u64().unwrap_or(0) as u8).collect());
    }
    panic!("this scenario step is not understood: {value}");
}

fn control(value: &Value) -> Option<Control> {
    if let Some(ms) = value["delay_ms"].as_u64() {
        return Some(Control::Delay(ms));
    }
    if let Some(gate) = value["gate"].as_str() {
        return Some(Control::Gate(gate.to_owned()));
    }
    let says = |name: &str| value[name] == json!(true);
    [
        ("disconnect", Control::Disconnect),
        ("reset", Control::Reset),
        ("stall", Control::Stall),
    ]
    .into_iter()
    .find_map(|(name, control)| says(name).then_some(control))
}

fn deltas(step: &Value, text: &Value) -> Vec<Delta> {
    let list = match text {
        Value::Array(items) => items
            .iter()
            .map(|item| match item.as_str() {
                Some(piece) => Delta::Piece(piece.to_owned()),
                None => {
                    Delta::Control(control(item).expect("a list of deltas holds texts and pauses"))
                }
            })
            .collect(),
        Value::Object(repeat) => {
            let count = repeat["count"].as_u64().unwrap_or(0);
            let delta = repeat["delta"].as_str().unwrap_or_default();
            (0..count)
                .map(|i| Delta::Piece(delta.replace("{i}", &i.to_string())))
                .collect()
        }
        _ => pieces(text.as_str().unwrap_or_default(), step["chunk"].as_u64())
            .into_iter()
            .map(Delta::Piece)
            .collect(),
    };
    with_pauses(list, step["delay_between_ms"].as_u64())
}

fn with_pauses(list: Vec<Delta>, pause: Option<u64>) -> Vec<Delta> {
    let Some(ms) = pause else { return list };
    list.into_iter()
        .flat_map(|delta| [delta, Delta::Control(Control::Delay(ms))])
        .collect()
}

/// Cuts a text into pieces of `size` characters.
fn pieces(text: &str, size: Option<u64>) -> Vec<String> {
    match size {
        _ if text.is_empty() => Vec::new(),
        None | Some(0) => vec![text.to_owned()],
        Some(size) => {
            let chars: Vec<char> = text.chars().collect();
            chars
                .chunks(size as usize)
                .map(|c| c.iter().collect())
                .collect()
        }
    }
}
