//! The parts of the program that begin and end with a session: extensions, approvals and services.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_agent::{Companions, Hooks, Participant};
use pinion_agent_mcp::McpServers;
use pinion_approval::ClientQuestions;
use pinion_extensions::Extensions;
use pinion_pi::Additions;

use crate::extensions::{ProgramServices, Talker};
use crate::sandbox::Sandbox;

/// Longest wait for extensions to shut down.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The companions of one session.
pub(crate) struct SessionCompanions {
    pub extensions: Option<Extensions>,
    /// The questions that the client receives about tool calls; `None` if it never receives any.
    pub approvals: Option<Arc<ClientQuestions>>,
    pub services: Arc<ProgramServices>,
    /// The MCP servers whose tools the session has.
    pub servers: Option<Arc<McpServers>>,
    /// Holds the temporary directory of the commands.
    pub _sandbox: Option<Sandbox>,
}

impl SessionCompanions {
    /// Returns the events of pi 0.73 that clients receive with extensions loaded, because extensions are written for it.
    pub fn additions(&self) -> Additions {
        match self.extensions {
            None => Additions::None,
            Some(_) => Additions::OfExtensions,
        }
    }
}

impl Companions for SessionCompanions {
    fn participants(&self) -> Vec<Arc<dyn Participant>> {
        let extensions = self.extensions.iter();
        let extensions = extensions.map(|extensions| Arc::new(Talker(extensions.clone())) as _);
        let approvals = self.approvals.iter();
        let approvals = approvals.map(|approvals| Arc::clone(approvals) as _);
        extensions.chain(approvals).collect()
    }

    fn begin(&self) -> Option<BoxFuture<'static, ()>> {
        let extensions = self.extensions.clone()?;
        Some(Box::pin(async move { extensions.begin().await }))
    }

    fn read_session(&self) -> bool {
        self.extensions.is_some()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(extensions) = &self.extensions {
                let shutdown = Hooks::shutdown(extensions);
                // An extension that takes longer is abandoned.
                let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, shutdown).await;
            }
            if let Some(servers) = &self.servers {
                servers.stop().await;
            }
        })
    }

    fn exited(&self) -> BoxFuture<'_, u8> {
        Box::pin(self.services.exited())
    }
}
