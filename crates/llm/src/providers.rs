//! All providers behind one type; the model of a request selects one of them.

use pinion_message::Model;

use crate::cassette::{self, CassetteProvider, recorder_from_environment};
use crate::offline::{self, OfflineProvider};
use crate::{EventStream, HttpProvider, Notice, Provider, Request};

/// Sends each request to the provider of its model: the offline model, a cassette, or a server.
///
/// Cheap to make. Clones share their connections, which are made when first needed.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    http: HttpProvider,
    cassettes: CassetteProvider,
}

impl Providers {
    /// The providers; they record to the cassette that `PINION_CASSETTE_RECORD` names, if it is
    /// set.
    pub fn from_environment() -> (Self, Option<Notice>) {
        let (http, notice) = match recorder_from_environment() {
            None => (HttpProvider::new(), None),
            Some((_, Ok(recorder))) => (HttpProvider::recording(recorder), None),
            Some((file, Err(error))) => {
                let message = format!("{}: nothing is recorded: {error}", file.display());
                (HttpProvider::new(), Some(Notice::new(message)))
            }
        };
        let cassettes = CassetteProvider::from_environment();
        (Self { http, cassettes }, notice)
    }

    /// The provider that connects to servers.
    pub fn http(&self) -> &HttpProvider {
        &self.http
    }

    fn answering(&self, model: &Model) -> &dyn Provider {
        match model.provider.as_str() {
            offline::PROVIDER if model.api == offline::API => &OfflineProvider,
            cassette::PROVIDER => &self.cassettes,
            _ => &self.http,
        }
    }
}

impl Provider for Providers {
    fn stream(&self, request: Request) -> EventStream {
        self.answering(&request.model).stream(request)
    }
}
