//! Telling clients that the tools have changed.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use super::{Answer, Context, Exposes, Gateway, Tool, read};
use crate::rpc::{self, Fault, Request};
use crate::version::SUBSCRIPTION_KEY;

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Waits for changes of the tools of a gateway.
#[derive(Debug)]
struct Changes {
    /// `None` if there is nothing to wait for.
    told: Option<watch::Receiver<u64>>,
    known: Option<Arc<Vec<Tool>>>,
}

impl Changes {
    /// From now on.
    fn of(gateway: &Gateway) -> Self {
        let told = match gateway.exposes {
            // The tools are always the same, whatever they reach.
            Exposes::Hub => None,
            Exposes::Clip(_) => gateway.clips.changes(),
        };
        Self { told, known: None }
    }

    /// Waits until the tools are others than before. Dropping it may lose a change.
    async fn next(&mut self, gateway: &Gateway) {
        let Some(told) = &mut self.told else {
            return std::future::pending().await;
        };
        if self.known.is_none() {
            self.known = Some(gateway.tools().await.unwrap_or_default());
            // What changed meanwhile may be in there, while a client was told what was before.
            if told.has_changed().unwrap_or(false) {
                told.mark_unchanged();
                return;
            }
        }
        while told.changed().await.is_ok() {
            // A clip that is gone has no tools.
            let tools = gateway.tools().await.unwrap_or_default();
            if self.known.as_ref() != Some(&tools) {
                self.known = Some(tools);
                return;
            }
        }
        self.told = None;
        std::future::pending().await
    }
}

/// Hands `tell` a message whenever the tools have changed, for as long as it is polled.
pub(crate) async fn tell_changes<F: Future<Output = ()>>(
    gateway: &Gateway,
    mut tell: impl FnMut(Bytes) -> F,
) {
    let mut changes = Changes::of(gateway);
    loop {
        changes.next(gateway).await;
        tell(rpc::notification::<()>(LIST_CHANGED, None)).await;
    }
}

impl Gateway {
    /// Tells of changes for as long as the client wants to hear of them.
    pub(super) async fn listen(&self, request: &Request, context: Context<'_>) -> Answer {
        #[derive(Deserialize)]
        struct Params {
            #[serde(default)]
            notifications: Wanted,
        }
        #[derive(Default, Deserialize)]
        struct Wanted {
            #[serde(default, rename = "toolsListChanged")]
            tools: bool,
        }
        let params: Params = read(request)?;
        let Some(outlet) = context.outlet else {
            let message = "subscriptions/listen needs a client that takes text/event-stream";
            return Err(Fault::invalid_params(message));
        };
        let meta = json!({ SUBSCRIPTION_KEY: request.id });
        let wanted = params.notifications.tools && self.tells_changes();
        let granted = if wanted {
            json!({ "toolsListChanged": true })
        } else {
            json!({})
        };
        let mut changes = Changes::of(self);
        let begun = json!({ "_meta": meta, "notifications": granted });
        let begun = rpc::notification("notifications/subscriptions/acknowledged", Some(&begun));
        outlet.send(begun).await;
        let changed = rpc::notification(LIST_CHANGED, Some(&json!({ "_meta": meta })));
        let tell = async {
            loop {
                changes.next(self).await;
                if wanted {
                    outlet.send(changed.clone()).await;
                }
            }
        };
        tokio::select! {
            () = context.ending.cancelled() => {}
            () = tell => {}
        }
        self.finish(context.era, &json!({}))
    }
}
