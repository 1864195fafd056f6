//! Parses records of the dialog protocol into requests to the chat.
//!
//! They come from extensions and approval hooks, so every member is checked: one of another type
//! counts as missing, and text that is only shown is sanitised and cut to a useful length. Text
//! that is sent back, the options of a choice and the text of an editor, stays unchanged.

use std::time::Duration;

use pinion_text::shorten;
use serde_json::{Map, Value};

use crate::text::{one_line, sanitise};

/// Characters of a title or a status text that are shown.
const MAX_LINE: usize = 1_000;
/// Characters of a question or a notice that are shown.
const MAX_TEXT: usize = 20_000;
/// Characters of a text for the editor.
const MAX_EDITOR_TEXT: usize = 1_000_000;
/// Lines of a widget that are shown.
const MAX_WIDGET_LINES: usize = 10;
/// Options of a choice that are accepted.
const MAX_OPTIONS: usize = 10_000;
/// The longest timeout of a dialog; longer ones are reduced to it.
const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A request to the chat.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    /// A question, which is answered with its id.
    Dialog(Dialog),
    /// A notice.
    Notify { kind: NotifyKind, text: String },
    /// A text in the status line; `None` removes it.
    Status {
        /// Identifies the text for later changes.
        key: String,
        text: Option<String>,
    },
    /// Lines beside the editor; `None` removes them.
    Widget {
        /// Identifies the widget for later changes.
        key: String,
        lines: Option<Vec<String>>,
        placement: Placement,
    },
    /// The title of the terminal.
    Title(String),
    /// The text to put into the editor.
    EditorText(String),
    /// An extension failed.
    ExtensionError {
        /// The path of the extension.
        path: String,
        /// The event it was handling.
        event: String,
        error: String,
    },
    /// A record that the chat does not know.
    Other,
}

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotifyKind {
    Info,
    Warning,
    Error,
}

/// The position of a widget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Above the editor.
    Above,
    /// Below the editor.
    Below,
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dialog {
    /// The id to send with the answer.
    pub id: String,
    /// The question; may have several lines.
    pub title: String,
    pub kind: DialogKind,
    /// Time after which the asker continues without an answer.
    pub timeout: Option<Duration>,
}

/// The kind of answer that is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DialogKind {
    /// One of these options.
    Select(Vec<String>),
    /// Yes or no.
    Confirm {
        /// The explanation of the question.
        message: String,
    },
    /// A line of text.
    Input {
        /// Text shown while nothing is typed.
        placeholder: String,
    },
    /// A text.
    Editor {
        /// The initial text.
        prefill: String,
    },
}

impl Request {
    /// Parses a record.
    pub fn read(record: &str) -> Self {
        let Ok(Value::Object(record)) = serde_json::from_str(record) else {
            return Self::Other;
        };
        match text(&record, "type") {
            Some("extension_ui_request") => Self::of(&record).unwrap_or(Self::Other),
            Some("extension_error") => Self::ExtensionError {
                path: line(&record, "extensionPath"),
                event: line(&record, "event"),
                error: shown(text(&record, "error").unwrap_or_default(), MAX_TEXT),
            },
            _ => Self::Other,
        }
    }

    fn of(record: &Map<String, Value>) -> Option<Self> {
        let request = match text(record, "method")? {
            "notify" => Self::Notify {
                kind: match text(record, "notifyType") {
                    Some("error") => NotifyKind::Error,
                    Some("warning") => NotifyKind::Warning,
                    _ => NotifyKind::Info,
                },
                text: shown(text(record, "message")?, MAX_TEXT),
            },
            "setStatus" => Self::Status {
                key: text(record, "statusKey")?.to_owned(),
                text: text(record, "statusText").map(|text| one_line(&shorten(text, MAX_LINE))),
            },
            "setWidget" => Self::Widget {
                key: text(record, "widgetKey")?.to_owned(),
                lines: widget_lines(record.get("widgetLines"))?,
                placement: match text(record, "widgetPlacement") {
                    Some("belowEditor") => Placement::Below,
                    _ => Placement::Above,
                },
            },
            "setTitle" => Self::Title(line(record, "title")),
            "set_editor_text" => Self::EditorText(shorten(text(record, "text")?, MAX_EDITOR_TEXT)),
            method => Self::Dialog(Dialog {
                id: text(record, "id").filter(|id| !id.is_empty())?.to_owned(),
                title: shown(text(record, "title").unwrap_or_default(), MAX_TEXT),
                kind: DialogKind::of(method, record)?,
                timeout: record.get("timeout").and_then(Value::as_f64).and_then(wait),
            }),
        };
        Some(request)
    }
}

