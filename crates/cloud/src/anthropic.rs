//! Anthropic: workload identity, which exchanges a token of another identity provider for one of Anthropic.

use std::time::Duration;

use pinion_message::{Millis, Secret, now_millis};
use pinion_oauth::{HttpOptions, post};
use serde_json::json;

use crate::Variables;
use crate::variables::read_file;

/// Anthropic's own server.
pub const SERVER: &str = "https://api.anthropic.com";
const BETAS: &str = "oauth-2025-04-20,oidc-federation-2026-04-01";
const TIMEOUT: Duration = Duration::from_secs(15);
/// Seconds of validity of a token whose answer states none.
const VALIDITY: i64 = 3600;

/// A token of a workload.
#[derive(Debug, Clone)]
pub struct WorkloadToken {
    /// The token, for the header `authorization`.
    pub token: Secret,
    /// Its end, in milliseconds since 1970.
    pub expires: Millis,
}

/// Reports whether all required variables are set.
pub fn is_configured(variables: &dyn Variables) -> bool {
    [
        "ANTHROPIC_FEDERATION_RULE_ID",
        "ANTHROPIC_ORGANIZATION_ID",
        "ANTHROPIC_IDENTITY_TOKEN_FILE",
    ]
    .iter()
    .all(|name| variables.get(name).is_some())
}

/// Exchanges the token in `ANTHROPIC_IDENTITY_TOKEN_FILE` at `server`.
///
/// # Errors
///
/// When a variable or the file is missing, or the server refuses. The error is a sentence without secrets.
pub async fn token(variables: &dyn Variables, server: &str) -> Result<WorkloadToken, String> {
    let required = |name: &str| {
        variables
            .get(name)
            .ok_or_else(|| format!("{name} is not set."))
    };
    let file = required("ANTHROPIC_IDENTITY_TOKEN_FILE")?;
    let assertion = read_file(file.clone().into()).await?;
    let assertion = assertion.ok_or_else(|| {
        format!("ANTHROPIC_IDENTITY_TOKEN_FILE names {file:?}, which does not exist.")
    })?;
    let mut body = json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": assertion.trim(),
        "federation_rule_id": required("ANTHROPIC_FEDERATION_RULE_ID")?,
        "organization_id": required("ANTHROPIC_ORGANIZATION_ID")?,
    });
    for (name, member) in [
        ("ANTHROPIC_SERVICE_ACCOUNT_ID", "service_account_id"),
        ("ANTHROPIC_WORKSPACE_ID", "workspace_id"),
    ] {
        if let Some(value) = variables.get(name) {
            body[member] = value.into();
        }
    }
    let headers = vec![("anthropic-beta".to_owned(), BETAS.to_owned())];
    let url = format!("{server}/v1/oauth/token");
    let options = HttpOptions { timeout: TIMEOUT };
    let answer = post(&url, "application/json", headers, body.to_string(), options).await?;
    let granted = answer.success().map_err(|error| {
        let error = error.replace(assertion.trim(), "***");
        format!("Anthropic refused the workload identity: {error}")
    })?;
    let Some(token) = granted["access_token"]
        .as_str()
        .filter(|token| !token.is_empty())
    else {
        return Err("Anthropic's answer has no token.".to_owned());
    };
    let seconds = granted["expires_in"].as_i64().unwrap_or(VALIDITY);
    Ok(WorkloadToken {
        token: Secret::from(token),
        expires: now_millis() + seconds.saturating_mul(1000),
    })
}
