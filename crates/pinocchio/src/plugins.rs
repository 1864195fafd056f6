//! Entities of hosts with more features than a command runner: client tools, widgets, agent modes.
//!
//! The command runner creates none of their events. They are here because a timeline database may contain them, and a
//! timeline cannot be rebuilt from its log if a kind of event is unknown.

use pinion_proto::{Message, Struct};

use crate::events::ChatEvent;
use crate::message::{Undecodable, decode};
use crate::pb;

/// The new state of an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Projected {
    pub kind: &'static str,
    pub id: String,
    /// `None` if the entity was removed.
    pub payload: Option<String>,
}

/// Returns the payload of an entity before the event.
pub(crate) type Current<'a> = &'a dyn Fn(&str, &str) -> Option<String>;

/// Projects the events of one plugin to entities; returns `None` for other events.
type Plugin = fn(&ChatEvent, Current<'_>) -> Result<Option<Projected>, Undecodable>;

const PLUGINS: [Plugin; 3] = [frontend_tools, widgets, agent_mode];

/// Projects an event to entities with the plugin it belongs to.
pub(crate) fn project(
    event: &ChatEvent,
    current: Current<'_>,
) -> Result<Option<Projected>, Undecodable> {
    for plugin in PLUGINS {
        if let Some(projected) = plugin(event, current)? {
            return Ok(Some(projected));
        }
    }
    Ok(None)
}

fn entity<M: Message>(kind: &str, id: &str, current: Current<'_>) -> Result<M, Undecodable> {
    match current(kind, id) {
        Some(payload) => decode(&payload),
        None => Ok(M::default()),
    }
}

fn stored(kind: &'static str, id: &str, message: &impl Message) -> Option<Projected> {
    Some(Projected {
        kind,
        id: id.to_owned(),
        payload: Some(message.to_json()),
    })
}

/// Replaces `old` by `new` unless `new` is empty.
fn overwrite(old: &mut pb::Text, new: &pb::Text) {
    if !new.is_empty() {
        old.clone_from(new);
    }
}

const FRONTEND_TOOL: &str = "ChatFrontendToolCall";

fn frontend_tools(
    event: &ChatEvent,
    current: Current<'_>,
) -> Result<Option<Projected>, Undecodable> {
    Ok(match event {
        ChatEvent::FrontendToolCallRequested(event) => {
            let id = &event.tool_call_id;
            let mut call: pb::FrontendToolCallEntity = entity(FRONTEND_TOOL, id, current)?;
            call.tool_call_id.clone_from(id);
            overwrite(&mut call.tool_name, &event.tool_name);
            overwrite(&mut call.parent_message_id, &event.message_id);
            overwrite(&mut call.status, &event.status);
            call.mode = event.mode;
            call.input.clone_from(&event.input);
            stored(FRONTEND_TOOL, id, &call)
        }
        ChatEvent::FrontendToolResultReceived(event) => {
            let id = &event.tool_call_id;
            let mut call: pb::FrontendToolCallEntity = entity(FRONTEND_TOOL, id, current)?;
            call.tool_call_id.clone_from(id);
            overwrite(&mut call.tool_name, &event.tool_name);
            overwrite(&mut call.parent_message_id, &event.message_id);
            overwrite(&mut call.status, &event.status);
            overwrite(&mut call.error, &event.error);
            call.result.clone_from(&event.result);
            stored(FRONTEND_TOOL, id, &call)
        }
        _ => None,
    })
}

const WIDGET: &str = "ChatWidgetInstance";

fn widgets(event: &ChatEvent, current: Current<'_>) -> Result<Option<Projected>, Undecodable> {
    Ok(match event {
        ChatEvent::WidgetInstanceStarted(event) => {
            let widget = pb::WidgetInstanceEntity {
                instance_id: event.instance_id.clone(),
                widget_name: event.widget_name.clone(),
                parent_message_id: event.parent_message_id.clone(),
                status: event.status,
                props: event.props.clone(),
            };
            stored(WIDGET, &event.instance_id, &widget)
        }
        ChatEvent::WidgetInstancePatched(event) => {
            let id = &event.instance_id;
            let mut widget: pb::WidgetInstanceEntity = entity(WIDGET, id, current)?;
            widget.instance_id.clone_from(id);
            overwrite(&mut widget.widget_name, &event.widget_name);
            if event.status != pb::WidgetStatus::Unspecified {
                widget.status = event.status;
            }
            if let Some(patch) = &event.patch {
                let props = widget.props.get_or_insert_with(Struct::default);
                props.0.extend(patch.0.clone());
            }
            stored(WIDGET, id, &widget)
        }
        ChatEvent::WidgetInstanceCompleted(event) => {
            let id = &event.instance_id;
            let mut widget: pb::WidgetInstanceEntity = entity(WIDGET, id, current)?;
            widget.instance_id.clone_from(id);
            widget.status = match event.status {
                pb::WidgetStatus::Unspecified => pb::WidgetStatus::Ready,
                status => status,
            };
            stored(WIDGET, id, &widget)
        }
        ChatEvent::WidgetInstanceRemoved(event) => Some(Projected {
            kind: WIDGET,
            id: event.instance_id.to_string(),
            payload: None,
        }),
        _ => None,
    })
}

const AGENT_MODE: &str = "AgentMode";

/// Previews are shown and not stored; only the committed mode stays.
fn agent_mode(event: &ChatEvent, _current: Current<'_>) -> Result<Option<Projected>, Undecodable> {
    Ok(match event {
        ChatEvent::AgentModeCommitted(event) => {
            let mode = pb::AgentModeEntity {
                message_id: event.message_id.clone(),
                title: event.title.clone(),
                from: event.from.clone(),
                to: event.to.clone(),
                analysis: event.analysis.clone(),
                preview: event.preview,
            };
            stored(AGENT_MODE, &event.message_id, &mode)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Returns the entity `kind`/`id` after events given as JSON.
    fn after(events: &[(&str, Value)]) -> Option<Value> {
        let mut payload: Option<String> = None;
        for (name, event) in events {
            let event = ChatEvent::decode(name, &event.to_string()).unwrap();
            let before = payload.clone();
            if let Some(projected) = project(&event, &|_, _| before.clone()).unwrap() {
                payload = projected.payload;
            }
        }
        payload.map(|payload| serde_json::from_str(&payload).unwrap())
    }

    #[test]
    fn a_tool_of_the_client_is_called_and_answers() {
        let call = after(&[
            (
                "ChatFrontendToolCallRequested",
                json!({"messageId":"m","toolCallId":"c","toolName":"cart.add","input":{"qty":2},
                    "mode":"TOOL_EXECUTION_MODE_FRONTEND_HUMAN","status":"requested"}),
            ),
            (
                "ChatFrontendToolResultReceived",
                json!({"toolCallId":"c","result":{"ok":true},"status":"success"}),
            ),
        ]);
        let expected = json!({"toolCallId":"c","toolName":"cart.add","parentMessageId":"m",
            "mode":"TOOL_EXECUTION_MODE_FRONTEND_HUMAN","status":"success","input":{"qty":2},
            "result":{"ok":true}});
        assert_eq!(call, Some(expected));
    }

    #[test]
    fn a_widget_grows_and_goes() {
        let mut events = vec![
            (
                "ChatWidgetInstanceStarted",
                json!({"instanceId":"w","widgetName":"chart","parentMessageId":"m",
                    "status":"WIDGET_STATUS_STREAMING","props":{"a":1,"b":2}}),
            ),
            (
                "ChatWidgetInstancePatched",
                json!({"instanceId":"w","patch":{"b":3,"c":null},"patchPaths":["b","c"]}),
            ),
            ("ChatWidgetInstanceCompleted", json!({"instanceId":"w"})),
        ];
        let expected = json!({"instanceId":"w","widgetName":"chart","parentMessageId":"m",
            "status":"WIDGET_STATUS_READY","props":{"a":1,"b":3,"c":null}});
        assert_eq!(after(&events), Some(expected));
        events.push(("ChatWidgetInstanceRemoved", json!({"instanceId":"w"})));
        assert_eq!(after(&events), None);
    }

    #[test]
    fn of_modes_only_what_was_decided_stays() {
        let mode = after(&[
            (
                "ChatAgentModePreviewUpdated",
                json!({"messageId":"m","candidateMode":"review","preview":true}),
            ),
            (
                "ChatAgentModeCommitted",
                json!({"messageId":"m","from":"write","to":"review"}),
            ),
            ("ChatAgentModePreviewCleared", json!({"messageId":"m"})),
        ]);
        let expected = json!({"messageId":"m","from":"write","to":"review"});
        assert_eq!(mode, Some(expected));
    }
}
