//! The models there are, as the engine sees them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_agent::Models;
use pinion_llm::{Authorization, Provider, Providers, Registry, ScopedModel};
use pinion_message::{Mask, Model, ThinkingLevel};

/// The registry, the scope, and who answers.
pub(crate) struct Choices {
    pub registry: Arc<Registry>,
    pub scope: Vec<ScopedModel>,
    providers: Arc<Providers>,
    /// Learns every key that is used.
    mask: Mask,
}

impl Choices {
    pub fn new(registry: Arc<Registry>, scope: Vec<ScopedModel>, mask: Mask) -> Self {
        for key in registry.known_keys() {
            mask.learn(&key);
        }
        let (providers, notice) = Providers::from_environment();
        if let Some(notice) = notice {
            eprintln!("Warning: {notice}");
        }
        Self {
            registry,
            scope,
            providers: Arc::new(providers),
            mask,
        }
    }
}

impl Models for Choices {
    fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        self.registry
            .find(provider, id)
            .filter(|model| self.registry.has_credentials(&model.provider))
    }

    fn available(&self) -> Vec<Arc<Model>> {
        self.registry.available()
    }

    fn scoped(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)> {
        self.scope
            .iter()
            .filter(|scoped| self.registry.has_credentials(&scoped.model.provider))
            .map(|scoped| (Arc::clone(&scoped.model), scoped.thinking))
            .collect()
    }

    fn access(&self, model: &Model) -> BoxFuture<'static, Result<Authorization, String>> {
        let registry = Arc::clone(&self.registry);
        let mask = self.mask.clone();
        let model = model.clone();
        Box::pin(async move {
            let authorization = registry
                .authorize(&model)
                .await
                .map_err(|error| error.to_string())?;
            for secret in authorization
                .api_key
                .iter()
                .chain(authorization.headers.values())
            {
                mask.learn(secret);
            }
            Ok(authorization)
        })
    }

    fn provider(&self, _model: &Model) -> Arc<dyn Provider> {
        Arc::clone(&self.providers) as Arc<dyn Provider>
    }

    fn check_credentials(&self, model: &Model) -> Result<(), String> {
        self.registry
            .check_credentials(model)
            .map_err(|error| error.to_string())
    }
}
