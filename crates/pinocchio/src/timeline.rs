//! The timeline projection: what a chat looks like now, made from its events.
//!
//! Entities are kept as they are and not as JSON, so that a patch costs what it adds. They are printed when
//! somebody wants to see them; a store gets one that only grew when it has doubled, and in any case when it is
//! complete.

use std::collections::HashMap;
use std::sync::Arc;

use pinion_history::{EntityChange, TimelineEntity};
use pinion_proto::Message;

use crate::events::ChatEvent;
use crate::ids;
use crate::message::{Undecodable, decode};
use crate::patch::{Patch, PatchKind, PatchMode};
use crate::pb::{self, Text};
use crate::plugins;

const MESSAGE: &str = "ChatMessage";
const CALL: &str = "ChatToolCall";
const RESULT: &str = "ChatToolResult";

/// All entities of a session.
#[derive(Debug, Default)]
pub struct Timeline {
    entities: Vec<Entity>,
    /// Positions by id; entities of different kinds may share one.
    by_id: HashMap<Arc<str>, Vec<usize>>,
    /// Those a store does not have in their present form.
    changed: Vec<usize>,
}

#[derive(Debug)]
struct Entity {
    kind: Arc<str>,
    id: Arc<str>,
    created: u64,
    last: u64,
    body: Body,
    change: Change,
    /// How long its growing text was when a store last got it.
    handed: usize,
}

#[derive(Debug)]
enum Body {
    /// As a store had it, or of a kind that does not grow.
    Stored(Arc<str>),
    /// `text` and `content` are empty here.
    Message(Box<Growing<pb::ChatMessageEntity>>),
    /// `input` is empty here.
    Call(Box<Growing<pb::ToolCallEntity>>),
    Gone,
}

#[derive(Debug, Default)]
struct Growing<M> {
    message: M,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    No,
    Grew,
    Otherwise,
}

/// An entity for a snapshot.
#[derive(Debug)]
pub struct Shown {
    /// What it is.
    pub kind: Arc<str>,
    /// Its name.
    pub id: Arc<str>,
    /// The event it came with.
    pub created_ordinal: u64,
    /// The event that changed it last.
    pub last_event_ordinal: u64,
    /// Protobuf JSON, without `@type`.
    pub payload: Arc<str>,
}

impl Timeline {
    /// The entities a store has.
    pub fn of(entities: Vec<TimelineEntity>) -> Self {
        let mut timeline = Self::default();
        for stored in entities.into_iter().filter(|entity| !entity.tombstone) {
            timeline.insert(Entity {
                kind: stored.kind,
                id: stored.id,
                created: stored.created_ordinal,
                last: stored.last_event_ordinal,
                body: Body::Stored(stored.payload),
                change: Change::No,
                handed: 1,
            });
        }
        timeline
    }

    /// The first event that may be missing in what a store had of entities that were still growing: whoever wrote
    /// them was ended in the middle of a run.
    pub(crate) fn behind_since(&self) -> Option<u64> {
        let growing = self.entities.iter().filter(|entity| match &entity.body {
            Body::Stored(payload) => {
                payload.contains("\"streaming\":true") || payload.contains("\"streaming_args\"")
            }
            _ => false,
        });
        growing.map(|entity| entity.last).min()
    }

