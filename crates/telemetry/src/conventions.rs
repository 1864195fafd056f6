//! Every name of OpenTelemetry that pinion uses: the GenAI conventions of version 1.41, which are in development, and
//! pinion's own names where they have none.

use crate::span::{Attribute, SpanKind, Value};

/// The version of the conventions, as receivers get it.
pub(crate) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

const OPERATION: &str = "gen_ai.operation.name";
const ERROR_TYPE: &str = "error.type";
const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
const CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
const CACHE_WRITE: &str = "gen_ai.usage.cache_write.input_tokens";

/// A span of the diagnostic log that is sent, and its form.
#[derive(Debug)]
pub(crate) struct SpanRow {
    /// The name in the diagnostic log.
    pub source: &'static str,
    /// The message of the event at its end, whose fields belong to the span.
    pub end: &'static str,
    /// The first word of the name.
    operation: &'static str,
    /// The field that names it further.
    detail: Detail,
    pub kind: SpanKind,
    /// Attributes that are the same for all.
    fixed: &'static [(&'static str, &'static str)],
    /// Fields and the attributes they become.
    fields: &'static [(&'static str, &'static str)],
    /// The field that reports the outcome, and its values that are failures; none means every value but `ok`.
    outcome: (&'static str, &'static [&'static str]),
}

/// The second word of a span's name.
#[derive(Debug)]
enum Detail {
    Text(&'static str),
    Field(&'static str),
    /// Two fields joined by a slash, without the operation.
    Path(&'static str, &'static str),
}

const CONVERSATION: (&str, &str) = ("conversation", "gen_ai.conversation.id");

static ROWS: [SpanRow; 7] = [
    SpanRow {
        source: "run",
        end: "run ended",
        operation: "invoke_agent",
        detail: Detail::Text("pinion"),
        kind: SpanKind::Internal,
        fixed: &[
            (OPERATION, "invoke_agent"),
            ("gen_ai.agent.name", "pinion"),
            ("gen_ai.agent.version", env!("CARGO_PKG_VERSION")),
        ],
        fields: &[
            CONVERSATION,
            ("provider", "gen_ai.provider.name"),
            ("model", "gen_ai.request.model"),
            ("input_tokens", INPUT_TOKENS),
            ("output_tokens", OUTPUT_TOKENS),
            ("cache_read_tokens", CACHE_READ),
            ("cache_write_tokens", CACHE_WRITE),
            ("outcome", "pinion.run.outcome"),
        ],
        outcome: ("outcome", &["failed"]),
    },
    SpanRow {
        source: "request",
        end: "request ended",
        operation: "chat",
        detail: Detail::Field("model"),
        kind: SpanKind::Client,
        fixed: &[(OPERATION, "chat")],
        fields: &[
            CONVERSATION,
            ("provider", "gen_ai.provider.name"),
            ("model", "gen_ai.request.model"),
            ("purpose", "pinion.request.purpose"),
            ("outcome", "gen_ai.response.finish_reasons"),
            ("input_tokens", INPUT_TOKENS),
            ("output_tokens", OUTPUT_TOKENS),
            ("cache_read_tokens", CACHE_READ),
            ("cache_write_tokens", CACHE_WRITE),
            ("first_output_ms", "gen_ai.response.time_to_first_chunk"),
            ("status", "http.response.status_code"),
            ("retries", "pinion.request.retries"),
        ],
        outcome: ("outcome", &["error", "failed", "aborted"]),
    },
    SpanRow {
        source: "tool",
        end: "tool call ended",
        operation: "execute_tool",
        detail: Detail::Field("tool"),
        kind: SpanKind::Internal,
        fixed: &[
            (OPERATION, "execute_tool"),
            ("gen_ai.tool.type", "function"),
        ],
        fields: &[
            CONVERSATION,
            ("tool", "gen_ai.tool.name"),
            ("call", "gen_ai.tool.call.id"),
        ],
        outcome: ("outcome", &["failed"]),
    },
    SpanRow {
        source: "clip_call",
        end: "clip call ended",
        operation: "",
        detail: Detail::Path("alias", "command"),
        kind: SpanKind::Server,
        fixed: &[("rpc.system.name", "connect_rpc")],
        fields: &[
            ("alias", "pinion.clip.alias"),
            ("command", "pinion.clip.command"),
            ("code", "rpc.response.status_code"),
        ],
        outcome: ("code", &[]),
    },
    SpanRow {
        source: "mcp_call",
        end: "",
        operation: "tools/call",
        detail: Detail::Field("tool"),
        kind: SpanKind::Server,
        fixed: &[
            ("mcp.method.name", "tools/call"),
            (OPERATION, "execute_tool"),
        ],
        fields: &[("tool", "gen_ai.tool.name")],
        outcome: ("outcome", &["failed"]),
    },
    SpanRow {
        source: "fleet",
        end: "fleet ended",
        operation: "invoke_workflow",
        detail: Detail::Field("plan"),
        kind: SpanKind::Internal,
        fixed: &[(OPERATION, "invoke_workflow")],
        fields: &[
            ("plan", "gen_ai.workflow.name"),
            ("id", "pinion.fleet.run"),
            ("outcome", "pinion.fleet.outcome"),
        ],
        outcome: ("outcome", &["failed", "stopped"]),
    },
    SpanRow {
        source: "attempt",
        end: "attempt ended",
        operation: "invoke_agent",
        detail: Detail::Field("child"),
        kind: SpanKind::Internal,
        fixed: &[(OPERATION, "invoke_agent")],
        fields: &[
            ("child", "gen_ai.agent.name"),
            ("model", "gen_ai.request.model"),
            ("number", "pinion.fleet.attempt"),
            ("failure", "pinion.fleet.failure"),
        ],
        outcome: ("outcome", &["failed", "stopped"]),
    },
];

/// The names of providers that differ from pinion's.
const PROVIDERS: [(&str, &str); 9] = [
    ("google", "gcp.gemini"),
    ("google-vertex", "gcp.vertex_ai"),
    ("azure-openai-responses", "azure.ai.openai"),
    ("azure", "azure.ai.openai"),
    ("mistral", "mistral_ai"),
    ("xai", "x_ai"),
    ("amazon-bedrock", "aws.bedrock"),
    ("moonshotai", "moonshot_ai"),
    ("perplexity-agent", "perplexity"),
];

/// An event of the diagnostic log within a span that becomes an event of the span.
struct EventRow {
    /// The message in the diagnostic log.
    source: &'static str,
    name: &'static str,
    /// Fields and the attributes they become.
    fields: &'static [(&'static str, &'static str)],
}

static EVENTS: [EventRow; 2] = [
    EventRow {
        source: "the request failed",
        name: "gen_ai.client.operation.exception",
        fields: &[
            ("host", "server.address"),
            ("status", "http.response.status_code"),
            ("attempt", "pinion.request.attempt"),
            ("cause", ERROR_TYPE),
        ],
    },
    EventRow {
        source: "waiting before a retry",
        name: "pinion.retry",
        fields: &[
            ("attempt", "pinion.retry.attempt"),
            ("delay_ms", "pinion.retry.delay_ms"),
        ],
    },
];

/// The fields of a span or an event as the diagnostic log has them.
pub(crate) type Fields = Vec<(&'static str, Value)>;

/// Returns the value of a field.
pub(crate) fn field<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    let mut fields = fields.iter();
    fields
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

/// Returns the row of a span of the diagnostic log.
pub(crate) fn row(source: &str) -> Option<&'static SpanRow> {
    ROWS.iter().find(|row| row.source == source)
}

/// Returns the name and the attributes of an event within a span, if it is sent.
pub(crate) fn event(message: &str, fields: &Fields) -> Option<(&'static str, Vec<Attribute>)> {
    let row = EVENTS.iter().find(|row| row.source == message)?;
    Some((row.name, renamed(row.fields, fields)))
}

impl SpanRow {
    /// Returns the name of a span with these fields.
    pub fn name(&self, fields: &Fields) -> String {
        let text = |name| {
            field(fields, name)
                .and_then(Value::as_text)
                .unwrap_or_default()
        };
        let name = match self.detail {
            Detail::Text(text) => format!("{} {text}", self.operation),
            Detail::Field(name) => format!("{} {}", self.operation, text(name)),
            Detail::Path(first, second) => format!("{}/{}", text(first), text(second)),
        };
        name.trim_end().to_owned()
    }

    /// Returns the attributes of a span with these fields, and whether it has failed.
    pub fn attributes(&self, fields: &Fields) -> (Vec<Attribute>, bool) {
        let fixed = self.fixed.iter();
        let fixed = fixed.map(|(name, value)| (*name, Value::Text((*value).to_owned())));
        let mut attributes: Vec<Attribute> = fixed.collect();
        attributes.extend(renamed(self.fields, fields));
        // The conventions count cached tokens as input; the log counts each token once.
        let count = |name| field(fields, name).and_then(Value::as_integer).unwrap_or(0);
        let cached = count("cache_read_tokens") + count("cache_write_tokens");
        for (name, value) in &mut attributes {
            if let (INPUT_TOKENS, Value::Integer(tokens)) = (*name, value) {
                *tokens += cached;
            }
        }
        let (name, failures) = self.outcome;
        let outcome = field(fields, name).and_then(Value::as_text);
        let failed = match failures {
            [] => outcome.is_some_and(|outcome| outcome != "ok"),
            failures => outcome.is_some_and(|outcome| failures.contains(&outcome)),
        };
        if let Some(outcome) = outcome.filter(|_| failed) {
            let kind = field(fields, "failure").and_then(Value::as_text);
            let kind = match self.source {
                "tool" => "tool_error",
                _ => kind.unwrap_or(outcome),
            };
            attributes.push((ERROR_TYPE, Value::Text(kind.to_owned())));
        }
        (attributes, failed)
    }
}

fn renamed(known: &[(&'static str, &'static str)], fields: &Fields) -> Vec<Attribute> {
    let attribute = |(source, name): &(&'static str, &'static str)| {
        let value = field(fields, source)?.clone();
        let value = match (*source, value) {
            ("provider", Value::Text(text)) => Value::Text(provider(&text).to_owned()),
            ("outcome", Value::Text(text)) if *name == "gen_ai.response.finish_reasons" => {
                Value::Texts(vec![text])
            }
            ("first_output_ms", Value::Integer(milliseconds)) => {
                Value::Float(milliseconds as f64 / 1000.0)
            }
            (_, value) => value,
        };
        Some((*name, value))
    };
    known.iter().filter_map(attribute).collect()
}

fn provider(name: &str) -> &str {
    let mut known = PROVIDERS.iter();
    known
        .find(|(own, _)| *own == name)
        .map_or(name, |(_, standard)| standard)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    fn value<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a Value> {
        let mut attributes = attributes.iter();
        attributes
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    #[test]
    fn a_request_has_the_names_of_the_conventions() {
        let fields: Fields = vec![
            ("provider", text("google")),
            ("model", text("gemini")),
            ("outcome", text("toolUse")),
            ("input_tokens", Value::Integer(10)),
            ("cache_read_tokens", Value::Integer(5)),
            ("first_output_ms", Value::Integer(1500)),
        ];
        let row = row("request").unwrap();
        assert_eq!(row.name(&fields), "chat gemini");
        let (attributes, failed) = row.attributes(&fields);
        assert!(!failed);
        assert_eq!(value(&attributes, OPERATION), Some(&text("chat")));
        assert_eq!(
            value(&attributes, "gen_ai.provider.name"),
            Some(&text("gcp.gemini"))
        );
        assert_eq!(value(&attributes, INPUT_TOKENS), Some(&Value::Integer(15)));
        assert_eq!(
            value(&attributes, "gen_ai.response.finish_reasons"),
            Some(&Value::Texts(vec!["toolUse".to_owned()]))
        );
        assert_eq!(
            value(&attributes, "gen_ai.response.time_to_first_chunk"),
            Some(&Value::Float(1.5))
        );
    }

    #[test]
    fn failures_have_a_type() {
        let of = |source: &str, fields: Fields| {
            let (attributes, failed) = row(source).unwrap().attributes(&fields);
            failed.then(|| value(&attributes, ERROR_TYPE).cloned().unwrap())
        };
        assert_eq!(
            of("tool", vec![("outcome", text("failed"))]),
            Some(text("tool_error"))
        );
        assert_eq!(of("tool", vec![("outcome", text("done"))]), None);
        assert_eq!(of("clip_call", vec![("code", text("ok"))]), None);
        assert_eq!(
            of("clip_call", vec![("code", text("not_found"))]),
            Some(text("not_found"))
        );
        let attempt = vec![("outcome", text("failed")), ("failure", text("timeout"))];
        assert_eq!(of("attempt", attempt), Some(text("timeout")));
    }

    #[test]
    fn a_span_that_was_cut_off_has_the_name_of_its_operation() {
        assert_eq!(row("tool").unwrap().name(&Vec::new()), "execute_tool");
    }
}
