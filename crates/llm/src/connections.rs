//! The connections of a provider to model servers, and the last server that it could not reach.

use pinion_http::{Clients, Redirects};

use crate::unreachable::LastUnreachable;

/// Clones share the clients and the record of the unreachable server.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    pub(crate) clients: Clients,
    pub(crate) unreachable: LastUnreachable,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            // A redirect to another host would send it the headers with keys.
            clients: Clients::new(Redirects::SameHost),
            unreachable: LastUnreachable::default(),
        }
    }
}