impl DialogKind {
    fn of(method: &str, record: &Map<String, Value>) -> Option<Self> {
        let kind = match method {
            "select" => Self::Select(options(record.get("options"))),
            "confirm" => Self::Confirm {
                message: shown(text(record, "message").unwrap_or_default(), MAX_TEXT),
            },
            "input" => Self::Input {
                placeholder: line(record, "placeholder"),
            },
            "editor" => {
                let prefill = text(record, "prefill").unwrap_or_default();
                Self::Editor {
                    prefill: shorten(prefill, MAX_EDITOR_TEXT),
                }
            }
            _ => return None,
        };
        Some(kind)
    }
}

fn text<'a>(record: &'a Map<String, Value>, member: &str) -> Option<&'a str> {
    record.get(member).and_then(Value::as_str)
}

fn line(record: &Map<String, Value>, member: &str) -> String {
    one_line(&shorten(text(record, member).unwrap_or_default(), MAX_LINE))
}

/// The beginning of a text, sanitised.
fn shown(text: &str, most: usize) -> String {
    sanitise(&shorten(text, most)).into_owned()
}

fn options(options: Option<&Value>) -> Vec<String> {
    let options = options.and_then(Value::as_array).into_iter().flatten();
    let texts = options.filter_map(Value::as_str).map(str::to_owned);
    texts.take(MAX_OPTIONS).collect()
}

/// `None` if the member is not a list and must be ignored; `Some(None)` if it is missing.
fn widget_lines(lines: Option<&Value>) -> Option<Option<Vec<String>>> {
    let lines = match lines {
        None | Some(Value::Null) => return Some(None),
        Some(Value::Array(lines)) => lines,
        Some(_) => return None,
    };
    let texts = lines.iter().map(|line| line.as_str().unwrap_or_default());
    let mut shown_lines: Vec<String> = texts
        .take(MAX_WIDGET_LINES)
        .map(|line| shown(line, MAX_LINE).replace('\n', " "))
        .collect();
    if lines.len() > MAX_WIDGET_LINES {
        shown_lines.push(format!("… {} more lines", lines.len() - MAX_WIDGET_LINES));
    }
    Some(Some(shown_lines))
}

