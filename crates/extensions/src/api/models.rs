//! Models and their credentials, as extensions see them.

use std::sync::Arc;

use pinion_agent::{Answer, Command, EngineError};
use pinion_message::Model;
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

use super::bridge::{text, value};
use super::extensions::Inner;

impl Inner {
    pub(super) fn models(&self, which: &str) -> Vec<Value> {
        let services = &self.options.services;
        let models = match which {
            "available" => services.available_models(),
            _ => services.all_models(),
        };
        models.iter().map(|model| json!(**model)).collect()
    }

    /// Returns the models to which the session is limited, each with its thinking level if it has one.
    pub(super) fn scoped_models(&self) -> Vec<Value> {
        let scoped = self.options.services.scoped_models().into_iter();
        let described = scoped.map(|(model, level)| match level {
            None => json!({"model": *model}),
            Some(level) => json!({"model": *model, "thinkingLevel": level}),
        });
        described.collect()
    }

    /// Returns the model that `{provider, id}` names.
    pub(super) fn model(&self, reference: &Value) -> Option<Arc<Model>> {
        let provider = reference["provider"].as_str()?;
        self.options
            .services
            .find_model(provider, reference["id"].as_str()?)
    }

    /// Returns `{ok, apiKey?, headers?}` or `{ok, error}`.
    pub(super) async fn access(&self, arguments: &[Value]) -> Value {
        let reference = value(arguments, 0);
        let Some(model) = self.model(reference) else {
            let provider = reference["provider"].as_str().unwrap_or_default();
            return json!({"ok": false, "error": format!("No API key found for \"{provider}\"")});
        };
        match self.options.services.access(&model).await {
            // A provider without configured credentials is treated as one that needs no key; that is not an error.
            Err(_) if !self.options.services.has_credentials(&model.provider) => {
                json!({"ok": true})
            }
            Err(error) => json!({"ok": false, "error": error}),
            Ok(granted) => {
                let mut answer = Map::new();
                answer.insert("ok".into(), true.into());
                if let Some(key) = &granted.api_key {
                    answer.insert("apiKey".into(), key.expose_secret().into());
                }
                if !granted.headers.is_empty() {
                    let headers = granted.headers.iter();
                    let headers: Map<String, Value> = headers
                        .map(|(name, value)| (name.clone(), value.expose_secret().into()))
                        .collect();
                    answer.insert("headers".into(), headers.into());
                }
                Value::Object(answer)
            }
        }
    }

    /// Returns the key of a provider, if it has one.
    pub(super) async fn provider_key(&self, arguments: &[Value]) -> Value {
        let provider = text(arguments, 0);
        let models = self.options.services.all_models();
        let Some(model) = models.iter().find(|model| model.provider == provider) else {
            return Value::Null;
        };
        let granted = self.options.services.access(model).await.ok();
        let key = granted.and_then(|granted| granted.api_key);
        key.map_or(Value::Null, |key| key.expose_secret().into())
    }

    /// Switches the session to a model. Returns false if the model has no credentials.
    pub(super) async fn choose_model(&self, arguments: &[Value]) -> Result<Value, String> {
        let reference = value(arguments, 0);
        let member = |name: &str| reference[name].as_str().unwrap_or_default().to_owned();
        let desk = self.desk().ok_or("The session has not begun.")?;
        let command = Command::SetModel {
            provider: member("provider"),
            id: member("id"),
        };
        match desk.ask(command).await {
            Ok(Answer::Model(_) | Answer::Done) => Ok(true.into()),
            Ok(_) | Err(EngineError::NoKeyForModel { .. } | EngineError::ModelNotFound { .. }) => {
                Ok(false.into())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}
