//! The available models, as the engine sees them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_agent::Models;
use pinion_llm::{Authorization, Provider, Registry, ScopedModel};
use pinion_message::{Mask, Model, ThinkingLevel};

use crate::extensions::ProgramServices;

/// Returns the key and the headers of a request to `model`, and adds them to `mask`, so that they are never written.
pub(crate) async fn authorize(
    registry: &Registry,
    mask: &Mask,
    model: &Model,
) -> Result<Authorization, String> {
    let authorization = registry.authorize(model).await;
    let authorization = authorization.map_err(|error| error.to_string())?;
    authorization
        .all_secrets()
        .for_each(|secret| mask.learn(secret));
    Ok(authorization)
}

/// The models from which a session can choose.
pub(crate) struct Choices {
    services: Arc<ProgramServices>,
    pub scope: Vec<ScopedModel>,
    /// Receives every key that is used.
    mask: Mask,
}

impl Choices {
    pub fn new(services: Arc<ProgramServices>, scope: Vec<ScopedModel>, mask: Mask) -> Self {
        Self {
            services,
            scope,
            mask,
        }
    }
}

impl Models for Choices {
    fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let registry = self.services.registry();
        registry
            .find(provider, id)
            .filter(|model| registry.has_credentials(&model.provider))
    }

    fn available(&self) -> Vec<Arc<Model>> {
        self.services.registry().available()
    }

    fn scoped(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)> {
        let registry = self.services.registry();
        self.scope
            .iter()
            .filter(|scoped| registry.has_credentials(&scoped.model.provider))
            .map(|scoped| (Arc::clone(&scoped.model), scoped.thinking))
            .collect()
    }

    fn access(&self, model: &Model) -> BoxFuture<'static, Result<Authorization, String>> {
        let registry = self.services.registry();
        let mask = self.mask.clone();
        let model = model.clone();
        Box::pin(async move { authorize(&registry, &mask, &model).await })
    }

    fn provider(&self, _model: &Model) -> Arc<dyn Provider> {
        self.services.router()
    }

    fn check_credentials(&self, model: &Model) -> Result<(), String> {
        self.services
            .registry()
            .check_credentials(model)
            .map_err(|error| error.to_string())
    }
}
