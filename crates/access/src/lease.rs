//! What ends open streams when the token they were opened with goes.

use std::time::Duration;

use pinion_status::{Code, Failure};

use crate::{TokenId, TokenStore};

/// How often the file is looked at on behalf of an open stream that nothing else looks for.
const LOOK: Duration = Duration::from_secs(4);

/// The right to go on with something, as long as the token is good it was begun with.
#[derive(Debug, Clone)]
pub struct Lease {
    store: TokenStore,
    token: Option<TokenId>,
}

impl Lease {
    /// Of something begun with this token; what was begun without one never ends for the lack of it.
    pub(crate) fn new(store: TokenStore, token: Option<TokenId>) -> Self {
        Self { store, token }
    }

    /// Ends when the token was revoked or has expired, at most five seconds later, and says so as `unauthenticated`.
    pub async fn ended(self) -> Failure {
        let Some(id) = self.token else {
            return std::future::pending().await;
        };
        let mut changes = self.store.changes();
        loop {
            changes.borrow_and_update();
            let wait = match self.store.by_id(&id) {
                Err(failure) => return failure,
                Ok(entry) => {
                    let now = self.store.clock().now();
                    let left = entry.record.expires.map(|end| end.saturating_sub(now));
                    let left = left.and_then(|left| u64::try_from(left).ok());
                    LOOK.min(left.map_or(LOOK, Duration::from_millis))
                }
            };
            tokio::select! {
                changed = changes.changed() => if changed.is_err() {
                    return Failure::new(Code::Unauthenticated, "token revoked");
                },
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}
