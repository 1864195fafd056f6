//! The order in which credentials are looked for.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pinion_message::{Secret, now_millis};
use serde_json::Value;

use super::AwsCredentials;
use super::profiles::{Profiles, Section};
use super::sources::{assume_role, assume_role_with_web_identity, container, instance, sso};
use crate::variables::read_file;
use crate::{CommandRunner, Variables, parse_time};

/// The longest chain of profiles that assume a role from one another.
const MAX_PROFILES: usize = 8;
/// The region of services whose region is not configured.
pub(super) const DEFAULT_REGION: &str = "us-east-1";

/// Looks for credentials.
pub struct AwsChain<'a> {
    /// The environment, with the variables of a stored entry.
    pub variables: &'a dyn Variables,
    /// The profile that a stored entry names. It overrides keys of the environment.
    pub profile: Option<&'a str>,
    /// Runs `credential_process`.
    pub commands: Arc<dyn CommandRunner>,
}

impl std::fmt::Debug for AwsChain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AwsChain")
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

/// Reports whether the environment names any source of credentials. Files and instance metadata do not count.
pub fn is_configured(variables: &dyn Variables) -> bool {
    let has = |name: &str| variables.get(name).is_some();
    has("AWS_ACCESS_KEY_ID") && has("AWS_SECRET_ACCESS_KEY")
        || [
            "AWS_PROFILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_BEDROCK_SKIP_AUTH",
        ]
        .iter()
        .any(|name| has(name))
}

impl AwsChain<'_> {
    /// Returns the region of the profile that `AWS_PROFILE` names in the process; `None` without that variable.
    ///
    /// # Errors
    ///
    /// When the profile has no region, or its file cannot be read.
    pub async fn profile_region(&self) -> Result<Option<String>, String> {
        let named = self.variables.get("AWS_PROFILE");
        let Some(name) = named.filter(|_| self.profile.is_none()) else {
            return Ok(None);
        };
        let profiles = Profiles::read(self.variables).await?;
        let region = profiles
            .profile(&name)
            .and_then(|profile| profile.get("region"));
        match region {
            Some(region) => Ok(Some(region.clone())),
            None => Err(format!(
                "Region is missing: the AWS profile \"{name}\" has none. Set AWS_REGION, or \"region\" of the profile in \
                 ~/.aws/config."
            )),
        }
    }

    /// Returns the credentials of the first source that has any.
    ///
    /// # Errors
    ///
    /// When a source that is configured fails, or none is. The error is a sentence.
    pub async fn credentials(&self) -> Result<AwsCredentials, String> {
        let variables = self.variables;
        let value = |name: &str| variables.get(name);
        if value("AWS_BEDROCK_SKIP_AUTH").as_deref() == Some("1") {
            return Ok(AwsCredentials::new(
                "dummy-access-key",
                "dummy-secret-key",
                None,
            ));
        }
        if let Some(profile) = self.profile {
            let profiles = Profiles::read(variables).await?;
            return self.of_profile(&profiles, profile, MAX_PROFILES).await?.ok_or_else(|| {
                format!("The AWS profile \"{profile}\" has no credentials. Check ~/.aws/config and ~/.aws/credentials.")
            });
        }
        if let Some(found) = environment(variables) {
            return Ok(found);
        }
        let profiles = Profiles::read(variables).await?;
        let named = value("AWS_PROFILE");
        let profile = named.as_deref().unwrap_or("default");
        if let Some(found) = self.of_profile(&profiles, profile, MAX_PROFILES).await? {
            return Ok(found);
        }
        let web = (value("AWS_WEB_IDENTITY_TOKEN_FILE"), value("AWS_ROLE_ARN"));
        if let (Some(file), Some(role)) = web {
            let session = value("AWS_ROLE_SESSION_NAME").unwrap_or_else(session_name);
            return self.web_identity(&role, &session, file, None).await;
        }
        if let Some(found) = container(variables).await? {
            return Ok(found);
        }
        if let Some(found) = instance(variables).await? {
            return Ok(found);
        }
        Err("Could not load credentials from any providers. Set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
            .to_owned())
    }

    /// Returns the credentials of a profile; `None` if it has none or does not exist.
    fn of_profile<'b>(
        &'b self,
        profiles: &'b Profiles,
        name: &'b str,
        depth: usize,
    ) -> BoxFuture<'b, Result<Option<AwsCredentials>, String>> {
        Box::pin(async move {
            let Some(profile) = profiles.profile(name) else {
                return Ok(None);
            };
            let value = |member: &str| profile.get(member).map(String::as_str);
            if let Some(role) = value("role_arn") {
                return self.role(profiles, name, role, depth).await.map(Some);
            }
            if let Some(found) = keys(profile) {
                return Ok(Some(found));
            }
            if value("sso_account_id").is_some() {
                let session = value("sso_session").and_then(|session| profiles.session(session));
                return sso(self.variables, name, profile, session).await.map(Some);
            }
            if let Some(command) = value("credential_process") {
                let output = self.commands.run(command.to_owned()).await;
                let of_profile =
                    format!("The \"credential_process\" of the AWS profile \"{name}\"");
                let output = output.map_err(|error| format!("{of_profile} failed: {error}."))?;
                let wrong = || format!("{of_profile} printed no credentials of version 1.");
                return of_process(&output).map(Some).ok_or_else(wrong);
            }
            Ok(None)
        })
    }

    async fn role(
        &self,
        profiles: &Profiles,
        name: &str,
        role: &str,
        depth: usize,
    ) -> Result<AwsCredentials, String> {
        let profile = profiles.profile(name).cloned().unwrap_or_default();
        let value = |member: &str| profile.get(member).map(String::as_str);
        let session = value("role_session_name").map_or_else(session_name, str::to_owned);
        let region = value("region");
        if let Some(file) = value("web_identity_token_file") {
            return self
                .web_identity(role, &session, file.to_owned(), region)
                .await;
        }
        if value("mfa_serial").is_some() {
            return Err(format!(
                "The AWS profile \"{name}\" needs a code of a second factor, which pinion cannot ask for. Use a session of \
                 `aws sts` or SSO."
            ));
        }
        let source = match (value("source_profile"), value("credential_source")) {
            // A profile may be its own source if it has keys.
            (Some(source), _) if source == name => keys(&profile),
            (Some(_), _) if depth == 0 => {
                return Err(format!(
                    "The AWS profile \"{name}\" follows too many source profiles."
                ));
            }
            (Some(source), _) => self.of_profile(profiles, source, depth - 1).await?,
            (None, Some("Environment")) => environment(self.variables),
            (None, Some("EcsContainer")) => container(self.variables).await?,
            (None, Some("Ec2InstanceMetadata")) => instance(self.variables).await?,
            _ => None,
        };
        let source = source.ok_or_else(|| {
            format!("The AWS profile \"{name}\" has no source of credentials for its role.")
        })?;
        let external = value("external_id");
        assume_role(self.variables, &source, region, role, &session, external).await
    }

    async fn web_identity(
        &self,
        role: &str,
        session: &str,
        file: String,
        region: Option<&str>,
    ) -> Result<AwsCredentials, String> {
        let Some(token) = read_file(file.clone().into()).await? else {
            return Err(format!(
                "The web identity token file {file:?} does not exist."
            ));
        };
        assume_role_with_web_identity(self.variables, region, role, session, token.trim()).await
    }
}

