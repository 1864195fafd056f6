//! A client that relies only on the lines: it builds its own state of the chat and compares it with snapshots.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The state that a client derives from a stream.
#[derive(Default)]
pub struct Client {
    pub ordinal: u64,
    /// By kind and id.
    entities: BTreeMap<(String, String), Entity>,
    /// Text of every growing segment, as patches have it.
    growing: BTreeMap<String, String>,
    /// Segments and requests that have not ended.
    open: Vec<String>,
    pub runs: usize,
    is_running: bool,
    ended: bool,
    pub done: Vec<String>,
    pub errors: Vec<String>,
    pub names: Vec<String>,
    pub snapshots: usize,
}

#[derive(Clone)]
struct Entity {
    created: u64,
    last: u64,
    payload: Map<String, Value>,
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn number(value: &Value) -> u64 {
    value.as_str().map_or(0, |text| text.parse().unwrap())
}

impl Client {
    /// Reads a stream that begins with an empty session.
    pub fn of(lines: &[Value]) -> Self {
        let mut client = Self::default();
        for line in lines {
            client.line(line);
        }
        client
    }

    pub fn line(&mut self, line: &Value) {
        assert_eq!(line["version"], 1);
        if let Some(event) = line.get("uiEvent") {
            self.event(event);
        } else if let Some(snapshot) = line.get("snapshot") {
            self.snapshots += 1;
            self.assert_shows(snapshot);
        } else if let Some(error) = line.get("error") {
            assert_eq!(error["message"], error["detail"]);
            self.errors.push(text(error, "code").to_owned());
        } else if let Some(done) = line.get("done") {
            self.done.push(text(done, "status").to_owned());
            assert_eq!(self.open, Vec::<String>::new(), "something is left open");
        }
    }

    fn event(&mut self, event: &Value) {
        let ordinal = number(&event["ordinal"]);
        assert_eq!(ordinal, self.ordinal + 1, "numbers have no gaps");
        self.ordinal = ordinal;
        let name = text(event, "name");
        let payload = &event["payload"];
        assert!(text(payload, "@type").ends_with(&format!(".{name}")));
        self.names.push(name.to_owned());
        self.order(name, payload);
        self.project(name, payload, ordinal);
    }

    /// Checks the order of events.
    fn order(&mut self, name: &str, payload: &Value) {
        let message = text(payload, "messageId").to_owned();
        let request = format!(
            "request {}",
            text(&payload["correlation"], "providerCallId")
        );
        match name {
            "ChatUserMessageAccepted" => {
                assert!(!self.is_running, "the run before has not ended");
                self.ended = false;
            }
            "ChatRunStarted" => {
                self.runs += 1;
                self.is_running = true;
            }
            "ChatRunFinished" | "ChatRunStopped" | "ChatRunFailed" => {
                assert!(self.is_running && !self.ended, "a run ends once");
                self.is_running = false;
                self.ended = true;
            }
            // Metadata may follow the end of a run.
            "ChatProviderCallFinished" => self.close(&request),
            _ => assert!(self.is_running, "{name} outside of a run"),
        }
        match name {
            "ChatProviderCallStarted" => self.open.push(request),
            "ChatTextSegmentStarted" | "ChatReasoningSegmentStarted" => self.open.push(message),
            "ChatTextSegmentFinished" if payload["role"] == "warning" => {}
            "ChatTextSegmentFinished" | "ChatReasoningSegmentFinished" => self.close(&message),
            _ => {}
        }
    }

    fn close(&mut self, what: &str) {
        let at = self.open.iter().position(|open| open == what);
        self.open
            .remove(at.unwrap_or_else(|| panic!("{what} was not open")));
    }

    fn patched(&mut self, payload: &Value, member: &str) -> String {
        let id = text(payload, "streamId").to_owned();
        let growing = self.growing.entry(id).or_default();
        assert_eq!(number(&payload["offset"]), growing.len() as u64);
        match text(payload, "mode") {
            "CHAT_STREAM_PATCH_MODE_APPEND" => growing.push_str(text(payload, member)),
            "CHAT_STREAM_PATCH_MODE_SNAPSHOT" => {
                assert!(text(payload, member).starts_with(growing.as_str()));
                text(payload, member).clone_into(growing);
            }
            other => panic!("mode {other}"),
        }
        growing.clone()
    }

