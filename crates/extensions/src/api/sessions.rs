//! The session file as extensions read it and add to it.

use pinion_agent::SessionApi;
use pinion_message::{Message, ThinkingLevel};
use pinion_session::{Entry, EntryKind, Role, Store};
use serde_json::{Map, Value, json};

use super::actions::error_message;
use super::bridge::{text, value};
use super::extensions::Inner;

impl Inner {
    /// Answers a query about the session file.
    pub(super) fn query_session(
        &self,
        desk: &SessionApi,
        arguments: &[Value],
    ) -> Result<Option<Value>, String> {
        let what = text(arguments, 0);
        if what == "context" {
            return Ok(Some(context(desk)));
        }
        let what = what.to_owned();
        let which = value(arguments, 1).as_str().map(str::to_owned);
        desk.read(move |store| query(store, &what, which.as_deref()))
            .map_err(error_message)
    }

    /// Appends to the session file. Returns the id of the new entry if there is one.
    pub(super) fn append(
        &self,
        desk: &SessionApi,
        arguments: &[Value],
    ) -> Result<Option<Value>, String> {
        match text(arguments, 0) {
            "custom" => {
                let data = arguments.get(2).cloned();
                let id = desk.append_custom(text(arguments, 1).to_owned(), data);
                id.map(|id| Some(id.into())).map_err(error_message)
            }
            "message" => {
                let message: Message = serde_json::from_value(value(arguments, 1).clone())
                    .map_err(|error| error.to_string())?;
                let id = desk.append_message(message).map_err(error_message)?;
                Ok(Some(id.into()))
            }
            "name" => {
                desk.set_name(text(arguments, 1)).map_err(error_message)?;
                Ok(None)
            }
            "label" => {
                let id = text(arguments, 1);
                let target = id.to_owned();
                let known = desk
                    .read(move |store| store.entry(&target).is_some())
                    .map_err(error_message)?;
                if !known {
                    return Err(format!("Entry {id} not found"));
                }
                let label = value(arguments, 2)
                    .as_str()
                    .filter(|label| !label.is_empty());
                desk.set_label(id.to_owned(), label.map(str::to_owned))
                    .map_err(error_message)?;
                Ok(None)
            }
            "level" => {
                // A string that is not a thinking level turns thinking off.
                let level = serde_json::from_value(value(arguments, 1).clone());
                desk.set_thinking_level(level.unwrap_or(ThinkingLevel::Off))
                    .map_err(error_message)?;
                Ok(None)
            }
            other => Err(format!("Unknown entry: {other}")),
        }
    }
}

fn query(store: &Store, what: &str, which: Option<&str>) -> Option<Value> {
    match what {
        "cwd" => Some(store.cwd().display().to_string().into()),
        "directory" => Some(store.directory()?.display().to_string().into()),
        "id" => Some(store.id().into()),
        "file" => Some(store.file()?.display().to_string().into()),
        "leaf" => Some(store.leaf()?.into()),
        "entry" => store.entry(which?)?.value(),
        "label" => Some(store.label(which?)?.into()),
        "branch" => Some(match which {
            Some(leaf) => values(store.path_to(leaf)),
            None => values(store.path()),
        }),
        "turn" => newest_turn(store),
        "header" => serde_json::from_slice(store.header().json()).ok(),
        "entries" => Some(values(store.entries())),
        "labels" => {
            let labels = store.labels().into_iter();
            let labels: Map<String, Value> = labels
                .map(|(id, label)| (id.to_string(), label.text.as_str().into()))
                .collect();
            Some(labels.into())
        }
        "name" => Some(store.name()?.into()),
        _ => None,
    }
}

/// Returns the ids of the newest answer on the branch and of the tool results after it.
fn newest_turn(store: &Store) -> Option<Value> {
    let path = store.path();
    let is_answer = |entry: &&&Entry| entry.kind() == EntryKind::Message(Role::Assistant);
    let answer = path.iter().rev().find(is_answer)?;
    let newer = path.iter().rev().take_while(|entry| !is_answer(entry));
    let results = newer.filter(|entry| entry.kind() == EntryKind::Message(Role::ToolResult));
    let mut results: Vec<&str> = results.map(|entry| entry.id().as_str()).collect();
    results.reverse();
    Some(json!({"answer": answer.id().as_str(), "results": results}))
}

fn values<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Value {
    entries.into_iter().filter_map(Entry::value).collect()
}

/// Returns the messages, the model and the thinking level of the next request.
fn context(desk: &SessionApi) -> Value {
    let messages = desk.messages();
    let messages: Vec<&Message> = messages.iter().map(|message| &**message).collect();
    let model = desk
        .model()
        .map(|model| json!({"provider": model.provider, "modelId": model.id}));
    json!({
        "messages": messages,
        "thinkingLevel": desk.thinking_level(),
        "model": model,
    })
}
