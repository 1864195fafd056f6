//! Names requests and segments, depending on the kind of engine.

use std::collections::HashSet;

use pinion_message::AssistantMessage;

use super::RunStart;
use crate::family::{Family, Naming as Style};
use crate::ids::sanitise;
use crate::pb::{CorrelationInfo, Text};

/// Creates names within one run, each only once.
#[derive(Debug)]
pub(super) struct Naming {
    session_id: Text,
    inference_id: Text,
    turn_id: Text,
    /// The number of requests so far.
    requests: u32,
    /// The number of segments without a name from the engine.
    unnamed: u32,
    used: HashSet<String>,
}

/// The names of one request.
#[derive(Debug)]
pub(super) struct RequestNames {
    /// The session, run and request.
    pub correlation: CorrelationInfo,
    /// The kind of API, as Pinocchio names it.
    interface: String,
    /// The provider's id of the response, or a substitute.
    response: String,
}

/// The part of an answer to be named.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    Text,
    Thinking,
    Call(&'a str),
}

impl Naming {
    pub fn new(start: &RunStart) -> Self {
        Self {
            session_id: start.session_id.clone(),
            inference_id: start.inference_id.clone(),
            turn_id: start.turn_id.clone(),
            requests: 0,
            unnamed: 0,
            used: HashSet::new(),
        }
    }

    /// Names the next request.
    pub fn request(&mut self, answer: &AssistantMessage, family: &Family) -> RequestNames {
        let number = self.requests;
        self.requests += 1;
        let interface = interface(answer, family);
        let inference = &self.inference_id;
        let counted = format!("{interface}:{inference}:provider-call:{number}");
        let given = answer.response_id.as_deref().map(sanitise);
        let given = given.filter(|id| !id.is_empty());
        let provider_call_id = match (family.naming, &given) {
            (Style::Messages, Some(response)) => format!("{interface}:{response}"),
            (Style::Plain, _) => format!("provider-call-{}", number + 1),
            _ => counted,
        };
        RequestNames {
            correlation: CorrelationInfo {
                session_id: self.session_id.clone(),
                run_id: self.inference_id.clone(),
                turn_id: self.turn_id.clone(),
                provider_call_id: provider_call_id.into(),
                ..Default::default()
            },
            interface,
            // Most providers send the id after the answer has begun; its number is the substitute.
            response: given.unwrap_or_else(|| format!("response-{}", number + 1)),
        }
    }

    /// Names the part at `index` of an answer.
    pub fn segment(
        &mut self,
        names: &RequestNames,
        style: Style,
        part: Part<'_>,
        index: usize,
    ) -> String {
        let RequestNames {
            interface,
            response,
            ..
        } = names;
        let request = &names.correlation.provider_call_id;
        let kind = match part {
            Part::Text => "text",
            Part::Thinking => "reasoning",
            Part::Call(_) => "tool",
        };
        let name = match (style, part) {
            (Style::Completions, Part::Text) => {
                format!("{interface}-chat:{response}:choice:0:content")
            }
            (Style::Completions, Part::Thinking) => {
                format!("{interface}-chat:{response}:choice:0:reasoning")
            }
            (Style::Completions, Part::Call("")) => {
                format!("{interface}-chat:{response}:choice:0:tool-index:{index}")
            }
            (Style::Completions, Part::Call(id)) => {
                format!("{interface}-chat:{response}:choice:0:tool:{id}")
            }
            (Style::Messages, _) => format!("{interface}:{request}:block:{index}:{kind}"),
            (Style::Responses, Part::Thinking) => {
                format!("{interface}:{response}:output:{index}:summary:0")
            }
            (Style::Responses, _) => format!("{interface}:{response}:output:{index}"),
            (Style::Gemini, _) => format!("{request}:segment:{index}:{kind}"),
            (Style::Plain, part) => {
                let word = match part {
                    Part::Text => "segment",
                    Part::Thinking => "reasoning",
                    Part::Call(_) => "tool",
                };
                return self.counted(word);
            }
        };
        self.unique(sanitise(&name))
    }

    /// Numbers a text that the engine sent as a whole.
    pub fn unnamed(&mut self) -> u32 {
        self.unnamed += 1;
        self.unnamed
    }

    fn counted(&mut self, word: &str) -> String {
        let mut number = 1;
        loop {
            let name = format!("{word}-{number}");
            if self.used.insert(name.clone()) {
                return name;
            }
            number += 1;
        }
    }

    fn unique(&mut self, name: String) -> String {
        if self.used.insert(name.clone()) {
            return name;
        }
        self.counted(&name)
    }
}

fn interface(answer: &AssistantMessage, family: &Family) -> String {
    let name = match (family.naming, answer.api.as_str()) {
        (Style::Completions, _) => sanitise(&answer.provider),
        (Style::Messages, _) => "claude".to_owned(),
        (
            Style::Responses,
            "openai-responses" | "azure-openai-responses" | "openai-codex-responses",
        ) => "openai_responses".to_owned(),
        (Style::Gemini, _) => "gemini".to_owned(),
        (Style::Responses | Style::Plain, api) => sanitise(api),
    };
    if name.is_empty() {
        "openai".to_owned()
    } else {
        name
    }
}
