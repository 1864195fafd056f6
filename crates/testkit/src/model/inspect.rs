//! Reads the parts of a request by which a scenario chooses its answer: the last messages and the number of tools. It
//! does not check the request; tests do that on the recorded body.

use serde_json::Value;

/// The four wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

impl Dialect {
    /// Returns the dialect of this path, if it is a model endpoint.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else if path.contains("eneratecontent") || path.contains("enerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    /// The name used in the request log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct RequestView {
    pub tools: usize,
    pub first_user: String,
    pub last_user: String,
    pub system: String,
    pub assistant_count: usize,
    /// The user messages since the last answer or tool result.
    pub unanswered: Vec<String>,
    /// Tool results came after the last answer.
    pub after_tools: bool,
    pub raw: String,
}

impl RequestView {
    pub(super) fn new(dialect: Dialect, body: &Value, raw: String) -> Self {
        let mut view = Self {
            tools: list(&body["tools"]).len(),
            raw,
            ..Self::default()
        };
        match dialect {
            Dialect::Gemini => {
                view.system = text(&body["systemInstruction"]["parts"]);
                for message in list(&body["contents"]) {
                    if message["role"] == "model" {
                        view.assistant_count += 1;
                    } else {
                        view.user_said(text(&message["parts"]));
                    }
                }
            }
            Dialect::Responses => view.read_items(body),
            Dialect::Anthropic | Dialect::Chat => {
                view.system = text(&body["system"]);
                for message in list(&body["messages"]) {
                    view.read_message(message);
                }
            }
        }
        view
    }

    /// Several output items in a row are one turn of the assistant.
    fn read_items(&mut self, body: &Value) {
        self.system = text(&body["instructions"]);
        if let Some(text) = body["input"].as_str() {
            self.user_said(text.to_owned());
        }
        let mut in_answer = false;
        for item in list(&body["input"]) {
            let made_by_model =
                matches!(item["type"].as_str(), Some("function_call" | "reasoning"))
                    || item["role"] == "assistant";
            if made_by_model {
                self.assistant_count += usize::from(!in_answer);
            } else {
                self.read_message(item);
            }
            in_answer = made_by_model;
        }
    }

    fn read_message(&mut self, message: &Value) {
        match message["role"].as_str() {
            Some("assistant") => {
                self.assistant_count += 1;
                self.unanswered.clear();
                self.after_tools = false;
            }
            Some("tool") => {
                self.unanswered.clear();
                self.after_tools = true;
            }
            Some("user") => self.user_said(text(&message["content"])),
            Some("system" | "developer") => self.system.push_str(&text(&message["content"])),
            _ => {}
        }
    }

    fn user_said(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        if self.first_user.is_empty() {
            self.first_user.clone_from(&text);
        }
        self.unanswered.push(text.clone());
        self.last_user = text;
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A content that is a string, or the texts of its parts.
fn text(content: &Value) -> String {
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => {
            let parts: Vec<&str> = list(content)
                .iter()
                .filter_map(|p| p["text"].as_str())
                .collect();
            parts.join("\n")
        }
    }
}
