//! How an answer is drawn and shaped, beyond temperature and length, in the words of each API.
//!
//! One table says which words an API has; what it has no word for is not sent, and
//! [`Sampling::unspoken`] tells so before a request is made.

use serde_json::{Map, Value, json};

use crate::request::Request;

/// How an answer is drawn and shaped. `None` and empty leave it to the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    /// Draw from the likeliest tokens that make up this share.
    pub top_p: Option<f64>,
    /// Draw from this many of the likeliest tokens.
    pub top_k: Option<u64>,
    /// Texts at which the answer ends.
    pub stop: Vec<String>,
    /// Makes draws repeatable.
    pub seed: Option<i64>,
    /// Against tokens that occurred.
    pub presence_penalty: Option<f64>,
    /// Against tokens that occurred often.
    pub frequency_penalty: Option<f64>,
    /// For or against single tokens, by their number.
    pub logit_bias: Map<String, Value>,
    /// Whether several tools may be called at once.
    pub parallel_tool_calls: Option<bool>,
    /// How thinking is summed up: `auto`, `concise`, `detailed`; `none` for not at all.
    pub reasoning_summary: Option<String>,
    /// The shape the answer must have.
    pub structured_output: Option<StructuredOutput>,
    /// Without a cap that was asked for, none is sent where the API does not insist on one.
    pub uncapped: bool,
}

/// The shape an answer must have.
#[derive(Debug, Clone, PartialEq)]
pub struct StructuredOutput {
    /// A name for the shape.
    pub name: String,
    /// For the model.
    pub description: Option<String>,
    /// JSON Schema.
    pub schema: Value,
    /// Nothing but the schema may come.
    pub strict: bool,
}

/// The words of one API; `None` is a thing it cannot be told.
struct Words {
    top_p: Option<&'static str>,
    top_k: Option<&'static str>,
    stop: Option<&'static str>,
    seed: Option<&'static str>,
    presence_penalty: Option<&'static str>,
    frequency_penalty: Option<&'static str>,
    logit_bias: Option<&'static str>,
    parallel_tool_calls: Option<&'static str>,
    shape: Option<Shape>,
}

/// How an API is told the shape of an answer.
#[derive(Clone, Copy)]
enum Shape {
    ResponseFormat,
    TextFormat,
    OutputConfig,
    GenerationConfig,
}

const NOTHING: Words = Words {
    top_p: None,
    top_k: None,
    stop: None,
    seed: None,
    presence_penalty: None,
    frequency_penalty: None,
    logit_bias: None,
    parallel_tool_calls: None,
    shape: None,
};

const COMPLETIONS: Words = Words {
    top_p: Some("top_p"),
    stop: Some("stop"),
    seed: Some("seed"),
    presence_penalty: Some("presence_penalty"),
    frequency_penalty: Some("frequency_penalty"),
    logit_bias: Some("logit_bias"),
    parallel_tool_calls: Some("parallel_tool_calls"),
    shape: Some(Shape::ResponseFormat),
    ..NOTHING
};

const MISTRAL: Words = Words {
    seed: Some("random_seed"),
    logit_bias: None,
    ..COMPLETIONS
};

const RESPONSES: Words = Words {
    top_p: Some("top_p"),
    parallel_tool_calls: Some("parallel_tool_calls"),
    shape: Some(Shape::TextFormat),
    ..NOTHING
};

const ANTHROPIC: Words = Words {
    top_p: Some("top_p"),
    top_k: Some("top_k"),
    stop: Some("stop_sequences"),
    shape: Some(Shape::OutputConfig),
    ..NOTHING
};

const GOOGLE: Words = Words {
    top_p: Some("topP"),
    top_k: Some("topK"),
    stop: Some("stopSequences"),
    seed: Some("seed"),
    presence_penalty: Some("presencePenalty"),
    frequency_penalty: Some("frequencyPenalty"),
    shape: Some(Shape::GenerationConfig),
    ..NOTHING
};

fn words(api: &str) -> Words {
    match api {
        "anthropic-messages" => ANTHROPIC,
        "openai-completions" => COMPLETIONS,
        "openai-responses" | "azure-openai-responses" => RESPONSES,
        "google-generative-ai" | "google-vertex" => GOOGLE,
        "mistral-conversations" => MISTRAL,
        _ => NOTHING,
    }
}

