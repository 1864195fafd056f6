//! Google: application default credentials.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use pinion_http::{FetchRequest, Redirect, Url};
use pinion_message::{Millis, Secret, now_millis};
use pinion_oauth::{Answer, HttpOptions, send};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use crate::variables::{in_home, read_file};
use crate::{Timestamp, Variables, parse_time};

const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const METADATA_HOST: &str = "metadata.google.internal";
/// Seconds of validity of an assertion and of a token whose answer states none.
const VALIDITY: i64 = 3600;
const TIMEOUT: Duration = Duration::from_secs(15);
const METADATA_TIMEOUT: Duration = Duration::from_secs(2);

/// A token for Google's services.
#[derive(Debug, Clone)]
pub struct GoogleToken {
    /// The token.
    pub token: Secret,
    /// Its end, in milliseconds since 1970.
    pub expires: Millis,
    /// The project that is charged, if the credentials name one.
    pub quota_project: Option<String>,
}

/// Returns the file of the credentials, whether or not it exists.
pub fn credentials_file(variables: &dyn Variables) -> Option<PathBuf> {
    let named = variables
        .get("GOOGLE_APPLICATION_CREDENTIALS")
        .map(PathBuf::from);
    named.or_else(|| {
        in_home(
            variables,
            ".config/gcloud/application_default_credentials.json",
        )
    })
}

/// Returns the project; `None` if no variable names one.
pub fn project(variables: &dyn Variables) -> Option<String> {
    variables
        .get("GOOGLE_CLOUD_PROJECT")
        .or_else(|| variables.get("GCLOUD_PROJECT"))
}

/// Returns the location; `None` if no variable names one.
pub fn location(variables: &dyn Variables) -> Option<String> {
    variables.get("GOOGLE_CLOUD_LOCATION")
}

/// Reports whether the file of credentials, the project and the location are configured.
pub fn is_configured(variables: &dyn Variables) -> bool {
    project(variables).is_some()
        && location(variables).is_some()
        && credentials_file(variables).is_some_and(|file| file.exists())
}

/// Requests a token with the application default credentials.
///
/// # Errors
///
/// When there are none or Google refuses them. The error is a sentence without secrets.
pub async fn token(variables: &dyn Variables) -> Result<GoogleToken, String> {
    let file = credentials_file(variables);
    let text = match &file {
        Some(path) => read_file(path.clone()).await?,
        None => None,
    };
    let Some(text) = text else {
        if variables.get("GOOGLE_APPLICATION_CREDENTIALS").is_some() {
            let path = file.unwrap_or_default();
            return Err(format!(
                "GOOGLE_APPLICATION_CREDENTIALS names {path:?}, which does not exist."
            ));
        }
        return metadata(variables).await;
    };
    let shown = file.unwrap_or_default().display().to_string();
    let credentials: Value =
        serde_json::from_str(&text).map_err(|_| format!("{shown} is not JSON."))?;
    of_credentials(&credentials, &shown).await
}

async fn of_credentials(credentials: &Value, file: &str) -> Result<GoogleToken, String> {
    match credentials["type"].as_str().unwrap_or_default() {
        "authorized_user" => {
            let text = |name: &str| required(credentials, name, file);
            let form = [
                ("refresh_token", text("refresh_token")?),
                ("client_id", text("client_id")?),
                ("client_secret", text("client_secret")?),
                ("grant_type", "refresh_token"),
            ];
            exchange(credentials, &form, file).await
        }
        "service_account" => {
            let assertion = assertion(credentials, file)?;
            let form = [
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                ("assertion", assertion.as_str()),
            ];
            exchange(credentials, &form, file).await
        }
        "impersonated_service_account" => impersonate(credentials, file).await,
        other => Err(format!(
            "{file} has credentials of the type {other:?}, which pinion does not support. Use authorized_user (run: gcloud \
             auth application-default login), service_account, or a key in GOOGLE_CLOUD_API_KEY."
        )),
    }
}

fn required<'a>(credentials: &'a Value, name: &str, file: &str) -> Result<&'a str, String> {
    let value = credentials[name].as_str().filter(|value| !value.is_empty());
    value.ok_or_else(|| format!("{file} has no \"{name}\"."))
}

/// Returns the address for tokens: that of the file, if secrets may be sent to it.
fn token_url(credentials: &Value) -> Result<String, String> {
    let Some(address) = credentials["token_uri"].as_str() else {
        return Ok(TOKEN_URL.to_owned());
    };
    secure(address)
}

fn secure(address: &str) -> Result<String, String> {
    let url = Url::parse(address).map_err(|_| format!("{address:?} is not a URL."))?;
    if url.scheme() == "https" || pinion_http::is_loopback(&url) {
        return Ok(address.to_owned());
    }
    Err(format!(
        "{address:?} does not begin with https://, so no credentials are sent to it."
    ))
}