fn wait(milliseconds: f64) -> Option<Duration> {
    if milliseconds.is_nan() || milliseconds <= 0.0 {
        return None;
    }
    let wait = Duration::try_from_secs_f64(milliseconds / 1_000.0).unwrap_or(MAX_WAIT);
    Some(wait.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(record: &Value) -> Request {
        Request::read(&record.to_string())
    }

    fn request(members: Value) -> Request {
        let mut record = json!({"type": "extension_ui_request", "id": "d1"});
        for (name, value) in members.as_object().unwrap() {
            record[name] = value.clone();
        }
        read(&record)
    }

    fn dialog(title: &str, kind: DialogKind, timeout: Option<Duration>) -> Request {
        Request::Dialog(Dialog {
            id: "d1".into(),
            title: title.into(),
            kind,
            timeout,
        })
    }

    #[test]
    fn every_method_is_known() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (members, expected) in [
            (
                json!({"method": "select", "title": "Pick", "options": ["A", "B"], "timeout": 5000}),
                dialog(
                    "Pick",
                    DialogKind::Select(vec!["A".into(), "B".into()]),
                    seconds(5),
                ),
            ),
            (
                json!({"method": "confirm", "title": "Sure?", "message": "All of it"}),
                dialog(
                    "Sure?",
                    DialogKind::Confirm {
                        message: "All of it".into(),
                    },
                    None,
                ),
            ),
            (
                json!({"method": "input", "title": "Who?", "placeholder": "a name"}),
                dialog(
                    "Who?",
                    DialogKind::Input {
                        placeholder: "a name".into(),
                    },
                    None,
                ),
            ),
            (
                json!({"method": "editor", "title": "Text", "prefill": "a\nb"}),
                dialog(
                    "Text",
                    DialogKind::Editor {
                        prefill: "a\nb".into(),
                    },
                    None,
                ),
            ),
            (
                json!({"method": "notify", "message": "hi"}),
                Request::Notify {
                    kind: NotifyKind::Info,
                    text: "hi".into(),
                },
            ),
            (
                json!({"method": "notify", "message": "hm", "notifyType": "warning"}),
                Request::Notify {
                    kind: NotifyKind::Warning,
                    text: "hm".into(),
                },
            ),
            (
                json!({"method": "notify", "message": "oh", "notifyType": "error"}),
                Request::Notify {
                    kind: NotifyKind::Error,
                    text: "oh".into(),
                },
            ),
            (
                json!({"method": "setStatus", "statusKey": "k", "statusText": "on"}),
                Request::Status {
                    key: "k".into(),
                    text: Some("on".into()),
                },
            ),
            (
                json!({"method": "setStatus", "statusKey": "k"}),
                Request::Status {
                    key: "k".into(),
                    text: None,
                },
            ),
            (
                json!({"method": "setWidget", "widgetKey": "w", "widgetLines": ["1", "2"], "widgetPlacement": "belowEditor"}),
                Request::Widget {
                    key: "w".into(),
                    lines: Some(vec!["1".into(), "2".into()]),
                    placement: Placement::Below,
                },
            ),
            (
                json!({"method": "setWidget", "widgetKey": "w"}),
                Request::Widget {
                    key: "w".into(),
                    lines: None,
                    placement: Placement::Above,
                },
            ),
            (
                json!({"method": "setTitle", "title": "t"}),
                Request::Title("t".into()),
            ),
            (
                json!({"method": "set_editor_text", "text": "e"}),
                Request::EditorText("e".into()),
            ),
        ] {
            assert_eq!(request(members.clone()), expected, "{members}");
        }
        let error = json!({"type": "extension_error", "extensionPath": "a.ts", "event": "input", "error": "no"});
        assert_eq!(
            read(&error),
            Request::ExtensionError {
                path: "a.ts".into(),
                event: "input".into(),
                error: "no".into()
            }
        );
    }

    #[test]
    fn missing_or_mistyped_members_are_ignored() {
        for (members, expected) in [
            (
                json!({"method": "select"}),
                dialog("", DialogKind::Select(vec![]), None),
            ),
            (
                json!({"method": "select", "title": 1, "options": ["a", 2, null, ["b"]], "timeout": "soon"}),
                dialog("", DialogKind::Select(vec!["a".into()]), None),
            ),
            (
                json!({"method": "confirm", "message": {}}),
                dialog(
                    "",
                    DialogKind::Confirm {
                        message: String::new(),
                    },
                    None,
                ),
            ),
            (
                json!({"method": "input", "timeout": -1}),
                dialog(
                    "",
                    DialogKind::Input {
                        placeholder: String::new(),
                    },
                    None,
                ),
            ),
            (json!({"method": "notify"}), Request::Other),
            (
                json!({"method": "setStatus", "statusText": "x"}),
                Request::Other,
            ),
            (
                json!({"method": "setWidget", "widgetKey": "w", "widgetLines": "x"}),
                Request::Other,
            ),
            (
                json!({"method": "set_editor_text", "text": null}),
                Request::Other,
            ),
            (json!({"method": "custom"}), Request::Other),
            (json!({"method": 5}), Request::Other),
            (json!({"method": "select", "id": ""}), Request::Other),
            (json!({"method": "select", "id": 7}), Request::Other),
        ] {
            assert_eq!(request(members.clone()), expected, "{members}");
        }
        for record in [
            "",
            "null",
            "[]",
            "{",
            "{}",
            r#"{"type":"message_update"}"#,
            "\u{0}",
        ] {
            assert_eq!(Request::read(record), Request::Other, "{record:?}");
        }
        assert_eq!(Request::read(&"[".repeat(100_000)), Request::Other);
    }

    #[test]
    fn what_is_shown_is_cut_and_what_is_answered_is_not() {
        let huge = "ä".repeat(2_000_000);
        let length = |request: Request| match request {
            Request::Notify { text, .. } | Request::Title(text) | Request::EditorText(text) => {
                text.chars().count()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(
            length(request(json!({"method": "notify", "message": huge}))),
            MAX_TEXT + 1
        );
        assert_eq!(
            length(request(json!({"method": "setTitle", "title": huge}))),
            MAX_LINE + 1
        );
        let text = request(json!({"method": "set_editor_text", "text": huge}));
        assert_eq!(length(text), MAX_EDITOR_TEXT + 1);

        let option = huge.clone();
        let select = request(json!({"method": "select", "options": [option]}));
        assert_eq!(select, dialog("", DialogKind::Select(vec![huge]), None));

        let lines = vec!["x"; 25];
        let widget =
            request(json!({"method": "setWidget", "widgetKey": "w", "widgetLines": lines}));
        let Request::Widget {
            lines: Some(lines), ..
        } = widget
        else {
            panic!("{widget:?}")
        };
        assert_eq!((lines.len(), lines[10].as_str()), (11, "… 15 more lines"));
    }

    #[test]
    fn what_is_shown_cannot_command_the_terminal() {
        let evil = "a\u{1b}]0;owned\u{7}\u{1b}[2J\rb\u{202e}c\nd";
        for members in [
            json!({"method": "select", "title": evil}),
            json!({"method": "confirm", "title": "", "message": evil}),
            json!({"method": "input", "placeholder": evil}),
            json!({"method": "notify", "message": evil}),
            json!({"method": "setStatus", "statusKey": "k", "statusText": evil}),
            json!({"method": "setWidget", "widgetKey": "k", "widgetLines": [evil]}),
            json!({"method": "setTitle", "title": evil}),
        ] {
            let seen = format!("{:?}", request(members.clone()));
            let is_clean = !["u{1b}", "u{7}", "u{202e}", "\\r"]
                .iter()
                .any(|sign| seen.contains(sign));
            assert!(is_clean && seen.contains('a'), "{members}: {seen}");
        }
        let Request::Title(title) = request(json!({"method": "setTitle", "title": "a\nb"})) else {
            panic!("a title");
        };
        assert_eq!(title, "a b");
    }

    #[test]
    fn a_wait_has_an_end() {
        assert_eq!(wait(1e300), Some(MAX_WAIT));
        assert_eq!(wait(f64::INFINITY), Some(MAX_WAIT));
        assert_eq!(wait(f64::NAN), None);
        assert_eq!(wait(0.0), None);
        assert_eq!(wait(400.0), Some(Duration::from_millis(400)));
    }

    proptest! {
        #[test]
        fn any_record_is_read_without_panic(
            method in "select|confirm|input|editor|notify|setStatus|setWidget|setTitle|set_editor_text|x",
            member in "title|options|timeout|message|placeholder|prefill|notifyType|statusKey|widgetKey|widgetLines|text",
            value in prop_oneof![
                Just(json!(null)), Just(json!(-1e308)), Just(json!([[[]]])), Just(json!({"a": 1})),
                any::<String>().prop_map(Value::from), any::<f64>().prop_map(Value::from),
                prop::collection::vec(any::<String>(), 0..20).prop_map(Value::from),
            ],
        ) {
            request(json!({"method": method, member: value}));
        }

        #[test]
        fn any_line_is_read_without_panic(line in any::<String>()) {
            Request::read(&line);
        }
    }
}