    /// Takes an event. Entities that know of it already stay as they are.
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
                if self.is_nothing(&event.message_id, content) {
                    return Ok(());
                }
                self.message(&event.message_id, ordinal, |it| {
                    it.take(content);
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
                if self.is_nothing(&event.message_id, content) {
                    return Ok(());
                }
                self.message(&event.message_id, ordinal, |it| {
                    it.take(content);
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
                overwrite(&mut it.message.message_id, message_id);
                overwrite(&mut it.message.tool_name, tool_name);
                overwrite(&mut it.message.status, status);
                it.message.executing = *executing;
                it.take(input);
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
            // Of these, only the event itself is kept.
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

    /// Whether a finished segment leaves nothing behind.
    fn is_nothing(&self, id: &str, content: &str) -> bool {
        content.trim().is_empty() && self.position(MESSAGE, id).is_none()
    }

    fn position(&self, kind: &str, id: &str) -> Option<usize> {
        let positions = self.by_id.get(id)?;
        let of_kind = |at: &&usize| {
            let entity = self.entities.get(**at);
            entity.is_some_and(|entity| &*entity.kind == kind && !entity.is_gone())
        };
        positions.iter().find(of_kind).copied()
    }

    fn insert(&mut self, entity: Entity) -> usize {
        let at = self.entities.len();
        self.by_id
            .entry(Arc::clone(&entity.id))
            .or_default()
            .push(at);
        self.entities.push(entity);
        at
    }

    fn position_or_new(&mut self, kind: &str, id: &str, ordinal: u64) -> (usize, bool) {
        if let Some(at) = self.position(kind, id) {
            return (at, false);
        }
        let body = match kind {
            MESSAGE => {
                let mut growing = Box::<Growing<pb::ChatMessageEntity>>::default();
                growing.message.message_id = Text::new(id);
                Body::Message(growing)
            }
            CALL => {
                let mut growing = Box::<Growing<pb::ToolCallEntity>>::default();
                growing.message.tool_call_id = Text::new(id);
                Body::Call(growing)
            }
            _ => Body::Gone,
        };
        let entity = Entity {
            kind: kind.into(),
            id: id.into(),
            created: ordinal,
            last: 0,
            body,
            change: Change::No,
            handed: 0,
        };
        (self.insert(entity), true)
    }

    /// Changes a message, or makes it.
    fn message(
        &mut self,
        id: &str,
        ordinal: u64,
        change: impl FnOnce(&mut Growing<pb::ChatMessageEntity>),
    ) -> Result<(), Undecodable> {
        let (at, _) = self.position_or_new(MESSAGE, id, ordinal);
        self.change_message(at, ordinal, Change::Otherwise, change)
    }

    fn grow_message(
        &mut self,
        id: &str,
        ordinal: u64,
        change: impl FnOnce(&mut Growing<pb::ChatMessageEntity>, bool),
    ) -> Result<(), Undecodable> {
        let (at, is_new) = self.position_or_new(MESSAGE, id, ordinal);
        self.change_message(at, ordinal, Change::Grew, |it| change(it, is_new))
    }

    fn change_message(
        &mut self,
        at: usize,
        ordinal: u64,
        how: Change,
        change: impl FnOnce(&mut Growing<pb::ChatMessageEntity>),
    ) -> Result<(), Undecodable> {
        let Some(entity) = self.entities.get_mut(at).filter(|it| it.last < ordinal) else {
            return Ok(());
        };
        let mut failure = Ok(());
        if let Body::Stored(payload) = &entity.body {
            let mut message: pb::ChatMessageEntity = read(payload, &mut failure);
            let text = first(&message.content, &message.text).to_owned();
            message.message_id = Text::new(&entity.id);
            message.text = Text::default();
            message.content = Text::default();
            entity.body = Body::Message(Box::new(Growing { message, text }));
        }
        if let Body::Message(growing) = &mut entity.body {
            change(growing);
        }
        self.touched(at, ordinal, how);
        failure
    }

    /// Changes a call, or makes it.
    fn call(
        &mut self,
        id: &str,
        ordinal: u64,
        change: impl FnOnce(&mut Growing<pb::ToolCallEntity>),
    ) -> Result<(), Undecodable> {
        self.change_call(id, ordinal, Change::Otherwise, change)
    }

    fn grow_call(
        &mut self,
        id: &str,
        ordinal: u64,
        change: impl FnOnce(&mut Growing<pb::ToolCallEntity>),
    ) -> Result<(), Undecodable> {
        self.change_call(id, ordinal, Change::Grew, change)
    }

    fn change_call(
        &mut self,
        id: &str,
        ordinal: u64,
        how: Change,
        change: impl FnOnce(&mut Growing<pb::ToolCallEntity>),
    ) -> Result<(), Undecodable> {
        let (at, _) = self.position_or_new(CALL, id, ordinal);
        let Some(entity) = self.entities.get_mut(at).filter(|it| it.last < ordinal) else {
            return Ok(());
        };
        let mut failure = Ok(());
        if let Body::Stored(payload) = &entity.body {
            let mut message: pb::ToolCallEntity = read(payload, &mut failure);
            message.tool_call_id = Text::new(&entity.id);
            let text = std::mem::take(&mut message.input).to_string();
            entity.body = Body::Call(Box::new(Growing { message, text }));
        }
        if let Body::Call(growing) = &mut entity.body {
            change(growing);
        }
        self.touched(at, ordinal, how);
        failure
    }

    /// Puts a whole entity in the place of the one before.
    fn replace(&mut self, kind: &str, id: &str, ordinal: u64, body: Body) {
        let (at, _) = self.position_or_new(kind, id, ordinal);
        if let Some(entity) = self.entities.get_mut(at).filter(|it| it.last < ordinal) {
            entity.body = body;
            self.touched(at, ordinal, Change::Otherwise);
        }
    }

    fn touched(&mut self, at: usize, ordinal: u64, how: Change) {
        if let Some(entity) = self.entities.get_mut(at) {
            entity.last = ordinal;
            if entity.change == Change::No {
                self.changed.push(at);
            }
            if entity.change != Change::Otherwise {
                entity.change = how;
            }
        }
    }

    /// Gives what a store does not have yet, and counts it as given.
    pub fn hand_over(&mut self, changes: &mut Vec<EntityChange>) {
        let Self {
            entities, changed, ..
        } = self;
        changed.retain(|at| {
            let Some(entity) = entities.get_mut(*at) else {
                return false;
            };
            let size = entity.growing_size();
            // Handing over a text each time it has doubled costs twice its final size, however often it grew.
            if entity.change == Change::Grew && entity.handed > 0 && size < 2 * entity.handed {
                return true;
            }
            let payload = entity.payload();
            changes.push(EntityChange {
                ordinal: entity.last,
                entity: TimelineEntity {
                    kind: Arc::clone(&entity.kind),
                    id: Arc::clone(&entity.id),
                    created_ordinal: entity.created,
                    last_event_ordinal: entity.last,
                    tombstone: payload.is_none(),
                    payload: payload.unwrap_or_else(|| "null".into()),
                },
            });
            entity.change = Change::No;
            entity.handed = size.max(1);
            false
        });
    }

    /// All entities, in the order of snapshots.
    pub fn shown(&self) -> Vec<Shown> {
        let mut shown: Vec<Shown> = self
            .entities
            .iter()
            .filter_map(|entity| {
                Some(Shown {
                    kind: Arc::clone(&entity.kind),
                    id: Arc::clone(&entity.id),
                    created_ordinal: entity.created,
                    last_event_ordinal: entity.last,
                    payload: entity.payload()?,
                })
            })
            .collect();
        shown.sort_by(|a, b| a.order().cmp(&b.order()));
        shown
    }
}

impl Shown {
    fn order(&self) -> (u64, u64, &str, &str) {
        (
            self.created_ordinal,
            self.last_event_ordinal,
            &self.kind,
            &self.id,
        )
    }
}

impl Entity {
    fn is_gone(&self) -> bool {
        matches!(self.body, Body::Gone)
    }

    fn growing_size(&self) -> usize {
        match &self.body {
            Body::Message(growing) => growing.text.len(),
            Body::Call(growing) => growing.text.len(),
            Body::Stored(_) | Body::Gone => 0,
        }
    }

    /// As protobuf JSON; nothing if it is gone.
    fn payload(&self) -> Option<Arc<str>> {
        Some(match &self.body {
            Body::Stored(payload) => Arc::clone(payload),
            Body::Message(growing) => {
                let text = Text::new(&growing.text);
                let message = pb::ChatMessageEntity {
                    text: text.clone(),
                    content: text,
                    ..growing.message.clone()
                };
                message.to_json().into()
            }
            Body::Call(growing) => {
                let message = pb::ToolCallEntity {
                    input: Text::new(&growing.text),
                    ..growing.message.clone()
                };
                message.to_json().into()
            }
            Body::Gone => return None,
        })
    }
}

impl<M> Growing<M> {
    /// Takes `text` in the place of what there was, unless there is none.
    fn take(&mut self, text: &str) {
        if !text.is_empty() {
            text.clone_into(&mut self.text);
        }
    }
}

impl Growing<pb::ChatMessageEntity> {
    fn name_parent(&mut self, parent: &str) {
        if !parent.is_empty() && *self.message.parent_message_id != *parent {
            self.message.parent_message_id = Text::new(parent);
        }
    }
}

/// Reads a stored entity. One that cannot be read begins anew, so that it fails once and not with each event.
fn read<M: Message>(payload: &str, failure: &mut Result<(), Undecodable>) -> M {
    decode(payload).unwrap_or_else(|error| {
        *failure = Err(error);
        M::default()
    })
}

fn first<'a>(preferred: &'a str, otherwise: &'a str) -> &'a str {
    match preferred.is_empty() {
        true => otherwise,
        false => preferred,
    }
}

/// Takes `new` where it says something.
fn overwrite(old: &mut Text, new: &Text) {
    if !new.is_empty() {
        old.clone_from(new);
    }
}

/// Takes from `new` what it says.
fn merge(old: &mut Option<pb::CorrelationInfo>, new: Option<&pb::CorrelationInfo>) {
    let Some(new) = new else { return };
    let old = old.get_or_insert_default();
    overwrite(&mut old.session_id, &new.session_id);
    overwrite(&mut old.run_id, &new.run_id);
    overwrite(&mut old.turn_id, &new.turn_id);
    overwrite(&mut old.provider_call_id, &new.provider_call_id);
    overwrite(&mut old.segment_id, &new.segment_id);
    overwrite(&mut old.tool_call_id, &new.tool_call_id);
}
