//! The one model with which a command runs.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream;
use pinion_agent::Models;
use pinion_llm::{Authorization, EventStream, Provider, Providers, Registry, Request, StreamEvent};
use pinion_message::{
    AssistantMessage, Mask, Message, Model, StopReason, ThinkingLevel, now_millis,
};
use pinion_profiles::Chosen;

/// The largest number of model requests for one prompt, so that a loop of tool calls ends.
const MAX_REQUESTS: usize = 20;

/// The model of a command, with its provider.
pub(crate) struct OneModel {
    chosen: Chosen,
    registry: Registry,
    provider: Arc<dyn Provider>,
    /// Receives every key that is used.
    mask: Mask,
}

impl OneModel {
    pub fn new(chosen: Chosen, registry: Registry, providers: Providers, mask: Mask) -> Self {
        for key in chosen.known_keys() {
            mask.learn(&key);
        }
        let inner = chosen.provider(Arc::new(providers));
        Self {
            chosen,
            registry,
            provider: Arc::new(RequestLimit { inner }),
            mask,
        }
    }

    pub fn model(&self) -> Arc<Model> {
        Arc::clone(&self.chosen.model)
    }

    pub fn thinking_level(&self) -> ThinkingLevel {
        self.chosen.thinking
    }
}

impl Models for OneModel {
    fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let model = &self.chosen.model;
        (model.provider == provider && model.id == id).then(|| self.model())
    }

    fn available(&self) -> Vec<Arc<Model>> {
        vec![self.model()]
    }

    fn scoped(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)> {
        Vec::new()
    }

    fn access(&self, _model: &Model) -> BoxFuture<'static, Result<Authorization, String>> {
        let authorization = self.chosen.authorize(&self.registry);
        let mask = self.mask.clone();
        Box::pin(async move {
            let authorization = authorization.await.map_err(|error| error.to_string())?;
            authorization
                .all_secrets()
                .for_each(|secret| mask.learn(secret));
            Ok(authorization)
        })
    }

    fn provider(&self, _model: &Model) -> Arc<dyn Provider> {
        Arc::clone(&self.provider)
    }

    fn check_credentials(&self, _model: &Model) -> Result<(), String> {
        Ok(())
    }
}

/// Fails a request after `MAX_REQUESTS` answers to one prompt.
struct RequestLimit {
    inner: Arc<dyn Provider>,
}

impl Provider for RequestLimit {
    fn stream(&self, request: Request) -> EventStream {
        let since_prompt = request.messages.iter().rev();
        let answers = since_prompt
            .take_while(|message| !matches!(***message, Message::User(_)))
            .filter(|message| matches!(***message, Message::Assistant(_)))
            .count();
        if answers < MAX_REQUESTS {
            return self.inner.stream(request);
        }
        let message = AssistantMessage {
            content: Vec::new(),
            api: request.model.api.clone(),
            provider: request.model.provider.clone(),
            model: request.model.id.clone(),
            usage: Default::default(),
            stop_reason: StopReason::Error,
            timestamp: now_millis(),
            response_id: None,
            response_model: None,
            error_message: Some(format!("max iterations ({MAX_REQUESTS}) reached")),
            raw_stop_reason: None,
            refused: false,
            duration_ms: None,
            thinking_level: None,
        };
        Box::pin(stream::iter([StreamEvent::End(message)]))
    }
}
