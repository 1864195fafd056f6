//! The Responses dialect: every block is an item that is added, filled, closed, and repeated whole in
//! the last event. Kept apart from the other three because it has to remember what it sent.

use serde_json::{Map, Value, json};

use super::dialect::{Answer, each};
use super::outlet::{Ended, Outlet};
use super::scenario::{Delta, Step, ToolStep, steps, stop_reason};

/// Numbers the events of one answer.
struct Sequence(u64);

impl Sequence {
    fn send(&mut self, out: &mut Outlet<'_>, name: &str, fields: Value) -> Result<(), Ended> {
        let mut data = Map::new();
        data.insert("type".into(), json!(name));
        data.insert("sequence_number".into(), json!(self.0));
        self.0 += 1;
        if let Value::Object(fields) = fields {
            data.extend(fields);
        }
        out.event(Some(name), &Value::Object(data))
    }
}

impl Answer<'_> {
    pub(super) fn responses(&self, out: &mut Outlet<'_>) -> Result<(), Ended> {
        let mut events = Sequence(0);
        let mut items = Vec::new();
        for name in ["response.created", "response.in_progress"] {
            let whole = self.whole("in_progress", &[], Value::Null);
            events.send(out, name, json!({"response": whole}))?;
        }
        let mut calls = 0;
        for step in steps(self.turn) {
            let index = items.len();
            match step {
                Step::Control(control) => out.control(&control)?,
                Step::Raw(bytes) => out.raw(&bytes)?,
                Step::Text(deltas) => items.push(self.text(&mut events, out, index, deltas)?),
                Step::Thinking { deltas, signature } => {
                    items.push(self.reasoning(&mut events, out, index, deltas, signature)?);
                }
                Step::Tool(tool) => {
                    items.push(self.call(&mut events, out, index, calls, &tool)?);
                    calls += 1;
                }
                Step::Error(error) => {
                    let error = error.unwrap_or_else(
                        || json!({"code": "server_error", "message": "Overloaded"}),
                    );
                    let mut whole = self.whole("failed", &items, Value::Null);
                    whole["error"] = error;
                    return events.send(out, "response.failed", json!({"response": whole}));
                }
            }
        }
        if stop_reason(self.turn) == "length" {
            let mut whole = self.whole("incomplete", &items, self.totals());
            whole["incomplete_details"] = json!({"reason": "max_output_tokens"});
            return events.send(out, "response.incomplete", json!({"response": whole}));
        }
        let whole = self.whole("completed", &items, self.totals());
        events.send(out, "response.completed", json!({"response": whole}))
    }

    fn whole(&self, status: &str, items: &[Value], usage: Value) -> Value {
        json!({"id": format!("resp_{:06}", self.number), "object": "response",
            "created_at": 1_700_000_000, "status": status, "model": self.model, "output": items,
            "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "usage": usage})
    }

    fn text(
        &self,
        events: &mut Sequence,
        out: &mut Outlet<'_>,
        index: usize,
        deltas: Vec<Delta>,
    ) -> Result<Value, Ended> {
        let id = format!("msg_{:06}_{index}", self.number);
        let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
        let item = |status: &str, content: Value| {
            json!({"id": id, "type": "message", "status": status, "role": "assistant",
                   "content": content})
        };
        let at = json!({"item_id": id, "output_index": index, "content_index": 0});
        let opened = json!({"output_index": index, "item": item("in_progress", json!([]))});
        events.send(out, "response.output_item.added", opened)?;
        events.send(
            out,
            "response.content_part.added",
            with(&at, "part", part("")),
        )?;
        let mut text = String::new();
        each(deltas, out, |out, piece| {
            text.push_str(piece);
            events.send(
                out,
                "response.output_text.delta",
                with(&at, "delta", json!(piece)),
            )
        })?;
        events.send(
            out,
            "response.output_text.done",
            with(&at, "text", json!(text)),
        )?;
        events.send(
            out,
            "response.content_part.done",
            with(&at, "part", part(&text)),
        )?;
        let item = item("completed", json!([part(&text)]));
        let closed = json!({"output_index": index, "item": item});
        events.send(out, "response.output_item.done", closed)?;
        Ok(item)
    }

    fn reasoning(
        &self,
        events: &mut Sequence,
        out: &mut Outlet<'_>,
        index: usize,
        deltas: Vec<Delta>,
        signature: Option<String>,
    ) -> Result<Value, Ended> {
        let id = format!("rs_{:06}_{index}", self.number);
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        let at = json!({"item_id": id, "output_index": index, "summary_index": 0});
        let opened = json!({"output_index": index,
                            "item": {"id": id, "type": "reasoning", "summary": []}});
        events.send(out, "response.output_item.added", opened)?;
        events.send(
            out,
            "response.reasoning_summary_part.added",
            with(&at, "part", part("")),
        )?;
        let mut text = String::new();
        each(deltas, out, |out, piece| {
            text.push_str(piece);
            let name = "response.reasoning_summary_text.delta";
            events.send(out, name, with(&at, "delta", json!(piece)))
        })?;
        events.send(
            out,
            "response.reasoning_summary_text.done",
            with(&at, "text", json!(text)),
        )?;
        events.send(
            out,
            "response.reasoning_summary_part.done",
            with(&at, "part", part(&text)),
        )?;
        let item = json!({"id": id, "type": "reasoning", "summary": [part(&text)],
            "encrypted_content": signature.unwrap_or_else(|| "ZW5jcnlwdGVk".into())});
        let closed = json!({"output_index": index, "item": item});
        events.send(out, "response.output_item.done", closed)?;
        Ok(item)
    }

    fn call(
        &self,
        events: &mut Sequence,
        out: &mut Outlet<'_>,
        index: usize,
        call: usize,
        tool: &ToolStep,
    ) -> Result<Value, Ended> {
        let id = format!("fc_{:06}_{index}", self.number);
        let call_id = self.call_id("call", tool, call);
        let item = |status: &str, arguments: &str| {
            json!({"id": id, "type": "function_call", "status": status, "call_id": call_id,
                   "name": tool.name, "arguments": arguments})
        };
        let at = json!({"item_id": id, "output_index": index});
        let opened = json!({"output_index": index, "item": item("in_progress", "")});
        events.send(out, "response.output_item.added", opened)?;
        for piece in &tool.pieces {
            let name = "response.function_call_arguments.delta";
            events.send(out, name, with(&at, "delta", json!(piece)))?;
        }
        let arguments = tool.pieces.concat();
        let name = "response.function_call_arguments.done";
        events.send(out, name, with(&at, "arguments", json!(arguments)))?;
        let item = item("completed", &arguments);
        let closed = json!({"output_index": index, "item": item});
        events.send(out, "response.output_item.done", closed)?;
        Ok(item)
    }
}

fn with(at: &Value, name: &str, value: Value) -> Value {
    let mut fields = at.clone();
    fields[name] = value;
    fields
}
