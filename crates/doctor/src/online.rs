//! One request per provider with a key, to see if the key and the address work.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use pinion_llm::{
    HttpRetry, Provider, Providers, Registry, Request, RequestOptions, StreamEvent, default_model,
};
use pinion_message::{Block, Message, Model, StopReason, UserMessage};
use tokio_util::sync::CancellationToken;

use crate::Report;

/// The longest wait for one provider.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Answer tokens of the request. Some APIs refuse fewer.
const MAX_TOKENS: u64 = 16;
const OFFLINE: &str = "offline";

/// Sends a short request to the default model of each provider with a key, and reports those that fail.
pub async fn check_keys_online(report: &mut Report, registry: &Registry) {
    let (providers, _) = Providers::from_environment();
    let available = registry.available();
    let names: BTreeSet<&str> = available
        .iter()
        .map(|model| model.provider.as_str())
        .collect();
    for name in names.into_iter().filter(|name| *name != OFFLINE) {
        let first = || {
            available
                .iter()
                .find(|model| model.provider == name)
                .cloned()
        };
        let Some(model) = default_model(registry, name).or_else(first) else {
            continue;
        };
        let id = model.id.clone();
        let asked = tokio::time::timeout(TIMEOUT, ask(&providers, registry, model)).await;
        let asked = asked.unwrap_or_else(|_| Err(format!("no answer in {} s", TIMEOUT.as_secs())));
        match asked {
            Ok(()) => report.fine("online", format!("{name} answers ({id})")),
            Err(reason) => report.problem(
                "online",
                format!("{name} did not answer a request to {id}: {reason}. Check the key and the address."),
            ),
        }
    }
}

async fn ask(providers: &Providers, registry: &Registry, model: Arc<Model>) -> Result<(), String> {
    let mut options = RequestOptions {
        max_tokens: Some(MAX_TOKENS),
        retry: HttpRetry {
            max_retries: 0,
            ..HttpRetry::default()
        },
        ..RequestOptions::default()
    };
    let authorization = registry.authorize(&model).await;
    authorization
        .map_err(|error| error.to_string())?
        .apply(&mut options);
    let question = UserMessage::now(vec![Block::text("Reply with: ok".to_owned())]);
    let mut stream = providers.stream(Request {
        model,
        system_prompt: None,
        messages: vec![Arc::new(Message::User(question))],
        tools: Vec::new().into(),
        options,
        cancel: CancellationToken::new(),
    });
    while let Some(event) = stream.next().await {
        if let StreamEvent::End(answer) = event {
            return match answer.stop_reason {
                StopReason::Error | StopReason::Aborted => {
                    let reason = answer.error_message.unwrap_or_default();
                    Err(reason.trim_end_matches('.').to_owned())
                }
                _ => Ok(()),
            };
        }
    }
    Err("the answer has no end".to_owned())
}
