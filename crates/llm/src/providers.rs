//! Everyone who answers, behind one door: the model says who is meant.

use pinion_message::Model;

use crate::cassette::{self, CassetteProvider, recorder_from_environment};
use crate::offline::{self, OfflineProvider};
use crate::{EventStream, HttpProvider, Notice, Provider, Request};

/// Asks whoever answers for the model of a request: the offline model, a cassette, or a server.
///
/// Cheap to make; connections are shared by clones and made when first needed.
#[derive(Debug, Clone, Default)]
pub struct Providers {
    http: HttpProvider,
    cassettes: CassetteProvider,
}

impl Providers {
    /// The providers, recording to the cassette that `PINION_CASSETTE_RECORD` names, if it does.
    pub fn from_environment() -> (Self, Option<Notice>) {
        let (http, notice) = match recorder_from_environment() {
            None => (HttpProvider::new(), None),
            Some((_, Ok(recorder))) => (HttpProvider::recording(recorder), None),
            Some((file, Err(error))) => {
                let words = format!("{}: nothing is recorded: {error}", file.display());
                (HttpProvider::new(), Some(Notice::new(words)))
            }
        };
        let cassettes = CassetteProvider::from_environment();
        (Self { http, cassettes }, notice)
    }

    /// The one that reaches servers.
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
