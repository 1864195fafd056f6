//! A tool call and its updates.

use std::path::{Path, PathBuf};

use pinion_agent::{TextChange, ToolOutput};
use serde_json::{Value, json};

use crate::capabilities::ClientCapabilities;
use crate::command_result::{CommandResult, for_terminal, tidy};
use crate::tool_content;
use crate::tool_view;

/// Limit on the output that a terminal receives, in bytes.
const MAX_PRINTED_BYTES: usize = 1 << 20;
/// Printed where the output of a command is cut.
const CUT_NOTE: &str = "\r\n[The rest of the output is not shown here.]\r\n";

/// A call that the client knows.
pub(super) struct Call {
    pub id: String,
    name: String,
    title: String,
    /// The client shows the output in a terminal.
    has_terminal: bool,
    raw_input: Option<Value>,
    path: Option<PathBuf>,
    locations: Option<Value>,
    diffs: Vec<Value>,
    is_admitted: bool,
    printed: usize,
    /// The printed text ends with a line break, or is empty.
    ends_line: bool,
}

impl Call {
    /// Begins a call whose arguments still arrive.
    pub fn begin(id: &str, name: &str, client: &ClientCapabilities, _cwd: &Path) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            title: name.to_owned(),
            has_terminal: client.terminal_output && name == "bash",
            raw_input: None,
            path: None,
            locations: None,
            diffs: Vec::new(),
            is_admitted: false,
            printed: 0,
            ends_line: true,
        }
    }

    /// Adds what the complete arguments tell.
    pub fn describe(&mut self, arguments: &Value, change: Option<&TextChange>, cwd: &Path) {
        let line = change.and_then(|change| change.line);
        self.title = tool_view::title(&self.name, arguments, cwd);
        self.raw_input = Some(tool_view::raw_input(arguments));
        self.locations = tool_view::locations(&self.name, arguments, cwd, line);
        self.path = arguments["path"]
            .as_str()
            .map(|path| tool_view::absolute(path, cwd));
        self.diffs = change.map(tool_content::diffs).unwrap_or_default();
    }

    /// Returns the message that creates the call.
    pub fn created(&self, cwd: &Path) -> Value {
        let mut update = json!({
            "sessionUpdate": "tool_call",
            "toolCallId": self.id,
            "title": self.title,
            "name": self.name,
            "kind": tool_view::kind(&self.name),
            "status": "pending",
        });
        self.add_arguments(&mut update);
        if self.has_terminal {
            update["content"] = json!([{"type": "terminal", "terminalId": self.id}]);
            update["_meta"] = json!({"terminal_info": {
                "terminal_id": self.id, "cwd": cwd.display().to_string(),
            }});
        }
        update
    }

    /// Returns the update with the arguments.
    pub fn described(&self) -> Value {
        let mut update = self.update();
        update["title"] = self.title.as_str().into();
        self.add_arguments(&mut update);
        update
    }

    fn add_arguments(&self, update: &mut Value) {
        if let Some(raw_input) = &self.raw_input {
            update["rawInput"] = raw_input.clone();
        }
        if let Some(locations) = &self.locations {
            update["locations"] = locations.clone();
        }
        if !self.diffs.is_empty() {
            update["content"] = self.diffs.clone().into();
        }
    }

    /// Returns the call as a question shows it.
    pub fn question(&self) -> Value {
        let mut call = json!({
            "toolCallId": self.id,
            "title": self.title,
            "kind": tool_view::kind(&self.name),
            "status": "pending",
        });
        self.add_arguments(&mut call);
        call
    }

    /// The call has started.
    pub fn admitted(&mut self) -> Value {
        self.is_admitted = true;
        let mut update = self.update();
        update["status"] = "in_progress".into();
        update
    }

    /// The command printed text; `None` if nothing more is shown.
    pub fn printed(&mut self, text: &str) -> Option<Value> {
        if !self.has_terminal || text.is_empty() || self.printed >= MAX_PRINTED_BYTES {
            return None;
        }
        let left = MAX_PRINTED_BYTES - self.printed;
        self.printed += text.len();
        self.ends_line = text.ends_with('\n') || self.printed >= MAX_PRINTED_BYTES;
        let mut update = self.update();
        update["_meta"] = json!({"terminal_output": self.output(&if text.len() < left {
            text.to_owned()
        } else {
            format!("{}{CUT_NOTE}", &text[..text.floor_char_boundary(left)])
        })});
        Some(update)
    }

    fn output(&self, data: &str) -> Value {
        json!({"terminal_id": self.id, "data": data})
    }

    /// The call has new output, which replaces the earlier one; `None` if it is shown in another way.
    pub fn updated(&self, output: &ToolOutput) -> Option<Value> {
        let content = tool_content::of_result(&self.name, &output.content);
        if self.has_terminal || content.is_empty() || !self.diffs.is_empty() {
            return None;
        }
        let mut update = self.update();
        update["content"] = content.into();
        Some(update)
    }

    /// The call has ended.
    pub fn ended(&self, output: &ToolOutput, is_error: bool, cwd: &Path) -> Value {
        let mut update = self.result(output, is_error);
        if let Some(change) = &output.change {
            update["content"] = tool_content::diffs(change).into();
            let arguments = json!({"path": change.path});
            if let Some(locations) = tool_view::locations(&self.name, &arguments, cwd, change.line)
            {
                update["locations"] = locations;
            }
        }
        if let Some(approval) = output.details.as_ref().and_then(|it| it.get("approval")) {
            update["_meta"]["pinion"]["approval"] = approval.clone();
        }
        update
    }

    fn result(&self, output: &ToolOutput, is_error: bool) -> Value {
        let mut update = self.update();
        let text = tool_content::joined(&output.content);
        let is_command = self.name == "bash";
        let result = CommandResult::read(&text, is_error);
        let exit_code = result.exit_code.filter(|_| is_command);
        update["status"] = if is_error { "failed" } else { "completed" }.into();
        let details = output.details.as_ref();
        let was_run = self.is_admitted || !is_error;
        if let Some(raw) = tool_view::raw_output(&self.name, details, exit_code).filter(|_| was_run)
        {
            update["rawOutput"] = raw;
        }
        if self.has_terminal {
            let notes = if self.printed == 0 && exit_code.is_none() {
                text
            } else if self.printed == 0 && !result.output.is_empty() {
                format!("{}\n{}", result.output, result.notes)
            } else {
                result.notes
            };
            let notes = notes.trim_end_matches('\n');
            if !notes.is_empty() {
                let break_before = if self.ends_line { "" } else { "\r\n" };
                let data = format!("{break_before}{}", for_terminal(notes));
                update["_meta"]["terminal_output"] = self.output(&data);
            }
            update["_meta"]["terminal_exit"] = self.exit(exit_code);
        } else if is_command {
            let shown = tool_content::fenced(&tidy(&text));
            update["content"] = json!([tool_content::text(&if was_run { shown } else { text })]);
        } else {
            let name = if was_run { self.name.as_str() } else { "" };
            update["content"] = tool_content::of_result(name, &output.content).into();
        }
        update
    }

    fn exit(&self, code: Option<i32>) -> Value {
        json!({"terminal_id": self.id, "exit_code": code, "signal": null})
    }

    /// Returns the end of a call that was not made.
    pub fn failed(&self, reason: &str) -> Value {
        self.ended(&ToolOutput::text(reason), true, Path::new("/"))
    }

    /// Returns the result of a saved call.
    pub fn replayed(&mut self, output: &ToolOutput, is_error: bool, cwd: &Path) -> Value {
        self.is_admitted = true;
        let saved = output
            .details
            .as_ref()
            .and_then(|details| details["diff"].as_str());
        let has_terminal = std::mem::take(&mut self.has_terminal);
        let mut update = self.ended(output, is_error, cwd);
        self.has_terminal = has_terminal;
        if has_terminal && let Some(members) = update.as_object_mut() {
            members.remove("content");
            let text = tool_content::joined(&output.content);
            let result = CommandResult::read(&text, is_error);
            let mut data = result.output.to_owned();
            if !data.is_empty() {
                data.push('\n');
            }
            if !result.notes.is_empty() {
                data.push_str(&for_terminal(&result.notes));
            }
            update["_meta"]["terminal_output"] = self.output(&data);
            update["_meta"]["terminal_exit"] = self.exit(result.exit_code);
        }
        if !is_error && let Some(path) = &self.path {
            let diffs = match (self.name.as_str(), saved) {
                ("edit", Some(saved)) => tool_content::saved_diffs(path, saved),
                ("write", _) => self.diffs.clone(),
                _ => Vec::new(),
            };
            if !diffs.is_empty() {
                update["content"] = diffs.into();
            }
        }
        update
    }

    /// Shows the change of a saved call of `write`, whose file may have had other content.
    pub fn show_written(&mut self, arguments: &Value) {
        if self.name == "write"
            && let (Some(path), Some(text)) = (&self.path, arguments["content"].as_str())
        {
            let change = TextChange::between(path.clone(), None, text.to_owned());
            self.diffs = tool_content::diffs(&change);
        }
    }

    fn update(&self) -> Value {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": self.id})
    }
}
