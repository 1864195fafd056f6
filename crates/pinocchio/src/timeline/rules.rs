//! The changes of entities by each event.

use pinion_proto::Message;

use super::entity::{Body, first, merge, overwrite};
use super::{MESSAGE, Timeline};
use crate::events::ChatEvent;
use crate::ids;
use crate::message::Undecodable;
use crate::patch::{Patch, PatchKind, PatchMode};
use crate::pb;
use crate::plugins;

const RESULT: &str = "ChatToolResult";

impl Timeline {
    /// Applies an event. Entities that already contain it stay unchanged.
    pub fn apply(&mut self, event: &ChatEvent, ordinal: u64) -> Result<(), Undecodable> {
        match event {
            ChatEvent::Patch(patch) => self.patch(patch, ordinal),
            ChatEvent::UserMessageAccepted(event) => {
                self.message(&event.message_id, ordinal, |it| {
                    it.message.role.clone_from(&event.role);
                    it.message.status.clone_from(&event.status);
                    it.message.attachments.clone_from(&event.attachments);
                    it.text = event.text.to_string();
                })
            }
            ChatEvent::TextSegmentStarted(event) => {
                if self.position(MESSAGE, &event.message_id).is_none() {
                    return Ok(());
                }
                self.message(&event.message_id, ordinal, |it| {
                    it.message.status.clone_from(&event.status);
                    it.message.streaming = event.streaming;
                    merge(&mut it.message.correlation, event.correlation.as_ref());
                })
            }
            ChatEvent::TextSegmentFinished(event) => {
                let content = first(&event.content, &event.text);
                if self.is_empty_segment(&event.message_id, content) {
                    return Ok(());
                }
                self.message(&event.message_id, ordinal, |it| {
                    it.replace_text(content);
                    overwrite(&mut it.message.role, &event.role);
                    overwrite(&mut it.message.prompt, &event.prompt);
                    it.message.status.clone_from(&event.status);
                    it.message.streaming = false;
                    it.message.r#final = true;
                    it.name_parent(ids::parent_of_text(&event.message_id));
                    merge(&mut it.message.correlation, event.correlation.as_ref());
                })
            }
            ChatEvent::ReasoningSegmentStarted(event) => {
                if self.position(MESSAGE, &event.message_id).is_none() {
                    return Ok(());
                }
                self.message(&event.message_id, ordinal, |it| {
                    it.message.status.clone_from(&event.status);
                    it.message.streaming = event.streaming;
                    merge(&mut it.message.correlation, event.correlation.as_ref());
                })
            }
            ChatEvent::ReasoningSegmentFinished(event) => {
                let content = first(&event.content, &event.text);
                if self.is_empty_segment(&event.message_id, content) {
                    return Ok(());
                }
                self.message(&event.message_id, ordinal, |it| {
                    it.replace_text(content);
                    it.message.role = "thinking".into();
                    it.message.segment_type = "reasoning".into();
                    it.message.status.clone_from(&event.status);
                    it.message.streaming = false;
                    it.name_parent(&event.parent_message_id);
                    merge(&mut it.message.correlation, event.correlation.as_ref());
                })
            }
            ChatEvent::RunFailed(event) => self.message(&event.message_id, ordinal, |it| {
                it.message.role = "error".into();
                it.message.status = "failed".into();
                it.message.r#final = true;
                it.text = event.error.to_string();
                merge(&mut it.message.correlation, event.correlation.as_ref());
            }),
            ChatEvent::ToolCallStarted(pb::ChatToolCallStarted {
                message_id,
                tool_call_id,
                tool_name,
                input,
                executing,
                status,
                correlation,
            })
            | ChatEvent::ToolCallRequested(pb::ChatToolCallRequested {
                message_id,
                tool_call_id,
                tool_name,
                input,
                executing,
                status,
                correlation,
            })
            | ChatEvent::ToolExecutionStarted(pb::ChatToolExecutionStarted {
                message_id,
                tool_call_id,
                tool_name,
                input,
                executing,
                status,
                correlation,
            }) => self.call(tool_call_id, ordinal, |it| {
                // Some providers number calls from the start in every answer.
                if it.message.status == "completed" {
                    it.text.clear();
                }
                overwrite(&mut it.message.message_id, message_id);
                overwrite(&mut it.message.tool_name, tool_name);
                overwrite(&mut it.message.status, status);
                it.message.executing = *executing;
                it.replace_text(input);
                merge(&mut it.message.correlation, correlation.as_ref());
            }),
            ChatEvent::ToolCallFinished(event) => self.call(&event.tool_call_id, ordinal, |it| {
                overwrite(&mut it.message.message_id, &event.message_id);
                overwrite(&mut it.message.tool_name, &event.tool_name);
                it.message.status = "completed".into();
                it.message.executing = false;
                merge(&mut it.message.correlation, event.correlation.as_ref());
            }),
            ChatEvent::ToolResultReady(event) => {
                let result = pb::ToolResultEntity {
                    message_id: event.message_id.clone(),
                    tool_call_id: event.tool_call_id.clone(),
                    tool_name: event.tool_name.clone(),
                    result: event.result.clone(),
                    status: event.status.clone(),
                    correlation: event.correlation.clone(),
                };
                let id = ids::tool_result(&event.tool_call_id);
                self.replace(RESULT, &id, ordinal, Body::Stored(result.to_json().into()));
                Ok(())
            }
            // These change no entity; only the event is stored.
            ChatEvent::RunStarted(_)
            | ChatEvent::RunFinished(_)
            | ChatEvent::RunStopped(_)
            | ChatEvent::ProviderCallStarted(_)
            | ChatEvent::ProviderCallMetadataUpdated(_)
            | ChatEvent::ProviderCallFinished(_) => Ok(()),
            event => self.plugin(event, ordinal),
        }
    }

