//! The MCP servers that `mcp.json` in a hub's directory configures, as clips of the hub.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use pinion_clip::logs::{ClipLog, Level};
use pinion_clip::{CallError, Snapshot};
use pinion_hub::{Answers, Endpoint, Hub, HubCall, failed};
use pinion_status::{Code, Failure};

use super::{Mount, read_mounts};

/// The name of the file in the hub's directory.
const FILE: &str = "mcp.json";
/// The largest `mcp.json`, in bytes.
const LIMIT: u64 = 16 << 20;

/// The mounted servers.
#[derive(Debug, Default)]
pub struct Mounts(Vec<Arc<MountedClip>>);

impl Mounts {
    /// Adds the servers in the file under `root`. Errors in the file are written to the hub's log.
    pub fn open(root: &Path, hub: &Hub) -> Self {
        let report = |failure: Failure| {
            hub.write_log(Level::Error, &format!("{FILE}: {failure}"));
        };
        let text = match pinion_files::read_text(&root.join(FILE), LIMIT) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::default(),
            Err(error) => {
                report(Failure::new(Code::Unavailable, error.to_string()));
                return Self::default();
            }
        };
        let configs = read_mounts(&text, root).unwrap_or_else(|failure| {
            report(failure);
            Vec::new()
        });
        let mut mounts = Vec::new();
        for config in configs {
            let alias = config.alias.clone();
            let log = ClipLog::at(root.join("logs").join(format!("{alias}.log")));
            let mounted = Arc::new(MountedClip(Mount::new(config, Arc::new(log))));
            match hub.add_builtin(&alias, mounted.clone()) {
                Ok(()) => mounts.push(mounted),
                Err(failure) => report(failure),
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
struct MountedClip(Mount);

impl Endpoint for MountedClip {
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    fn invoke(self: Arc<Self>, call: HubCall) -> Answers {
        if call.more.is_some() {
            let message = "an MCP server takes its input as a whole: use Invoke";
            let failure = Failure::new(Code::Unimplemented, message);
            return failed(CallError::Unanswered(failure));
        }
        self.0.invoke(&call.command, call.input, call.deadline)
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Snapshot, Failure>> {
        Box::pin(self.0.inspect())
    }

    fn log(&self) -> Option<Arc<ClipLog>> {
        Some(self.0.logs())
    }
}
