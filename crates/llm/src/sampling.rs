//! Parameters of sampling and of the answer's form, beyond temperature and length, with each API's
//! own member names.
//!
//! One table lists the members of every API. A parameter without a member is not sent;
//! [`Sampling::unsupported`] names those before a request is made.

use serde_json::{Map, Value, json};

use crate::request::Request;

/// Parameters of an answer. `None` and empty values leave the choice to the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    /// Samples from the likeliest tokens that make up this share.
    pub top_p: Option<f64>,
    /// Samples from this many of the likeliest tokens.
    pub top_k: Option<u64>,
    /// Texts at which the answer ends.
    pub stop: Vec<String>,
    /// Makes sampling repeatable.
    pub seed: Option<i64>,
    /// Penalty for tokens that occurred.
    pub presence_penalty: Option<f64>,
    /// Penalty for tokens that occurred often.
    pub frequency_penalty: Option<f64>,
    /// Bias for or against single tokens, by their number.
    pub logit_bias: Map<String, Value>,
    /// Permits several tool calls in one answer.
    pub parallel_tool_calls: Option<bool>,
    /// The form of the thinking summary: `auto`, `concise`, `detailed`; `none` for no summary.
    pub reasoning_summary: Option<String>,
    /// The schema the answer must match.
    pub structured_output: Option<StructuredOutput>,
    /// Sends no output cap unless one was requested or the API requires one.
    pub uncapped: bool,
}

/// The schema an answer must match.
#[derive(Debug, Clone, PartialEq)]
pub struct StructuredOutput {
    /// A name for the schema.
    pub name: String,
    /// For the model.
    pub description: Option<String>,
    /// JSON Schema.
    pub schema: Value,
    /// The server must enforce the schema.
    pub strict: bool,
}

/// The member names of one API. `None` is a parameter that the API lacks.
struct MemberNames {
    top_p: Option<&'static str>,
    top_k: Option<&'static str>,
    stop: Option<&'static str>,
    seed: Option<&'static str>,
    presence_penalty: Option<&'static str>,
    frequency_penalty: Option<&'static str>,
    logit_bias: Option<&'static str>,
    parallel_tool_calls: Option<&'static str>,
    schema_member: Option<SchemaMember>,
}

/// The member in which an API takes the schema of an answer.
#[derive(Clone, Copy)]
enum SchemaMember {
    ResponseFormat,
    TextFormat,
    OutputConfig,
    GenerationConfig,
}

const NOTHING: MemberNames = MemberNames {
    top_p: None,
    top_k: None,
    stop: None,
    seed: None,
    presence_penalty: None,
    frequency_penalty: None,
    logit_bias: None,
    parallel_tool_calls: None,
    schema_member: None,
};

const COMPLETIONS: MemberNames = MemberNames {
    top_p: Some("top_p"),
    stop: Some("stop"),
    seed: Some("seed"),
    presence_penalty: Some("presence_penalty"),
    frequency_penalty: Some("frequency_penalty"),
    logit_bias: Some("logit_bias"),
    parallel_tool_calls: Some("parallel_tool_calls"),
    schema_member: Some(SchemaMember::ResponseFormat),
    ..NOTHING
};

const MISTRAL: MemberNames = MemberNames {
    seed: Some("random_seed"),
    logit_bias: None,
    ..COMPLETIONS
};

const RESPONSES: MemberNames = MemberNames {
    top_p: Some("top_p"),
    parallel_tool_calls: Some("parallel_tool_calls"),
    schema_member: Some(SchemaMember::TextFormat),
    ..NOTHING
};

const ANTHROPIC: MemberNames = MemberNames {
    top_p: Some("top_p"),
    top_k: Some("top_k"),
    stop: Some("stop_sequences"),
    schema_member: Some(SchemaMember::OutputConfig),
    ..NOTHING
};