    fn patch(&mut self, patch: &Patch, ordinal: u64) -> Result<(), Undecodable> {
        let facts = &patch.stream.facts;
        let replaces = patch.mode == PatchMode::Snapshot;
        match patch.stream.kind {
            PatchKind::Text | PatchKind::Thinking => {
                self.grow_message(&facts.message_id, ordinal, |it, is_new| {
                    if replaces || it.text.trim().is_empty() {
                        it.text.clear();
                    }
                    it.text.push_str(&patch.text);
                    if is_new || !it.message.streaming {
                        it.message.status = "streaming".into();
                        it.message.streaming = true;
                        it.message.role.clone_from(&facts.role);
                        if patch.stream.kind == PatchKind::Thinking {
                            it.message.segment_type = "reasoning".into();
                            it.name_parent(&facts.parent_message_id);
                        } else {
                            it.message.prompt.clone_from(&facts.prompt);
                            it.name_parent(ids::parent_of_text(&facts.message_id));
                        }
                        merge(&mut it.message.correlation, facts.correlation.as_ref());
                    }
                })
            }
            PatchKind::Arguments => self.grow_call(&facts.tool_call_id, ordinal, |it| {
                if replaces {
                    it.text.clear();
                }
                it.text.push_str(&patch.text);
                if it.message.status != "streaming_args" {
                    it.message.status = "streaming_args".into();
                    overwrite(&mut it.message.message_id, &facts.message_id);
                    merge(&mut it.message.correlation, facts.correlation.as_ref());
                }
            }),
        }
    }

    fn plugin(&mut self, event: &ChatEvent, ordinal: u64) -> Result<(), Undecodable> {
        let current = |kind: &str, id: &str| {
            let at = self.position(kind, id)?;
            let entity = self.entities.get(at)?;
            entity.payload().map(|payload| payload.to_string())
        };
        let Some(projected) = plugins::project(event, &current)? else {
            return Ok(());
        };
        let body = match projected.payload {
            Some(payload) => Body::Stored(payload.into()),
            None => Body::Gone,
        };
        self.replace(projected.kind, &projected.id, ordinal, body);
        Ok(())
    }
}
