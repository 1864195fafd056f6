//! The clock that decides when tokens expire.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serializer};

/// Milliseconds since 1970, in UTC.
pub type Millis = i64;

/// The system's clock, or one that tests set by hand.
#[derive(Debug, Clone, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    pub fn system() -> Self {
        Self(None)
    }

    /// Creates a clock that stands still until it is moved. Clones show the same time.
    pub fn manual(now: Millis) -> Self {
        Self(Some(Arc::new(AtomicI64::new(now))))
    }

    /// Moves a manual clock forward; has no effect on the system's clock.
    pub fn advance(&self, by: Duration) {
        if let Some(hand) = &self.0 {
            hand.fetch_add(millis(by), Ordering::Relaxed);
        }
    }

    pub fn now(&self) -> Millis {
        match &self.0 {
            Some(hand) => hand.load(Ordering::Relaxed),
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, millis),
        }
    }

    /// Returns the current time plus `lifetime`.
    pub(crate) fn after(&self, lifetime: Duration) -> Millis {
        self.now().saturating_add(millis(lifetime))
    }
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

/// Writes a time as RFC 3339: `2026-01-31T18:56:25.478Z`.
pub(crate) fn to_text<S: Serializer>(time: &Option<Millis>, out: S) -> Result<S::Ok, S::Error> {
    match time.map(Timestamp::from_millisecond) {
        Some(Ok(time)) => out.collect_str(&time),
        Some(Err(_)) => out.collect_str(&Timestamp::MAX),
        None => out.serialize_none(),
    }
}

/// Reads a time in RFC 3339.
pub(crate) fn from_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Millis>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| {
        let time: Timestamp = text.parse().map_err(|_| {
            serde::de::Error::custom(format!(
                "\"{text}\" is not a time such as 2026-01-31T18:56:25Z"
            ))
        })?;
        Ok(time.as_millisecond())
    })
    .transpose()
}
