//! A sign-in with the user's browser.

use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_config::Dirs;
use pinion_message::Mask;
use pinion_oauth::{Callback, HttpOptions, Pkce, Verdict, post, random_text};
use serde_json::json;
use url::Url;

use super::SignInStore;
use super::discovery::{AuthorizationServer, discover};
use super::token::{self, Client};
use crate::config::{OauthSettings, ServerEntry};

/// The name of the program at authorization servers, some of which accept known clients only.
const CLIENT_NAME: &str = "pi";

/// Talks to the user during a sign-in.
pub trait SignInPrompt: Send + Sync {
    /// Shows the address to open, and opens it if possible.
    fn show(&self, url: &str);

    /// Waits for an address that the user copies from the browser, if the browser cannot reach this machine. May never
    /// end.
    fn pasted(&self) -> BoxFuture<'_, String>;
}

/// Signs in to the server of `entry` and stores the sign-in. The error is a sentence.
pub async fn sign_in(
    entry: &ServerEntry,
    dirs: &Dirs,
    mask: &Mask,
    limit: Duration,
    prompt: &dyn SignInPrompt,
) -> Result<(), String> {
    let (store, settings) = SignInStore::of(entry, dirs).ok_or(
        "a sign-in applies to servers with a \"url\" and without a header \"Authorization\"",
    )?;
    let signed_in = tokio::time::timeout(limit, flow(&store, &settings, dirs, mask, prompt)).await;
    signed_in.unwrap_or_else(|_| {
        Err(format!(
            "the sign-in was not completed within {} s",
            limit.as_secs()
        ))
    })
}

async fn flow(
    store: &SignInStore,
    settings: &OauthSettings,
    dirs: &Dirs,
    mask: &Mask,
    prompt: &dyn SignInPrompt,
) -> Result<(), String> {
    let server = discover(&store.url, settings).await?;
    let callback = open_callback(settings).await?;
    let state = store.load_beside().await.unwrap_or_default();
    let scope = settings
        .scope
        .clone()
        .unwrap_or_else(|| server.scopes.join(" "));
    let client = match &settings.client_id {
        Some(_) => token::known_client(settings, &state, &dirs.cwd).await?,
        None => None,
    };
    let client = match client {
        Some(client) => client,
        None => register(store, settings, &server, &callback.url, &scope).await?,
    };
    let pkce = Pkce::new()?;
    let expected = random_text()?;
    let mut url = Url::parse(&server.authorization_endpoint).map_err(|error| error.to_string())?;
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.id)
        .append_pair("redirect_uri", callback.url.as_str())
        .append_pair("code_challenge", &pkce.challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("state", &expected)
        .append_pair("resource", &server.resource);
    if !scope.is_empty() {
        url.query_pairs_mut().append_pair("scope", &scope);
    }
    prompt.show(url.as_str());
    let answer = tokio::select! {
        answer = callback.answer(judge) => answer?,
        pasted = prompt.pasted() => Url::parse(pasted.trim())
            .map_err(|_| "the pasted text is not an address".to_owned())?,
    };
    let code = code(&answer, &expected, server.issuer.as_deref())?;
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", callback.url.as_str()),
        ("code_verifier", pkce.verifier.as_str()),
    ];
    let tokens = token::request(&server, &client, &form).await?.success()?;
    token::save(store, tokens, mask).await
}

/// Registers a client and stores it.
async fn register(
    store: &SignInStore,
    settings: &OauthSettings,
    server: &AuthorizationServer,
    redirect: &Url,
    scope: &str,
) -> Result<Client, String> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(
            "the authorization server does not register clients; register one there and set \
                    \"oauth\": {\"clientId\": …} in mcp.json"
                .into(),
        );
    };
    let mut request = json!({
        "client_name": settings.client_name.as_deref().unwrap_or(CLIENT_NAME),
        "redirect_uris": [redirect.as_str()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    if !scope.is_empty() {
        request["scope"] = scope.into();
    }
    let answer = post(
        endpoint,
        "application/json",
        Vec::new(),
        request.to_string(),
        HttpOptions::default(),
    );
    let registered = answer.await?.success()?;
    let text = |name: &str| registered[name].as_str().map(str::to_owned);
    let client = Client {
        id: text("client_id").ok_or("the authorization server registered no client")?,
        secret: text("client_secret"),
    };
    store.save(vec![("clientInformation", registered)]).await?;
    Ok(client)
}

/// Returns the code in the browser's answer, which must belong to this sign-in.
fn code(answer: &Url, state: &str, issuer: Option<&str>) -> Result<String, String> {
    let value = |name: &str| {
        let mut pairs = answer.query_pairs();
        let found = pairs.find(|(known, _)| known == name);
        found.map(|(_, value)| value.into_owned())
    };
    if value("state").as_deref() != Some(state) {
        return Err("the answer of the browser belongs to another sign-in; try again".into());
    }
    if let (Some(named), Some(issuer)) = (value("iss"), issuer)
        && named != issuer
    {
        return Err(format!("the answer comes from the issuer \"{named}\""));
    }
    if let Some(error) = value("error") {
        let text = value("error_description").unwrap_or(error);
        let text = pinion_text::harmless_line(&text);
        return Err(format!("the sign-in was refused: {text}"));
    }
    value("code").ok_or_else(|| "the answer of the browser has no code".into())
}

/// Reports failures to the browser too; [`code`] checks the rest of its answer.
fn judge(url: &Url) -> Verdict {
    match url.query_pairs().find(|(name, _)| name == "error") {
        Some((_, error)) => Verdict::Fail(error.into_owned()),
        None => Verdict::Accept,
    }
}

/// Listens at the address that the settings require, else at a free port.
async fn open_callback(settings: &OauthSettings) -> Result<Callback, String> {
    let wanted = settings.callback_url.as_deref();
    let mut url = Url::parse(wanted.unwrap_or("http://127.0.0.1/callback"))
        .map_err(|error| error.to_string())?;
    if url.port().is_none()
        && let Some(port) = settings.callback_port
        && url.set_port(Some(port)).is_err()
    {
        return Err(format!("{url} cannot have a port"));
    }
    Callback::open(url.as_str()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_must_belong_to_the_sign_in() {
        let url = |query: &str| Url::parse(&format!("http://127.0.0.1/callback?{query}")).unwrap();
        assert_eq!(code(&url("state=s&code=c"), "s", None).as_deref(), Ok("c"));
        for (query, words) in [
            ("state=t&code=c", "another sign-in"),
            ("code=c", "another sign-in"),
            ("state=s&code=c&iss=x", "issuer \"x\""),
            ("state=s&error=access_denied", "refused: access_denied"),
            ("state=s", "has no code"),
        ] {
            let error = code(&url(query), "s", Some("y")).unwrap_err();
            assert!(error.contains(words), "{query}: {error}");
        }
    }
}
