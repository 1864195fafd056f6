//! A sink that writes lines into memory, for a reader in the same process.

use std::fmt;
use std::sync::{Arc, Mutex};

use pinion_jsonl::{Feed, Project, Records};
use pinion_sync::lock;

use crate::{Additions, Dialect, Out, Projection, Sink};

/// Projects events into a feed as they arrive.
#[derive(Clone)]
pub struct FeedSink(Arc<Projecting>);

struct Projecting {
    feed: Arc<Feed>,
    projection: Mutex<(Projection, Records)>,
}

impl FeedSink {
    /// Creates a sink whose lines have this dialect.
    pub fn new(feed: Arc<Feed>, dialect: Dialect) -> Self {
        let projection = (
            Projection::new(dialect, Additions::None),
            Records::in_memory(),
        );
        Self(Arc::new(Projecting {
            feed,
            projection: Mutex::new(projection),
        }))
    }
}

impl fmt::Debug for FeedSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FeedSink").field(&self.0.feed).finish()
    }
}

impl Sink for FeedSink {
    fn push(&self, out: Out) {
        let mut projecting = lock(&self.0.projection);
        let (projection, records) = &mut *projecting;
        projection.project(out, records);
        self.0.feed.push(|bytes| records.drain(bytes));
    }

    fn has_room(&self) -> bool {
        self.0.feed.has_room()
    }

    fn room(&self) -> impl Future<Output = ()> + Send {
        self.0.feed.room()
    }

    fn room_for_answers(&self) -> impl Future<Output = ()> + Send {
        self.0.feed.room()
    }

    fn broken(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}