/// Signs the claims of a service account.
fn assertion(credentials: &Value, file: &str) -> Result<String, String> {
    let wrong = || format!("The \"private_key\" in {file} is not an RSA key in PEM.");
    let pem = required(credentials, "private_key", file)?;
    let key: String = pem
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let key = STANDARD.decode(key.trim()).map_err(|_| wrong())?;
    let key = RsaKeyPair::from_pkcs8(&key).map_err(|_| wrong())?;
    let Timestamp(now) = Timestamp::now();
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if let Some(id) = credentials["private_key_id"].as_str() {
        header["kid"] = id.into();
    }
    let claims = json!({
        "iss": required(credentials, "client_email", file)?,
        "scope": SCOPE,
        "aud": token_url(credentials)?,
        "exp": now + VALIDITY,
        "iat": now,
    });
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encoded(&header), encoded(&claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        signed.as_bytes(),
        &mut signature,
    )
    .map_err(|_| wrong())?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

async fn exchange(
    credentials: &Value,
    form: &[(&str, &str)],
    file: &str,
) -> Result<GoogleToken, String> {
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let kind = "application/x-www-form-urlencoded";
    let answer = post(&token_url(credentials)?, kind, Vec::new(), body).await?;
    if !answer.is_success() {
        let (code, reason) = (answer.error_code(), answer.reason());
        let status = answer.status;
        return Err(format!(
            "Google refused the credentials in {file}: {code} (HTTP {status}): {reason}. Run: gcloud auth \
             application-default login"
        ));
    }
    let granted = answer.json().unwrap_or_default();
    let seconds = granted["expires_in"].as_i64().unwrap_or(VALIDITY);
    let token = granted["access_token"].as_str();
    found(
        token,
        now_millis() + seconds.saturating_mul(1000),
        credentials,
    )
}

/// Requests a token of another service account.
async fn impersonate(credentials: &Value, file: &str) -> Result<GoogleToken, String> {
    let url = secure(required(
        credentials,
        "service_account_impersonation_url",
        file,
    )?)?;
    let source = &credentials["source_credentials"];
    if source["type"] == "impersonated_service_account" {
        return Err(format!(
            "{file} impersonates an account that impersonates another one."
        ));
    }
    let source = Box::pin(of_credentials(source, file)).await?;
    use secrecy::ExposeSecret;
    let bearer = format!("Bearer {}", source.token.expose_secret());
    let body = json!({
        "scope": [SCOPE],
        "lifetime": format!("{VALIDITY}s"),
        "delegates": credentials.get("delegates").cloned().unwrap_or(json!([])),
    });
    let headers = vec![("authorization".to_owned(), bearer)];
    let answer = post(&url, "application/json", headers, body.to_string()).await?;
    let granted = answer
        .success()
        .map_err(|error| format!("Google did not permit the impersonation in {file}: {error}"))?;
    let expires = granted["expireTime"].as_str().and_then(parse_time);
    let expires = expires.unwrap_or_else(|| now_millis() + VALIDITY * 1000);
    found(granted["accessToken"].as_str(), expires, credentials)
}

/// Requests a token of the service account of this machine.
async fn metadata(variables: &dyn Variables) -> Result<GoogleToken, String> {
    let host = variables
        .get("GCE_METADATA_HOST")
        .unwrap_or_else(|| METADATA_HOST.to_owned());
    let request = FetchRequest {
        method: "GET".to_owned(),
        url: format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token"),
        headers: vec![("metadata-flavor".to_owned(), "Google".to_owned())],
        body: None,
        redirect: Redirect::Refuse,
    };
    let options = HttpOptions {
        timeout: METADATA_TIMEOUT,
    };
    let granted = send(request, options)
        .await
        .and_then(|answer| answer.success());
    let granted = granted.map_err(|_| {
        "There are no application default credentials of Google. Run: gcloud auth application-default login; or set \
         GOOGLE_APPLICATION_CREDENTIALS, or GOOGLE_CLOUD_API_KEY."
            .to_owned()
    })?;
    let seconds = granted["expires_in"].as_i64().unwrap_or(VALIDITY);
    let expires = now_millis() + seconds.saturating_mul(1000);
    found(granted["access_token"].as_str(), expires, &Value::Null)
}

fn found(token: Option<&str>, expires: Millis, credentials: &Value) -> Result<GoogleToken, String> {
    let Some(token) = token.filter(|token| !token.is_empty()) else {
        return Err("Google's answer has no token.".to_owned());
    };
    Ok(GoogleToken {
        token: Secret::from(token),
        expires,
        quota_project: credentials["quota_project_id"].as_str().map(str::to_owned),
    })
}

async fn post(
    url: &str,
    kind: &str,
    headers: Vec<(String, String)>,
    body: String,
) -> Result<Answer, String> {
    pinion_oauth::post(url, kind, headers, body, HttpOptions { timeout: TIMEOUT }).await
}
