//! MCP servers as clips of a hub, configured by `mcp.json` in its directory.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};
use pinion_clip::logs::{ClipLog, Level, Origin};
use pinion_clip::{CallError, Snapshot};
use pinion_connect::{Code, Failure};
use pinion_hub::{Answers, Endpoint, Hub, HubCall, failed};
use pinion_mcp::Mount;

/// The name of the file in the hub's directory.
const FILE: &str = "mcp.json";
/// The largest `mcp.json`, in bytes.
const LIMIT: u64 = 16 << 20;

/// The mounted servers.
#[derive(Debug, Default)]
pub(super) struct Mounts(Vec<Arc<Mounted>>);

impl Mounts {
    /// Adds the servers in the file under `root`. Errors in the file are written to the hub's log.
    pub fn open(root: &Path, hub: &Hub) -> Self {
        let complain = |failure: Failure| {
            let message = format!("{FILE}: {failure}");
            hub.log().push(Level::Error, Origin::System, &message);
        };
        let text = match pinion_files::read_text(&root.join(FILE), LIMIT) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::default(),
            Err(error) => {
                complain(Failure::new(Code::Unavailable, error.to_string()));
                return Self::default();
            }
        };
        let configs = pinion_mcp::read_mounts(&text, root).unwrap_or_else(|failure| {
            complain(failure);
            Vec::new()
        });
        let mut mounts = Vec::new();
        for config in configs {
            let alias = config.alias.clone();
            let log = ClipLog::at(root.join("logs").join(format!("{alias}.log")));
            let mounted = Arc::new(Mounted(Mount::new(config, Arc::new(log))));
            match hub.add_builtin(&alias, mounted.clone()) {
                Ok(()) => mounts.push(mounted),
                Err(failure) => complain(failure),
            }
        }
        Self(mounts)
    }

    /// Stops all servers.
    pub async fn stop(&self) {
        join_all(self.0.iter().map(|mounted| mounted.0.stop())).await;
    }
}

/// An MCP server as an endpoint of the hub.
#[derive(Debug)]
struct Mounted(Mount);

impl Endpoint for Mounted {
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    fn invoke(self: Arc<Self>, call: HubCall) -> Answers {
        if call.more.is_some() {
            let message = "an MCP server takes its input as a whole: use Invoke";
            let failure = Failure::new(Code::Unimplemented, message);
            return failed(CallError::Unanswered(failure));
        }
        let input: Bytes = call.input;
        self.0.invoke(&call.command, input, call.deadline)
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Snapshot, Failure>> {
        Box::pin(self.0.inspect())
    }

    fn log(&self) -> Option<Arc<ClipLog>> {
        Some(self.0.logs())
    }
}
