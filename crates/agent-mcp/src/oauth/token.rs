//! Requests tokens, and stores them.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pinion_message::{Mask, Secret, now_millis};
use pinion_oauth::{Answer, HttpOptions, post};
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::SignInStore;
use super::discovery::{AuthorizationServer, discover};
use crate::config::OauthSettings;
use crate::values;

/// A client of the authorization server.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub id: String,
    pub secret: Option<String>,
}

/// Renews the tokens in `state`. Returns `false` if the authorization server requires a new sign-in.
pub(super) async fn renew(
    store: &SignInStore,
    settings: &OauthSettings,
    state: &Value,
    cwd: &Path,
    mask: &Mask,
) -> Result<bool, String> {
    let server = discover(&store.url, settings).await?;
    let Some(client) = known_client(settings, state, cwd).await? else {
        return Ok(false);
    };
    let refresh = state["tokens"]["refresh_token"]
        .as_str()
        .unwrap_or_default();
    let form = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
    let answer = request(&server, &client, &form).await?;
    if answer.status == 400 || answer.status == 401 {
        return Ok(false);
    }
    let mut tokens = answer.success()?;
    // A server that does not rotate the refresh token leaves it out.
    if tokens["refresh_token"].is_null() {
        tokens["refresh_token"] = refresh.into();
    }
    save(store, tokens, mask).await?;
    Ok(true)
}

/// Returns the configured or the registered client.
pub(super) async fn known_client(
    settings: &OauthSettings,
    state: &Value,
    cwd: &Path,
) -> Result<Option<Client>, String> {
    if let Some(id) = &settings.client_id {
        let secret = match &settings.client_secret {
            Some(text) => Some(values::resolve(text, cwd).await?),
            None => None,
        };
        let id = id.clone();
        return Ok(Some(Client { id, secret }));
    }
    let known = &state["clientInformation"];
    let text = |name: &str| known[name].as_str().map(str::to_owned);
    Ok(text("client_id").map(|id| Client {
        id,
        secret: text("client_secret"),
    }))
}

/// Posts a form to the token endpoint.
pub(super) async fn request(
    server: &AuthorizationServer,
    client: &Client,
    form: &[(&str, &str)],
) -> Result<Answer, String> {
    let mut pairs = form.to_vec();
    pairs.push(("resource", &server.resource));
    let mut headers = Vec::new();
    match &client.secret {
        Some(secret) if server.expects_basic => {
            let encoded = |text: &str| -> String {
                url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
            };
            let pair = STANDARD.encode(format!("{}:{}", encoded(&client.id), encoded(secret)));
            headers.push(("authorization".to_owned(), format!("Basic {pair}")));
        }
        secret => {
            pairs.push(("client_id", &client.id));
            if let Some(secret) = secret {
                pairs.push(("client_secret", secret));
            }
        }
    }
    let body = Serializer::new(String::new()).extend_pairs(pairs).finish();
    let kind = "application/x-www-form-urlencoded";
    post(
        &server.token_endpoint,
        kind,
        headers,
        body,
        HttpOptions::default(),
    )
    .await
}

/// Stores tokens as the authorization server sent them.
pub(super) async fn save(store: &SignInStore, tokens: Value, mask: &Mask) -> Result<(), String> {
    for name in ["access_token", "refresh_token"] {
        match tokens[name].as_str() {
            Some(token) => mask.learn(&Secret::from(token.to_owned())),
            None if name == "access_token" => {
                return Err("the authorization server sent no access token".into());
            }
            None => {}
        }
    }
    let seconds = tokens["expires_in"].as_i64();
    let expires = seconds.map_or(Value::Null, |seconds| {
        json!(now_millis().saturating_add(seconds.saturating_mul(1000)))
    });
    let members = vec![("tokens", tokens), ("tokensExpireAt", expires)];
    store.save(members).await
}
