//! The identities of clouds, fetched when a request needs one and kept until shortly before they end.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_cloud::aws::AwsChain;
use pinion_cloud::{CommandRunner, anthropic, google};
use pinion_message::{Mask, Millis, Model, Secret, now_millis};
use secrecy::ExposeSecret;
use tokio::sync::Mutex;

use super::auth_file::Stored;
use super::command::CommandCache;
use super::{CredentialError, Credentials, Granted};
use crate::identity::CloudIdentity;

/// Milliseconds before its end at which an identity is fetched again.
const MARGIN: Millis = 5 * 60 * 1000;
/// Milliseconds for which an identity without an end is kept: files may change.
const LONGEST: Millis = 15 * 60 * 1000;
/// Texts of a key that stand for none, as in the documents of some tools.
const PLACEHOLDER_KEY: &str = "gcp-vertex-credentials";

/// The identities that were fetched, by source. The lock is held while one is fetched, so that requests at the same time
/// share it.
#[derive(Default)]
pub(super) struct Identities(Mutex<HashMap<String, Kept>>);

#[derive(Clone)]
struct Kept {
    key: Option<Secret>,
    identity: CloudIdentity,
    until: Millis,
}

impl CommandRunner for CommandCache {
    fn run(&self, command: String) -> BoxFuture<'_, Result<String, String>> {
        // Its output expires, so it is never taken from the cache.
        Box::pin(async move {
            let output = super::command::run_now(&command).await?;
            Ok(output.expose_secret().to_owned())
        })
    }
}

impl Credentials {
    /// Adds the identity of a cloud to a request, if its API needs one.
    pub(super) async fn add_identity(
        &self,
        model: &Model,
        granted: &mut Granted,
    ) -> Result<(), CredentialError> {
        match (model.api.as_str(), model.provider.as_str()) {
            ("bedrock-converse-stream", _) => self.add_aws(model, granted).await,
            ("google-vertex", _) => self.add_google(model, granted).await,
            (_, "anthropic") if granted.key.is_none() => self.add_anthropic(granted).await,
            _ => Ok(()),
        }
    }

    async fn add_aws(&self, model: &Model, granted: &mut Granted) -> Result<(), CredentialError> {
        let provider = model.provider.as_str();
        let environment = self.environment(provider);
        let variables = |name: &str| environment.get(name);
        let entry = self.auth.entries();
        let stored_profile = match entry.get(provider) {
            Some(Stored::ApiKey { env, .. }) => env.get("AWS_PROFILE"),
            _ => None,
        };
        let profile = stored_profile.map(ExposeSecret::expose_secret);
        let commands: Arc<CommandCache> = Arc::clone(&self.commands);
        let chain = AwsChain {
            variables: &variables,
            profile,
            commands,
        };
        let has_key = granted.key.is_some();
        let named_region = ["AWS_REGION", "AWS_DEFAULT_REGION"]
            .iter()
            .any(|name| environment.get(name).is_some());
        let fetch = async {
            // A bearer token needs the region of a profile only for the address.
            let profile_region = match chain.profile_region().await {
                Ok(region) => region,
                Err(_) if named_region || model.id.starts_with("arn:") => None,
                Err(error) => return Err(error),
            };
            let keys = if has_key {
                None
            } else {
                Some(chain.credentials().await?)
            };
            let until = keys.as_ref().and_then(|keys| keys.expires);
            let identity = CloudIdentity::Aws {
                keys,
                profile_region,
            };
            Ok((None, identity, until))
        };
        let sources = ["AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN"];
        let sources = sources.map(|name| environment.get(name).unwrap_or_default());
        let name = format!("aws {has_key} {profile:?} {sources:?}");
        self.fetched(provider, name, granted, fetch).await
    }

    async fn add_google(
        &self,
        model: &Model,
        granted: &mut Granted,
    ) -> Result<(), CredentialError> {
        let key = granted.key.as_ref().map(ExposeSecret::expose_secret);
        let is_placeholder =
            |key: &str| key == PLACEHOLDER_KEY || key.starts_with('<') && key.ends_with('>');
        if key.is_some_and(|key| !is_placeholder(key)) {
            return Ok(());
        }
        granted.key = None;
        let environment = self.environment(&model.provider);
        let variables = |name: &str| environment.get(name);
        let file = google::credentials_file(&variables);
        let fetch = async {
            let token = google::token(&variables).await?;
            let identity = CloudIdentity::Google {
                token: token.token,
                quota_project: token.quota_project,
            };
            Ok((None, identity, Some(token.expires)))
        };
        self.fetched(&model.provider, format!("google {file:?}"), granted, fetch)
            .await
    }

    async fn add_anthropic(&self, granted: &mut Granted) -> Result<(), CredentialError> {
        let environment = self.environment("anthropic");
        let variables = |name: &str| environment.get(name);
        if let Some(token) = variables("ANTHROPIC_AUTH_TOKEN") {
            let bearer = Secret::from(format!("Bearer {token}"));
            granted.headers.insert("Authorization".to_owned(), bearer);
            granted.secrets.push(Secret::from(token));
            return Ok(());
        }
        if !anthropic::is_configured(&variables) {
            return Ok(());
        }
        let file = variables("ANTHROPIC_IDENTITY_TOKEN_FILE");
        let fetch = async {
            let token = anthropic::token(&variables, anthropic::SERVER).await?;
            Ok((
                Some(token.token),
                CloudIdentity::Workload,
                Some(token.expires),
            ))
        };
        self.fetched("anthropic", format!("anthropic {file:?}"), granted, fetch)
            .await
    }

    /// Adds the identity that is kept under `name`, or the result of `fetch`.
    async fn fetched(
        &self,
        provider: &str,
        name: String,
        granted: &mut Granted,
        fetch: impl Future<Output = Result<(Option<Secret>, CloudIdentity, Option<Millis>), String>>,
    ) -> Result<(), CredentialError> {
        let now = now_millis();
        let mut identities = self.identities.0.lock().await;
        let kept = match identities.get(&name).filter(|kept| kept.until > now) {
            Some(kept) => kept.clone(),
            None => {
                let fetched = fetch.await.map_err(|reason| CredentialError::Identity {
                    provider: provider.to_owned(),
                    reason,
                })?;
                let (key, identity, end) = fetched;
                let end = end.map_or(now + LONGEST, |end| end.saturating_sub(MARGIN));
                let kept = Kept {
                    key,
                    identity,
                    until: end,
                };
                identities.insert(name, kept.clone());
                kept
            }
        };
        drop(identities);
        for secret in secrets_of(&kept) {
            Mask::of_process().learn(&secret);
            granted.secrets.push(secret);
        }
        if kept.key.is_some() {
            granted.key = kept.key;
        }
        granted.identity = Some(kept.identity);
        Ok(())
    }
}

fn secrets_of(kept: &Kept) -> Vec<Secret> {
    let mut secrets: Vec<Secret> = kept.key.iter().cloned().collect();
    secrets.extend(kept.identity.secrets());
    secrets
}
