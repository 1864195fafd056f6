//! The timeline projection: the current state of a chat, derived from its events.
//!
//! Entities are stored as structures and not as JSON, so that the work for a patch depends only on its length. They are
//! encoded when they are read. A store receives an entity that only grew when its size has doubled, and always when it
//! is complete.

mod entity;
mod rules;

use std::collections::HashMap;
use std::sync::Arc;

use pinion_history::{EntityChange, TimelineEntity};

use crate::message::Undecodable;
use crate::pb::{self, Text};
use entity::{Body, Change, Entity, Growing, first, read};

const MESSAGE: &str = "ChatMessage";
const CALL: &str = "ChatToolCall";

/// All entities of a session.
#[derive(Debug, Default)]
pub struct Timeline {
    entities: Vec<Entity>,
    /// Positions by id; entities of different kinds may share an id.
    by_id: HashMap<Arc<str>, Vec<usize>>,
    /// Entities whose current form is not in the store.
    changed: Vec<usize>,
}

/// An entity in a snapshot.
#[derive(Debug)]
pub struct ShownEntity {
    pub kind: Arc<str>,
    pub id: Arc<str>,
    /// The number of the event that created it.
    pub created_ordinal: u64,
    /// The number of the event that last changed it.
    pub last_event_ordinal: u64,
    /// Protobuf JSON, without `@type`.
    pub payload: Arc<str>,
}

impl Timeline {
    /// Creates a timeline from the entities of a store.
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
                stored_length: 1,
            });
        }
        timeline
    }

    /// Returns the first event that may be missing in stored entities that were still growing, because their writer
    /// ended in the middle of a run.
    pub(crate) fn first_missing_event(&self) -> Option<u64> {
        let growing = self.entities.iter().filter(|entity| match &entity.body {
            Body::Stored(payload) => {
                payload.contains("\"streaming\":true") || payload.contains("\"streaming_args\"")
            }
            _ => false,
        });
        growing.map(|entity| entity.last).min()
    }

    /// Reports whether a finished segment is empty and leaves no entity.
    fn is_empty_segment(&self, id: &str, content: &str) -> bool {
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
            stored_length: 0,
        };
        (self.insert(entity), true)
    }

    /// Changes or creates a message.
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

    /// Changes or creates a tool call.
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

    /// Replaces a whole entity.
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

    /// Appends the entities that a store does not have yet, and marks them as stored.
    pub fn drain_changes(&mut self, changes: &mut Vec<EntityChange>) {
        let Self {
            entities, changed, ..
        } = self;
        changed.retain(|at| {
            let Some(entity) = entities.get_mut(*at) else {
                return false;
            };
            let size = entity.growing_size();
            // Storing a text each time it has doubled writes at most twice its final size, independent of the number of
            // patches.
            if entity.change == Change::Grew
                && entity.stored_length > 0
                && size < 2 * entity.stored_length
            {
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
            entity.stored_length = size.max(1);
            false
        });
    }

    /// Returns all entities, in the order of snapshots.
    pub fn shown(&self) -> Vec<ShownEntity> {
        let mut shown: Vec<ShownEntity> = self
            .entities
            .iter()
            .filter_map(|entity| {
                Some(ShownEntity {
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

impl ShownEntity {
    fn order(&self) -> (u64, u64, &str, &str) {
        (
            self.created_ordinal,
            self.last_event_ordinal,
            &self.kind,
            &self.id,
        )
    }
}
