//! Notifies clients of changed tools.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use super::{Answer, Gateway, GatewayScope, RequestContext, Tool, read};
use crate::rpc::{self, Fault, Request};
use crate::version::SUBSCRIPTION_KEY;

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Waits for changes of the tools of a gateway.
#[derive(Debug)]
struct Changes {
    /// `None` if the tools never change.
    counter: Option<watch::Receiver<u64>>,
    known: Option<Arc<Vec<Tool>>>,
}

impl Changes {
    /// Waits for changes from now on.
    fn of(gateway: &Gateway) -> Self {
        let counter = match gateway.scope {
            // The four tools of a hub never change, only the clips behind them.
            GatewayScope::Hub => None,
            GatewayScope::Clip(_) => gateway.clips.changes(),
        };
        Self {
            counter,
            known: None,
        }
    }

    /// Waits until the tools differ from those before. Dropping the future may lose a change.
    async fn next(&mut self, gateway: &Gateway) {
        let Some(counter) = &mut self.counter else {
            return std::future::pending().await;
        };
        if self.known.is_none() {
            self.known = Some(gateway.tools().await.unwrap_or_default());
            // The list may contain a change that clients have not been notified of.
            if counter.has_changed().unwrap_or(false) {
                counter.mark_unchanged();
                return;
            }
        }
        while counter.changed().await.is_ok() {
            // A clip that is gone has no tools.
            let tools = gateway.tools().await.unwrap_or_default();
            if self.known.as_ref() != Some(&tools) {
                self.known = Some(tools);
                return;
            }
        }
        self.counter = None;
        std::future::pending().await
    }
}

/// Passes a message to `send` whenever the tools have changed, as long as the future is polled.
pub(crate) async fn report_changes<F: Future<Output = ()>>(
    gateway: &Gateway,
    mut send: impl FnMut(Bytes) -> F,
) {
    let mut changes = Changes::of(gateway);
    loop {
        changes.next(gateway).await;
        send(rpc::notification::<()>(LIST_CHANGED, None)).await;
    }
}

impl Gateway {
    /// Reports changes as long as the client is subscribed.
    pub(super) async fn listen(&self, request: &Request, context: RequestContext<'_>) -> Answer {
        #[derive(Deserialize)]
        struct Params {
            #[serde(default)]
            notifications: Subscription,
        }
        #[derive(Default, Deserialize)]
        struct Subscription {
            #[serde(default, rename = "toolsListChanged")]
            tools: bool,
        }
        let params: Params = read(request)?;
        let Some(sink) = context.sink else {
            let message = "subscriptions/listen requires a client that accepts text/event-stream";
            return Err(Fault::invalid_params(message));
        };
        let meta = json!({ SUBSCRIPTION_KEY: request.id });
        let wanted = params.notifications.tools && self.reports_changes();
        let granted = if wanted {
            json!({ "toolsListChanged": true })
        } else {
            json!({})
        };
        let mut changes = Changes::of(self);
        let begun = json!({ "_meta": meta, "notifications": granted });
        let begun = rpc::notification("notifications/subscriptions/acknowledged", Some(&begun));
        sink.send(begun).await;
        let changed = rpc::notification(LIST_CHANGED, Some(&json!({ "_meta": meta })));
        let send = async {
            loop {
                changes.next(self).await;
                if wanted {
                    sink.send(changed.clone()).await;
                }
            }
        };
        tokio::select! {
            () = context.ending.cancelled() => {}
            () = send => {}
        }
        self.finish(context.era, &json!({}))
    }
}