const GOOGLE: MemberNames = MemberNames {
    top_p: Some("topP"),
    top_k: Some("topK"),
    stop: Some("stopSequences"),
    seed: Some("seed"),
    presence_penalty: Some("presencePenalty"),
    frequency_penalty: Some("frequencyPenalty"),
    schema_member: Some(SchemaMember::GenerationConfig),
    ..NOTHING
};

fn names(api: &str) -> MemberNames {
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
    /// The parameters that are set here and that `api` lacks.
    pub fn unsupported(&self, api: &str) -> Vec<&'static str> {
        let names = names(api);
        let rows = [
            ("top_p", self.top_p.is_some(), names.top_p),
            ("top_k", self.top_k.is_some(), names.top_k),
            ("stop", !self.stop.is_empty(), names.stop),
            ("seed", self.seed.is_some(), names.seed),
            (
                "presence_penalty",
                self.presence_penalty.is_some(),
                names.presence_penalty,
            ),
            (
                "frequency_penalty",
                self.frequency_penalty.is_some(),
                names.frequency_penalty,
            ),
            ("logit_bias", !self.logit_bias.is_empty(), names.logit_bias),
            (
                "parallel_tool_calls",
                self.parallel_tool_calls.is_some(),
                names.parallel_tool_calls,
            ),
            (
                "structured_output",
                self.structured_output.is_some(),
                names.schema_member.map(|_| ""),
            ),
        ];
        let unsupported = rows
            .into_iter()
            .filter(|(_, set, member)| *set && member.is_none());
        unsupported.map(|(name, _, _)| name).collect()
    }
}

/// The sampling members of the body (at Google, of its generation config).
pub(crate) fn members(request: &Request) -> Map<String, Value> {
    let mut members = Map::new();
    let Some(sampling) = request.options.sampling.as_deref() else {
        return members;
    };
    let names = names(&request.model.api);
    let mut set = |member: Option<&str>, value: Option<Value>| {
        if let (Some(member), Some(value)) = (member, value) {
            members.insert(member.to_owned(), value);
        }
    };
    set(names.top_p, sampling.top_p.map(Value::from));
    set(names.top_k, sampling.top_k.map(Value::from));
    let stop = (!sampling.stop.is_empty()).then(|| json!(sampling.stop));
    set(names.stop, stop);
    set(names.seed, sampling.seed.map(Value::from));
    set(
        names.presence_penalty,
        sampling.presence_penalty.map(Value::from),
    );
    set(
        names.frequency_penalty,
        sampling.frequency_penalty.map(Value::from),
    );
    let bias = (!sampling.logit_bias.is_empty()).then(|| json!(sampling.logit_bias));
    set(names.logit_bias, bias);
    // Servers reject the member in requests without tools.
    let parallel = sampling
        .parallel_tool_calls
        .filter(|_| !request.tools.is_empty());
    set(names.parallel_tool_calls, parallel.map(Value::from));
    if let (Some(schema_member), Some(wanted)) = (names.schema_member, &sampling.structured_output)
    {
        schema_member.insert(wanted, &mut members);
    }
    members
}

/// The schema of the answer in the form of the Messages API, for `output_config`.
pub(crate) fn output_format(request: &Request) -> Option<Value> {
    let wanted = request
        .options
        .sampling
        .as_ref()?
        .structured_output
        .as_ref()?;
    Some(json!({"type": "json_schema", "schema": wanted.schema}))
}

/// The requested summary of thinking, `auto` by default; `None` is no summary.
pub(crate) fn reasoning_summary(request: &Request) -> Option<&str> {
    let asked = request
        .options
        .sampling
        .as_deref()
        .and_then(|sampling| sampling.reasoning_summary.as_deref());
    Some(asked.unwrap_or("auto")).filter(|summary| *summary != "none")
}

impl SchemaMember {
    fn insert(self, wanted: &StructuredOutput, members: &mut Map<String, Value>) {
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
            // It shares its object with the effort: see `output_format`.
            Self::OutputConfig => {}
        }
    }
}
