//! Ends open streams when the token they were opened with is revoked or expires.

use std::time::Duration;

use pinion_status::{Code, Failure};

use crate::{TokenId, TokenStore};

/// Interval at which an open stream checks the file, if no other check happens.
const POLL_INTERVAL: Duration = Duration::from_secs(4);

/// The right to continue a stream as long as its token is valid.
#[derive(Debug, Clone)]
pub struct Lease {
    store: TokenStore,
    token: Option<TokenId>,
}

impl Lease {
    /// Creates the lease of a stream opened with this token. Without a token it never ends.
    pub(crate) fn new(store: TokenStore, token: Option<TokenId>) -> Self {
        Self { store, token }
    }

    /// Waits until the token was revoked or has expired, and returns an `unauthenticated` failure at most five seconds
    /// later.
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
                    POLL_INTERVAL.min(left.map_or(POLL_INTERVAL, Duration::from_millis))
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
