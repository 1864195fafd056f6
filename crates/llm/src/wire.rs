//! The HTTP provider: one provider for all model servers, which chooses the protocol by the model's
//! `api`.

use crate::Unreachable;
use crate::cassette::Recorder;
use crate::connections::Connections;
use crate::exchange::exchange;
use crate::google::Host;
use crate::http_request::HttpRequest;
use crate::request::{EventStream, Provider, Request};
use crate::responses::Flavour;
use crate::{anthropic, bedrock, completions, google, mistral, responses};

/// The APIs that are supported over HTTP.
pub(crate) const SUPPORTED_APIS: [&str; 9] = [
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "azure-openai-responses",
    "google-generative-ai",
    "google-vertex",
    "mistral-conversations",
    "bedrock-converse-stream",
    "openai-codex-responses",
];

/// Reports whether pinion itself sends requests to servers with this API.
pub fn is_supported_api(api: &str) -> bool {
    SUPPORTED_APIS.contains(&api)
}

/// Sends requests to model servers over HTTP.
///
/// Cheap to make: certificates, connections and everything else are created by the first request
/// that needs them. Clones share their connections.
#[derive(Debug, Clone, Default)]
pub struct HttpProvider {
    connections: Connections,
    recorder: Option<Recorder>,
}

impl HttpProvider {
    pub fn new() -> Self {
        Self::default()
    }

    /// A provider that also records every answer to a cassette.
    pub fn recording(recorder: Recorder) -> Self {
        Self {
            recorder: Some(recorder),
            ..Self::default()
        }
    }

    /// The server that could not be reached, if the last request failed that way.
    pub fn unreachable(&self) -> Option<Unreachable> {
        self.connections.unreachable.get()
    }

    /// Prepares what requests to `base_url` will need, so that the first need not wait for it.
    ///
    /// For `https` it reads the system's certificates. The request reports failures.
    pub async fn warm_up(&self, base_url: &str, connect_timeout: std::time::Duration) {
        if let Ok(url) = pinion_http::Url::parse(base_url) {
            let _ = self.connections.clients.get(&url, connect_timeout).await;
        }
    }
}

impl Provider for HttpProvider {
    fn stream(&self, request: Request) -> EventStream {
        exchange(request, self.connections.clone(), self.recorder.as_ref())
    }
}

/// The HTTP request for `request`. The error is a sentence for the user.
pub fn build_request(request: &Request) -> Result<HttpRequest, String> {
    match request.model.api.as_str() {
        "anthropic-messages" => anthropic::build(request),
        "openai-completions" => completions::build(request),
        "openai-responses" => responses::build(request, Flavour::OpenAi),
        "azure-openai-responses" => responses::build(request, Flavour::Azure),
        "google-generative-ai" => google::build(request, Host::GenerativeLanguage),
        "google-vertex" => google::build(request, Host::Vertex),
        "mistral-conversations" => mistral::build(request),
        "bedrock-converse-stream" => bedrock::build(request),
        "openai-codex-responses" => responses::build_codex(request),
        api => Err(format!("No API provider registered for api: {api}")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pinion_message::Model;

    use super::*;
    use crate::decoder::ResponseDecoder;
    use crate::request::RequestOptions;

    #[test]
    fn every_spoken_api_can_be_written_and_read() {
        for api in SUPPORTED_APIS {
            let model: Model = serde_json::from_value(serde_json::json!({
                "id": "m", "name": "m", "api": api, "provider": "p", "baseUrl": "http://test",
                "reasoning": false, "input": [], "cost": {}, "contextWindow": 1, "maxTokens": 1,
            }))
            .unwrap();
            let request = Request {
                model: Arc::new(model),
                system_prompt: None,
                messages: Vec::new(),
                tools: Arc::new([]),
                options: RequestOptions {
                    // A token that names an account.
                    api_key: Some(
                        "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYSJ9fQ.s".into(),
                    ),
                    ..RequestOptions::default()
                },
                cancel: tokio_util::sync::CancellationToken::new(),
            };
            assert!(build_request(&request).is_ok(), "{api}");
            assert!(ResponseDecoder::new(&request).is_some(), "{api}");
        }
    }
}