    fn project(&mut self, name: &str, payload: &Value, ordinal: u64) {
        let message = text(payload, "messageId");
        let call = text(payload, "toolCallId");
        match name {
            "ChatUserMessageAccepted" => {
                let text = &payload["text"];
                self.put(
                    "ChatMessage",
                    message,
                    ordinal,
                    json!({"messageId":message,
                    "role":payload["role"],"text":text,"content":text,"status":payload["status"]}),
                );
            }
            "ChatTextPatch" | "ChatReasoningPatch" => {
                let before = self.content(message);
                let added = text(payload, "text").to_owned();
                let whole = self.patched(payload, "text");
                let content = match text(payload, "mode") {
                    "CHAT_STREAM_PATCH_MODE_SNAPSHOT" => whole,
                    _ if before.trim().is_empty() => added,
                    _ => before + &added,
                };
                let mut changes = json!({"messageId":message,"role":payload["role"],"text":content,
                    "content":content,"status":"streaming","streaming":true});
                self.belongs(name, payload, &mut changes);
                self.put("ChatMessage", message, ordinal, changes);
            }
            "ChatTextSegmentFinished" | "ChatReasoningSegmentFinished" => {
                let key = ("ChatMessage".to_owned(), message.to_owned());
                let content = text(payload, "content");
                if content.trim().is_empty() && !self.entities.contains_key(&key) {
                    return;
                }
                let mut changes = json!({"messageId":message,"role":payload["role"],
                    "status":payload["status"],"streaming":false});
                if !content.is_empty() {
                    changes["text"] = json!(content);
                    changes["content"] = json!(content);
                }
                if name == "ChatTextSegmentFinished" {
                    changes["final"] = json!(true);
                }
                self.belongs(name, payload, &mut changes);
                self.put("ChatMessage", message, ordinal, changes);
            }
            "ChatRunFailed" => {
                let error = &payload["error"];
                let mut changes = json!({"messageId":message,"role":"error","text":error,
                    "content":error,"status":"failed","final":true});
                changes["correlation"] = payload["correlation"].clone();
                self.put("ChatMessage", message, ordinal, changes);
            }
            "ChatToolArgumentsPatch" => {
                let input = self.patched(payload, "arguments");
                self.put(
                    "ChatToolCall",
                    call,
                    ordinal,
                    json!({"messageId":message,
                    "toolCallId":call,"input":input,"status":"streaming_args",
                    "correlation":payload["correlation"]}),
                );
            }
            "ChatToolCallStarted" | "ChatToolCallRequested" | "ChatToolExecutionStarted" => {
                self.growing.remove(call);
                self.put(
                    "ChatToolCall",
                    call,
                    ordinal,
                    json!({"messageId":message,
                    "toolCallId":call,"toolName":payload["toolName"],"input":payload["input"],
                    "status":payload["status"],"correlation":payload["correlation"],
                    "executing":payload["executing"] == true}),
                );
            }
            "ChatToolCallFinished" => {
                self.put(
                    "ChatToolCall",
                    call,
                    ordinal,
                    json!({"messageId":message,
                    "toolCallId":call,"toolName":payload["toolName"],"status":"completed",
                    "correlation":payload["correlation"],"executing":false}),
                );
            }
            "ChatToolResultReady" => {
                let key = ("ChatToolResult".to_owned(), format!("{call}:result"));
                let created = self.entities.get(&key).map_or(ordinal, |it| it.created);
                let mut result = payload.as_object().unwrap().clone();
                result.remove("@type");
                let entity = Entity {
                    created,
                    last: ordinal,
                    payload: result,
                };
                self.entities.insert(key, entity);
            }
            _ => {}
        }
    }

    fn belongs(&self, name: &str, payload: &Value, changes: &mut Value) {
        changes["correlation"] = payload["correlation"].clone();
        if name.starts_with("ChatReasoning") {
            changes["parentMessageId"] = payload["parentMessageId"].clone();
            changes["segmentType"] = json!("reasoning");
        } else {
            changes["prompt"] = payload["prompt"].clone();
            let parent = text(payload, "messageId").rsplit_once(":text:");
            changes["parentMessageId"] = json!(parent.map_or("", |(parent, _)| parent));
        }
    }

    fn content(&self, id: &str) -> String {
        let key = ("ChatMessage".to_owned(), id.to_owned());
        let content = self.entities.get(&key).map(|it| it.payload.get("content"));
        let content = content.flatten().and_then(Value::as_str);
        content.unwrap_or_default().to_owned()
    }

    /// Members that are not empty overwrite; `false` removes a member.
    fn put(&mut self, kind: &str, id: &str, ordinal: u64, changes: Value) {
        let key = (kind.to_owned(), id.to_owned());
        let new = Entity {
            created: ordinal,
            last: ordinal,
            payload: Map::new(),
        };
        let entity = self.entities.entry(key).or_insert(new);
        entity.last = ordinal;
        let Value::Object(changes) = changes else {
            return;
        };
        for (name, value) in changes {
            match &value {
                Value::Bool(false) => drop(entity.payload.remove(&name)),
                Value::Null => {}
                Value::String(text) if text.is_empty() => {}
                Value::Object(members) if name == "correlation" => {
                    let old = entity.payload.entry(name).or_insert_with(|| json!({}));
                    for (name, value) in members {
                        old[name] = value.clone();
                    }
                }
                _ => drop(entity.payload.insert(name, value)),
            }
        }
    }

    fn assert_shows(&self, snapshot: &Value) {
        let mut known: Vec<_> = self.entities.iter().collect();
        known.sort_by_key(|((kind, id), it)| (it.created, it.last, kind.clone(), id.clone()));
        let known: Vec<Value> = known
            .into_iter()
            .map(|((kind, id), it)| {
                json!({"kind":kind,"id":id,"createdOrdinal":it.created.to_string(),
                    "lastEventOrdinal":it.last.to_string(),"payload":it.payload})
            })
            .collect();
        let shown = snapshot["entities"].as_array().cloned().unwrap_or_default();
        let shown: Vec<Value> = shown
            .into_iter()
            .map(|mut entity| {
                let payload = entity["payload"].as_object_mut().unwrap();
                assert!(payload.remove("@type").is_some());
                entity
            })
            .collect();
        assert_eq!(shown, known);
        assert_eq!(number(&snapshot["snapshotOrdinal"]), self.ordinal);
    }
}
