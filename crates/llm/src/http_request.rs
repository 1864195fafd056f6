//! An HTTP request before it is sent: address, headers, body. Pure functions build it, so that
//! tests can compare it without a socket. Header values may hold secrets and are never printed.

use bytes::Bytes;
use pinion_message::{Block, Content, Message};
use secrecy::ExposeSecret;
use serde::Serialize;

use crate::identity::RequestSigner;
use crate::request::{CacheRetention, Request};

/// One HTTP request: a POST of JSON.
pub struct HttpRequest {
    pub url: String,
    /// In order of definition; names are lower case and occur once.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// Signs the request when it is sent.
    pub(crate) signer: Option<RequestSigner>,
}

impl std::fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpRequest")
            .field("url", &self.url)
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// Headers being collected, lowest precedence first: a later one replaces an earlier one.
#[derive(Default)]
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    /// Starts with the headers every API shares.
    pub(crate) fn json(accept: &str) -> Self {
        let mut headers = Self::default();
        headers.set("accept", accept);
        headers.set("content-type", "application/json");
        headers
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => value.clone_into(known),
            None => self.0.push((name, value.to_owned())),
        }
    }

    /// Adds the key as a bearer token, under `name`.
    pub(crate) fn bearer(&mut self, name: &str, request: &Request) {
        if let Some(key) = api_key(request) {
            self.set(name, &format!("Bearer {key}"));
        }
    }

    /// Adds the model's own headers, then GitHub Copilot's, which depend on the conversation.
    pub(crate) fn model(&mut self, request: &Request) {
        for (name, value) in request.model.headers.iter().flatten() {
            self.set(name, value);
        }
        if request.model.provider == "github-copilot" {
            self.set("x-initiator", initiator(&request.messages));
            self.set("openai-intent", "conversation-edits");
            if request.messages.iter().any(|message| has_image(message)) {
                self.set("copilot-vision-request", "true");
            }
        }
    }

    /// Adds the request's own headers, which override all others, and completes the request.
    pub(crate) fn into_request(
        mut self,
        url: String,
        body: &impl Serialize,
        request: &Request,
    ) -> Result<HttpRequest, String> {
        for (name, value) in &request.options.headers {
            self.set(name, value);
        }
        let body = serde_json::to_vec(body)
            .map_err(|error| format!("The request could not be written as JSON: {error}"))?;
        Ok(HttpRequest {
            url,
            headers: self.0,
            body: body.into(),
            signer: None,
        })
    }
}

/// The plain key, for headers only.
pub(crate) fn api_key(request: &Request) -> Option<&str> {
    request
        .options
        .api_key
        .as_ref()
        .map(ExposeSecret::expose_secret)
        .filter(|key| !key.is_empty())
}

/// The session's name for caches; `None` if caching is off.
pub(crate) fn cache_session(request: &Request) -> Option<&str> {
    match request.options.cache_retention {
        CacheRetention::None => None,
        _ => request
            .options
            .session_id
            .as_deref()
            .filter(|id| !id.is_empty()),
    }
}

/// The address of the model, unless the login of its provider names another one.
pub(crate) fn base_url(request: &Request) -> &str {
    let replaced = request.options.base_url.as_deref();
    replaced.unwrap_or(&request.model.base_url)
}

/// Joins the model's address and `path` with exactly one slash, and fills in the `{NAME}`s of the
/// address.
pub(crate) fn url(request: &Request, path: &str) -> Result<String, String> {
    let base = with_environment(request)?;
    Ok(format!("{}/{path}", base.trim_end_matches('/')))
}

/// Fills in the variables of Cloudflare's addresses: an account and a gateway.
fn with_environment(request: &Request) -> Result<String, String> {
    let environment = &request.options.environment;
    let base_url = base_url(request);
    let mut filled = String::with_capacity(base_url.len());
    let mut rest = base_url;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        filled.push_str(before);
        let Some(value) = environment.get(name) else {
            let provider = &request.model.provider;
            return Err(format!(
                "{name} is not set. Provider {provider} needs it in the environment, or in \"env\" of the entry \
                 \"{provider}\" in auth.json."
            ));
        };
        filled.push_str(&value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn initiator(messages: &[std::sync::Arc<Message>]) -> &'static str {
    match messages.last().map(|message| &**message) {
        None | Some(Message::User(_)) => "user",
        Some(_) => "agent",
    }
}

fn has_image(message: &Message) -> bool {
    let blocks = match message {
        Message::User(user) => match &user.content {
            Content::Blocks(blocks) => blocks,
            Content::Text(_) => return false,
        },
        Message::ToolResult(result) => &result.content,
        _ => return false,
    };
    blocks
        .iter()
        .any(|block| matches!(block, Block::Image { .. }))
}

/// `{"type":"ephemeral"}`, with a lifetime of an hour for long retention where that is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct CacheControl {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CacheControl {
    pub(crate) fn new(retention: CacheRetention, supports_long: bool) -> Option<Self> {
        let ttl = (retention == CacheRetention::Long && supports_long).then_some("1h");
        (retention != CacheRetention::None).then_some(Self {
            r#type: "ephemeral",
            ttl,
        })
    }
}

/// A `data:` URL that is written straight into the JSON.
pub(crate) struct DataUrl<'a> {
    pub(crate) mime_type: &'a str,
    pub(crate) data: &'a str,
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!(
            "data:{};base64,{}",
            self.mime_type, self.data
        ))
    }
}

/// The text blocks joined by line feeds; borrowed when there is only one.
pub(crate) fn joined_text(blocks: &[Block]) -> std::borrow::Cow<'_, str> {
    let mut texts = blocks.iter().filter_map(Block::as_text);
    match (texts.next(), texts.next()) {
        (None, _) => "".into(),
        (Some(only), None) => only.into(),
        (Some(first), Some(second)) => {
            let mut joined = format!("{first}\n{second}");
            for text in texts {
                joined.push('\n');
                joined.push_str(text);
            }
            joined.into()
        }
    }
}

/// Replaces the text of a tool result that has only images.
pub(crate) const IMAGE_ONLY_TEXT: &str = "(see attached image)";
/// Introduces the images of tool results for APIs whose tool results cannot contain images.
pub(crate) const TOOL_IMAGES_HEADING: &str = "Images from the tool results above:";
