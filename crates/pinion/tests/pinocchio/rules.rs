//! Rules of every stream of frames: numbers without gaps, each run ended once, each request done once, and texts that
//! are the sum of their patches.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::support::shorten;

/// The events that end a run.
pub const ENDS: [&str; 3] = ["ChatRunFinished", "ChatRunStopped", "ChatRunFailed"];

/// The state of a stream so far.
#[derive(Default)]
struct Seen {
    ordinal: u64,
    /// Roots of runs that have begun and not ended.
    running: HashSet<String>,
    ended: HashSet<String>,
    /// Texts of segments that are open, by message.
    open: HashMap<String, String>,
    /// Requests that are done.
    done: HashSet<String>,
    /// Requests whose id was used again; they are not checked.
    repeated: HashSet<String>,
}

/// Checks a whole stream; the error names the line.
pub fn check(lines: &[Value]) -> Result<(), String> {
    check_with(lines, &[])
}

/// Checks a stream in which these request ids were used more than once.
pub fn check_with(lines: &[Value], repeated: &[&str]) -> Result<(), String> {
    let mut seen = Seen {
        repeated: repeated.iter().map(ToString::to_string).collect(),
        ..Seen::default()
    };
    for (at, line) in lines.iter().enumerate() {
        let told = match at {
            0 if line.get("hello").is_none() => Err("the first frame is no hello".to_owned()),
            0 => Ok(()),
            _ => seen.frame(line),
        };
        told.map_err(|fault| format!("line {at}: {fault}: {}", shorten(&line.to_string())))?;
    }
    match (seen.running.is_empty(), seen.open.is_empty()) {
        (true, true) => Ok(()),
        _ => Err(format!(
            "at the end, runs {:?} and segments {:?} are open",
            seen.running, seen.open
        )),
    }
}

impl Seen {
    fn frame(&mut self, line: &Value) -> Result<(), String> {
        if line["version"] != 1 || line["sessionId"].as_str().is_none_or(str::is_empty) {
            return Err("no version or session".to_owned());
        }
        let id = line["requestId"].as_str().unwrap_or_default().to_owned();
        if self.done.contains(&id) && !self.repeated.contains(&id) {
            return Err("the request is done".to_owned());
        }
        if line.get("done").is_some() {
            if !self.open.is_empty() && self.running.is_empty() {
                return Err("done with open segments".to_owned());
            }
            self.done.insert(id);
        } else if let Some(event) = line.get("uiEvent") {
            self.event(event)?;
        } else if let Some(snapshot) = line.get("snapshot") {
            let told = snapshot["snapshotOrdinal"].as_str().unwrap_or("0");
            if told != self.ordinal.to_string() {
                return Err(format!("a snapshot of {told} after event {}", self.ordinal));
            }
        } else if let Some(error) = line.get("error") {
            if error["message"] != error["detail"] || error["code"].as_str().is_none() {
                return Err("an error without code, or with two messages".to_owned());
            }
        } else {
            return Err("a frame of no kind".to_owned());
        }
        Ok(())
    }

    fn event(&mut self, event: &Value) -> Result<(), String> {
        self.ordinal += 1;
        let expected = self.ordinal.to_string();
        if event["ordinal"].as_str() != Some(&expected) {
            return Err(format!("event {expected} was expected"));
        }
        let name = event["name"].as_str().unwrap_or_default();
        let payload = &event["payload"];
        let type_url = payload["@type"].as_str().unwrap_or_default();
        if !type_url.ends_with(&format!(".{name}")) {
            return Err("a payload that is not what its event says".to_owned());
        }
        let message = payload["messageId"].as_str().unwrap_or_default().to_owned();
        match name {
            "ChatRunStarted" => {
                held(self.running.insert(message), "a run begins twice")?;
            }
            end if ENDS.contains(&end) => {
                if !self.running.remove(&message) || !self.ended.insert(message) {
                    return Err("a run ends that did not begin, or ends again".to_owned());
                }
                if !self.open.is_empty() {
                    return Err("a run ends with open segments".to_owned());
                }
            }
            "ChatTextSegmentStarted" | "ChatReasoningSegmentStarted" => {
                let before = self.open.insert(message, String::new());
                held(before.is_none(), "a segment begins twice")?;
            }
            "ChatTextPatch" | "ChatReasoningPatch" => {
                let Some(text) = self.open.get_mut(&message) else {
                    return Err("a patch of a segment that is not open".to_owned());
                };
                patch(text, payload)?;
            }
            "ChatTextSegmentFinished" | "ChatReasoningSegmentFinished" => {
                let warning = message.ends_with(":warning");
                let content = payload["content"].as_str().unwrap_or_default();
                match self.open.remove(&message) {
                    None if !warning => return Err("a segment ends that is not open".to_owned()),
                    // Parts of a summary are reported with blank lines between them; the last part has none.
                    Some(text)
                        if name.starts_with("ChatReasoning") && text.trim_end() == content => {}
                    Some(text) if content != text => {
                        return Err(format!("the patches said {text:?}"));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn held(holds: bool, fault: &str) -> Result<(), String> {
    match holds {
        true => Ok(()),
        false => Err(fault.to_owned()),
    }
}

/// Applies a patch to a text as a client does.
fn patch(text: &mut String, payload: &Value) -> Result<(), String> {
    let offset = payload["offset"].as_str().unwrap_or("0");
    if offset != text.len().to_string() {
        return Err(format!("{} bytes came before", text.len()));
    }
    let new = payload["text"].as_str().unwrap_or_default();
    match payload["mode"].as_str() {
        Some("CHAT_STREAM_PATCH_MODE_APPEND") => text.push_str(new),
        Some("CHAT_STREAM_PATCH_MODE_SNAPSHOT") if new.starts_with(&*text) => {
            text.clear();
            text.push_str(new);
        }
        mode => return Err(format!("mode {mode:?} over {text:?}")),
    }
    Ok(())
}
