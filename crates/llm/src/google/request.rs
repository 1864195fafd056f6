//! Builds requests of Google's APIs from the contents, the tools and the settings of a request.

use pinion_message::ToolSpec;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Map, Value};

use super::contents::{WireContent, contents};
use super::thinking::{ThinkingConfig, thinking_config};
use crate::http_request::url;
use crate::http_request::{Headers, HttpRequest, api_key, base_url};
use crate::identity::CloudIdentity;
use crate::request::Request;
use crate::sampling;
use crate::thinking::{fitting_max_tokens, max_tokens};
use crate::transform::{transform, transform_dropping_thinking};

/// Google's hosts, which differ in their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    GenerativeLanguage,
    Vertex,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Vec<WireContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<WireContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
    #[serde(flatten)]
    sampling: Map<String, Value>,
}

pub(crate) fn build(request: &Request, host: Host) -> Result<HttpRequest, String> {
    let model = &*request.model;
    let history = match host {
        Host::GenerativeLanguage => transform(&request.messages, model),
        Host::Vertex => transform_dropping_thinking(&request.messages, model),
    };
    let system = request
        .system_prompt
        .as_deref()
        .filter(|prompt| !prompt.is_empty());
    let tools = (!request.tools.is_empty()).then(|| {
        [Tools {
            function_declarations: request.tools.iter().map(declaration).collect(),
        }]
    });
    let body = Body {
        contents: contents(&history, model),
        system_instruction: system.map(|prompt| WireContent::text("user", prompt)),
        tools,
        generation_config: GenerationConfig {
            temperature: request.options.temperature,
            max_output_tokens: match host {
                Host::GenerativeLanguage => max_tokens(request),
                Host::Vertex => fitting_max_tokens(request),
            },
            thinking_config: model.reasoning.then(|| thinking_config(request, host)),
            sampling: sampling::members(request),
        },
    };
    let mut headers = Headers::json("*/*");
    match (&request.options.identity, host) {
        (
            Some(CloudIdentity::Google {
                token,
                quota_project,
            }),
            Host::Vertex,
        ) => {
            headers.set(
                "authorization",
                &format!("Bearer {}", token.expose_secret()),
            );
            if let Some(project) = quota_project {
                headers.set("x-goog-user-project", project);
            }
        }
        _ => headers.set("x-goog-api-key", api_key(request).unwrap_or_default()),
    }
    headers.model(request);
    let path = format!("models/{}:streamGenerateContent?alt=sse", model.id);
    let address = match host {
        Host::GenerativeLanguage => url(request, &path)?,
        Host::Vertex => vertex_url(request, &path)?,
    };
    headers.into_request(address, &body, request)
}

fn declaration(spec: &ToolSpec) -> Declaration<'_> {
    let ToolSpec {
        name,
        description,
        parameters,
    } = spec;
    Declaration {
        name,
        description,
        parameters_json_schema: parameters,
    }
}

/// The address. With a key it contains neither project nor location; an address of the user's own replaces both.
fn vertex_url(request: &Request, path: &str) -> Result<String, String> {
    let base = base_url(request);
    let path = format!("publishers/google/{path}");
    if !base.is_empty() && !base.contains("{location}") {
        let version = if has_version(base) { "" } else { "v1/" };
        return url(request, &format!("{version}{path}"));
    }
    let Some(CloudIdentity::Google { .. }) = request.options.identity else {
        return Ok(format!("https://aiplatform.googleapis.com/v1/{path}"));
    };
    let variable = |name: &str| request.options.environment.get(name);
    let project = variable("GOOGLE_CLOUD_PROJECT").or_else(|| variable("GCLOUD_PROJECT"));
    let project = project.ok_or(
        "Vertex AI requires a project ID. Set GOOGLE_CLOUD_PROJECT/GCLOUD_PROJECT or pass project in options.",
    )?;
    let location = variable("GOOGLE_CLOUD_LOCATION").ok_or(
        "Vertex AI requires a location. Set GOOGLE_CLOUD_LOCATION or pass location in options.",
    )?;
    let host = match location.as_str() {
        "global" => "aiplatform.googleapis.com".to_owned(),
        "us" | "eu" => format!("aiplatform.{location}.rep.googleapis.com"),
        _ => format!("{location}-aiplatform.googleapis.com"),
    };
    let is_name = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
    };
    if !is_name(&location) || !is_name(&project) {
        return Err(format!(
            "The project {project:?} or the location {location:?} of Vertex AI is not a name. Check GOOGLE_CLOUD_PROJECT and \
             GOOGLE_CLOUD_LOCATION."
        ));
    }
    Ok(format!(
        "https://{host}/v1/projects/{project}/locations/{location}/{path}"
    ))
}

/// Reports whether an address has a segment like `v1` or `v1beta1`.
fn has_version(base: &str) -> bool {
    let (_, rest) = base.split_once("://").unwrap_or(("", base));
    rest.split('/').skip(1).any(|segment| {
        let mut letters = segment.chars();
        letters.next() == Some('v') && letters.next().is_some_and(|c| c.is_ascii_digit())
    })
}