/// The keys of the environment.
fn environment(variables: &dyn Variables) -> Option<AwsCredentials> {
    let id = variables.get("AWS_ACCESS_KEY_ID")?;
    let secret = variables.get("AWS_SECRET_ACCESS_KEY")?;
    let token = variables.get("AWS_SESSION_TOKEN");
    Some(AwsCredentials::new(&id, &secret, token.as_deref()))
}

/// The keys in a profile.
fn keys(profile: &Section) -> Option<AwsCredentials> {
    let value = |member: &str| {
        let value = profile.get(member).map(String::as_str);
        value.filter(|value| !value.is_empty())
    };
    let (id, secret) = (value("aws_access_key_id")?, value("aws_secret_access_key")?);
    Some(AwsCredentials::new(id, secret, value("aws_session_token")))
}

/// Reads the output of a `credential_process`.
fn of_process(output: &str) -> Option<AwsCredentials> {
    let output: Value = serde_json::from_str(output).ok()?;
    if output["Version"].as_i64() != Some(1) {
        return None;
    }
    let names = [
        "AccessKeyId",
        "SecretAccessKey",
        "SessionToken",
        "Expiration",
    ];
    of_json(&output, names)
}

/// Reads credentials from JSON whose members have these names: id, key, token, end.
pub(super) fn of_json(json: &Value, names: [&str; 4]) -> Option<AwsCredentials> {
    let [id, secret, token, end] = names.map(|name| &json[name]);
    let text = |value: &Value| {
        let text = value.as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    let expires = match end {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => parse_time(text),
        _ => None,
    };
    Some(AwsCredentials {
        access_key_id: text(id)?,
        secret_access_key: Secret::from(text(secret)?),
        session_token: text(token).map(Secret::from),
        expires,
    })
}

fn session_name() -> String {
    format!("pinion-{}", now_millis())
}
