//! Speaks a turn in one of the four wire formats. The shapes follow what the providers send; numbers
//! such as ids count requests, so that a recording of the answers is the same every time.

use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use super::inspect::Dialect;
use super::outlet::{Ended, Outlet};
use super::scenario::{Delta, Step, ToolStep, steps, stop_reason};

/// The input of an answer.
pub(super) struct Answer<'a> {
    pub turn: &'a Value,
    pub model: &'a str,
    /// The number of the request, from 1.
    pub number: usize,
}

struct Usage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Answer<'_> {
    fn usage(&self) -> Usage {
        let get = |name: &str, default| self.turn["usage"][name].as_u64().unwrap_or(default);
        Usage {
            input: get("input", 100),
            output: get("output", 20),
            cache_read: get("cache_read", 0),
            cache_write: get("cache_write", 0),
        }
    }

    /// Returns the stop reason in the provider's words; unknown ones are sent unchanged.
    fn stop(&self, words: &[(&str, &str)]) -> String {
        let stop = stop_reason(self.turn);
        let found = words.iter().find(|(name, _)| *name == stop);
        found.map_or(stop.clone(), |(_, word)| (*word).to_owned())
    }

    pub(super) fn stream(&self, dialect: Dialect, out: &mut Outlet<'_>) -> Result<(), Ended> {
        match dialect {
            Dialect::Anthropic => self.anthropic(out),
            Dialect::Chat => self.chat(out),
            Dialect::Responses => self.responses(out),
            Dialect::Gemini => self.gemini(out),
        }?;
        out.finish()
    }

    fn anthropic(&self, out: &mut Outlet<'_>) -> Result<(), Ended> {
        let usage = self.usage();
        let tokens = |output: u64| {
            json!({"input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
                   "cache_read_input_tokens": usage.cache_read, "output_tokens": output})
        };
        let send = |out: &mut Outlet<'_>, data: Value| {
            let name = data["type"].as_str().unwrap_or_default().to_owned();
            out.event(Some(&name), &data)
        };
        let id = format!("msg_{:06}", self.number);
        send(
            out,
            json!({"type": "message_start", "message": {
                "id": id, "type": "message", "role": "assistant", "model": self.model, "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": tokens(1)}}),
        )?;
        let mut index = 0;
        let mut calls = 0;
        for step in steps(self.turn) {
            let start = match &step {
                Step::Control(control) => {
                    out.control(control)?;
                    continue;
                }
                Step::Raw(bytes) => {
                    out.raw(bytes)?;
                    continue;
                }
                Step::Error(error) => {
                    let error = error.clone().unwrap_or_else(
                        || json!({"type": "overloaded_error", "message": "Overloaded"}),
                    );
                    return send(out, json!({"type": "error", "error": error}));
                }
                Step::Text(_) => json!({"type": "text", "text": ""}),
                Step::Thinking { .. } => {
                    json!({"type": "thinking", "thinking": "", "signature": ""})
                }
                Step::Tool(tool) => {
                    let id = self.call_id("toolu", tool, calls);
                    calls += 1;
                    json!({"type": "tool_use", "id": id, "name": tool.name, "input": {}})
                }
            };
            send(
                out,
                json!({"type": "content_block_start", "index": index, "content_block": start}),
            )?;
            let delta = |out: &mut Outlet<'_>, delta: Value| {
                let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
                out.event(Some("content_block_delta"), &data)
            };
            match step {
                Step::Text(deltas) => each(deltas, out, |out, piece| {
                    delta(out, json!({"type": "text_delta", "text": piece}))
                })?,
                Step::Thinking { deltas, signature } => {
                    each(deltas, out, |out, piece| {
                        delta(out, json!({"type": "thinking_delta", "thinking": piece}))
                    })?;
                    let signature = signature.unwrap_or_else(|| "c2lnbmF0dXJl".into());
                    delta(
                        out,
                        json!({"type": "signature_delta", "signature": signature}),
                    )?;
                }
                Step::Tool(tool) => {
                    for piece in tool.pieces {
                        delta(
                            out,
                            json!({"type": "input_json_delta", "partial_json": piece}),
                        )?;
                    }
                }
                Step::Control(_) | Step::Raw(_) | Step::Error(_) => {}
            }
            send(out, json!({"type": "content_block_stop", "index": index}))?;
            index += 1;
        }
        let words = [
            ("stop", "end_turn"),
            ("tool", "tool_use"),
            ("length", "max_tokens"),
        ];
        send(
            out,
            json!({"type": "message_delta",
                   "delta": {"stop_reason": self.stop(&words), "stop_sequence": null},
                   "usage": tokens(usage.output)}),
        )?;
        send(out, json!({"type": "message_stop"}))
    }

    fn chat(&self, out: &mut Outlet<'_>) -> Result<(), Ended> {
        let usage = self.usage();
        let id = format!("chatcmpl-{:06}", self.number);
        let frame = |choices: Value| {
            json!({"id": id, "object": "chat.completion.chunk", "created": 1_700_000_000,
                   "model": self.model, "choices": choices})
        };
        let send = |out: &mut Outlet<'_>, delta: Value, finish: Value| {
            out.event(
                None,
                &frame(json!([{"index": 0, "delta": delta, "finish_reason": finish}])),
            )
        };
        send(
            out,
            json!({"role": "assistant", "content": ""}),
            Value::Null,
        )?;
        let mut calls = 0;
        for step in steps(self.turn) {
            match step {
                Step::Control(control) => out.control(&control)?,
                Step::Raw(bytes) => out.raw(&bytes)?,
                Step::Text(deltas) => each(deltas, out, |out, piece| {
                    send(out, json!({"content": piece}), Value::Null)
                })?,
                Step::Thinking { deltas, .. } => each(deltas, out, |out, piece| {
                    send(out, json!({"reasoning_content": piece}), Value::Null)
                })?,
                Step::Tool(tool) => {
                    let id = self.call_id("call", &tool, calls);
                    let first = json!({"index": calls, "id": id, "type": "function",
                                       "function": {"name": tool.name, "arguments": ""}});
                    send(out, json!({"tool_calls": [first]}), Value::Null)?;
                    for piece in tool.pieces {
                        let call = json!({"index": calls, "function": {"arguments": piece}});
                        send(out, json!({"tool_calls": [call]}), Value::Null)?;
                    }
                    calls += 1;
                }
                Step::Error(error) => {
                    let error = error.unwrap_or_else(
                        || json!({"message": "Overloaded", "type": "server_error"}),
                    );
                    return out.event(None, &json!({"error": error}));
                }
            }
        }
        let words = [("tool", "tool_calls")];
        send(out, json!({}), json!(self.stop(&words)))?;
        let prompt = usage.input + usage.cache_read;
        let mut last = frame(json!([]));
        last["usage"] = json!({"prompt_tokens": prompt, "completion_tokens": usage.output,
            "total_tokens": prompt + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
            "completion_tokens_details": {"reasoning_tokens": 0}});
        out.event(None, &last)?;
        out.raw(b"data: [DONE]\n\n")
    }

    fn gemini(&self, out: &mut Outlet<'_>) -> Result<(), Ended> {
        let usage = self.usage();
        let prompt = usage.input + usage.cache_read;
        let tokens = json!({"promptTokenCount": prompt, "candidatesTokenCount": usage.output,
            "totalTokenCount": prompt + usage.output, "cachedContentTokenCount": usage.cache_read});
        let send = |out: &mut Outlet<'_>, part: Value, finish: Option<&str>| {
            let mut candidate = json!({"content": {"parts": [part], "role": "model"}, "index": 0});
            if let Some(finish) = finish {
                candidate["finishReason"] = json!(finish);
            }
            let data = json!({"candidates": [candidate], "usageMetadata": tokens,
                "modelVersion": self.model, "responseId": format!("gem-{:06}", self.number)});
            out.event(None, &data)
        };
        for step in steps(self.turn) {
            match step {
                Step::Control(control) => out.control(&control)?,
                Step::Raw(bytes) => out.raw(&bytes)?,
                Step::Text(deltas) => {
                    each(deltas, out, |out, piece| {
                        send(out, json!({"text": piece}), None)
                    })?;
                }
                Step::Thinking { deltas, .. } => each(deltas, out, |out, piece| {
                    send(out, json!({"text": piece, "thought": true}), None)
                })?,
                Step::Tool(tool) => {
                    let call = json!({"name": tool.name, "args": tool.args});
                    send(out, json!({"functionCall": call}), None)?;
                }
                Step::Error(error) => {
                    let error = error.unwrap_or_else(
                        || json!({"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}),
                    );
                    return out.event(None, &json!({"error": error}));
                }
            }
        }
        let words = [("stop", "STOP"), ("tool", "STOP"), ("length", "MAX_TOKENS")];
        send(out, json!({"text": ""}), Some(&self.stop(&words)))
    }

    pub(super) fn call_id(&self, prefix: &str, tool: &ToolStep, call: usize) -> String {
        tool.id
            .clone()
            .unwrap_or_else(|| format!("{prefix}_{:03}_{call}", self.number))
    }

    /// The answer to a request that did not ask for a stream: the text only.
    pub(super) fn plain(&self, dialect: Dialect) -> Value {
        let usage = self.usage();
        let (number, model) = (self.number, self.model);
        let text: String = steps(self.turn)
            .into_iter()
            .filter_map(|step| {
                if let Step::Text(deltas) = step {
                    Some(deltas)
                } else {
                    None
                }
            })
            .flatten()
            .filter_map(|delta| {
                if let Delta::Piece(piece) = delta {
                    Some(piece)
                } else {
                    None
                }
            })
            .collect();
        let total = usage.input + usage.output;
        match dialect {
            Dialect::Anthropic => json!({"id": format!("msg_{number:06}"), "type": "message",
                "role": "assistant", "model": model, "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn", "stop_sequence": null,
                "usage": {"input_tokens": usage.input, "output_tokens": usage.output}}),
            Dialect::Chat => json!({"id": format!("chatcmpl-{number:06}"),
                "object": "chat.completion", "created": 1_700_000_000, "model": model,
                "choices": [{"index": 0, "finish_reason": "stop",
                             "message": {"role": "assistant", "content": text}}],
                "usage": {"prompt_tokens": usage.input, "completion_tokens": usage.output,
                          "total_tokens": total}}),
            Dialect::Responses => json!({"id": format!("resp_{number:06}"), "object": "response",
                "created_at": 1_700_000_000, "status": "completed", "model": model,
                "output": [{"id": format!("msg_{number:06}"), "type": "message",
                            "status": "completed", "role": "assistant",
                            "content": [{"type": "output_text", "text": text, "annotations": []}]}],
                "usage": {"input_tokens": usage.input, "output_tokens": usage.output,
                          "total_tokens": total}}),
            Dialect::Gemini => json!({"candidates": [{"content": {"parts": [{"text": text}],
                    "role": "model"}, "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": usage.input,
                    "candidatesTokenCount": usage.output, "totalTokenCount": total}}),
        }
    }

    pub(super) fn totals(&self) -> Value {
        let usage = self.usage();
        let prompt = usage.input + usage.cache_read;
        json!({"input_tokens": prompt, "output_tokens": usage.output,
               "total_tokens": prompt + usage.output,
               "input_tokens_details": {"cached_tokens": usage.cache_read},
               "output_tokens_details": {"reasoning_tokens": 0}})
    }
}

/// Sends the pieces of a block, with the pauses and faults between them.
pub(super) fn each(
    deltas: Vec<Delta>,
    out: &mut Outlet<'_>,
    mut send: impl FnMut(&mut Outlet<'_>, &str) -> Result<(), Ended>,
) -> Result<(), Ended> {
    deltas.into_iter().try_for_each(|delta| match delta {
        Delta::Piece(piece) if piece.contains(NOW) => send(out, &stamped(&piece)),
        Delta::Piece(piece) => send(out, &piece),
        Delta::Control(control) => out.control(&control),
    })
}

/// In a piece of text: the time at which it is sent, for measuring how long it takes to arrive.
const NOW: &str = "{now_ns}";

/// Inserts the time of the monotonic clock, which is the same in all processes of a machine.
fn stamped(piece: &str) -> String {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every system has this clock");
    let nanoseconds = now.tv_sec() * 1_000_000_000 + now.tv_nsec();
    piece.replace(NOW, &nanoseconds.to_string())
}