impl Sampling {
    /// What is set here and cannot be told over `api`.
    pub fn unspoken(&self, api: &str) -> Vec<&'static str> {
        let words = words(api);
        let rows = [
            ("top_p", self.top_p.is_some(), words.top_p),
            ("top_k", self.top_k.is_some(), words.top_k),
            ("stop", !self.stop.is_empty(), words.stop),
            ("seed", self.seed.is_some(), words.seed),
            (
                "presence_penalty",
                self.presence_penalty.is_some(),
                words.presence_penalty,
            ),
            (
                "frequency_penalty",
                self.frequency_penalty.is_some(),
                words.frequency_penalty,
            ),
            ("logit_bias", !self.logit_bias.is_empty(), words.logit_bias),
            (
                "parallel_tool_calls",
                self.parallel_tool_calls.is_some(),
                words.parallel_tool_calls,
            ),
            (
                "structured_output",
                self.structured_output.is_some(),
                words.shape.map(|_| ""),
            ),
        ];
        let unspoken = rows
            .into_iter()
            .filter(|(_, set, word)| *set && word.is_none());
        unspoken.map(|(name, _, _)| name).collect()
    }
}

/// The members that say how to draw, for the body (or, at Google, its generation config).
pub(crate) fn members(request: &Request) -> Map<String, Value> {
    let mut members = Map::new();
    let Some(sampling) = request.options.sampling.as_deref() else {
        return members;
    };
    let words = words(&request.model.api);
    let mut set = |word: Option<&str>, value: Option<Value>| {
        if let (Some(word), Some(value)) = (word, value) {
            members.insert(word.to_owned(), value);
        }
    };
    set(words.top_p, sampling.top_p.map(Value::from));
    set(words.top_k, sampling.top_k.map(Value::from));
    let stop = (!sampling.stop.is_empty()).then(|| json!(sampling.stop));
    set(words.stop, stop);
    set(words.seed, sampling.seed.map(Value::from));
    set(
        words.presence_penalty,
        sampling.presence_penalty.map(Value::from),
    );
    set(
        words.frequency_penalty,
        sampling.frequency_penalty.map(Value::from),
    );
    let bias = (!sampling.logit_bias.is_empty()).then(|| json!(sampling.logit_bias));
    set(words.logit_bias, bias);
    // Servers refuse the switch where there is no tool to call.
    let parallel = sampling
        .parallel_tool_calls
        .filter(|_| !request.tools.is_empty());
    set(words.parallel_tool_calls, parallel.map(Value::from));
    if let (Some(shape), Some(wanted)) = (words.shape, &sampling.structured_output) {
        shape.tell(wanted, &mut members);
    }
    members
}

/// The shape of the answer as the Messages API takes it, inside `output_config`.
pub(crate) fn output_format(request: &Request) -> Option<Value> {
    let wanted = request
        .options
        .sampling
        .as_ref()?
        .structured_output
        .as_ref()?;
    Some(json!({"type": "json_schema", "schema": wanted.schema}))
}

/// The summary of thinking that was asked for, `auto` if nobody asked; `None` is no summary.
pub(crate) fn reasoning_summary(request: &Request) -> Option<&str> {
    let asked = request
        .options
        .sampling
        .as_deref()
        .and_then(|sampling| sampling.reasoning_summary.as_deref());
    Some(asked.unwrap_or("auto")).filter(|summary| *summary != "none")
}

impl Shape {
    fn tell(self, wanted: &StructuredOutput, members: &mut Map<String, Value>) {
        let StructuredOutput {
            name,
            description,
            schema,
            strict,
        } = wanted;
        let mut described = Map::new();
        described.insert("name".to_owned(), json!(name));
        if let Some(description) = description {
            described.insert("description".to_owned(), json!(description));
        }
        described.insert("schema".to_owned(), schema.clone());
        described.insert("strict".to_owned(), json!(strict));
        match self {
            Self::ResponseFormat => {
                let format = json!({"type": "json_schema", "json_schema": described});
                members.insert("response_format".to_owned(), format);
            }
            Self::TextFormat => {
                let mut format = Map::new();
                format.insert("type".to_owned(), json!("json_schema"));
                format.extend(described);
                members.insert("text".to_owned(), json!({ "format": format }));
            }
            Self::GenerationConfig => {
                let kind = json!("application/json");
                members.insert("responseMimeType".to_owned(), kind);
                members.insert("responseJsonSchema".to_owned(), schema.clone());
            }
            // Shares its object with the effort: see `output_format`.
            Self::OutputConfig => {}
        }
    }
}
