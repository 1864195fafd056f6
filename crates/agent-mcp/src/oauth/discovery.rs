//! Finds the authorization server of a server: RFC 9728 for the server, RFC 8414 and OpenID Connect for its
//! authorization server.

use pinion_http::{FetchRequest, Redirect};
use pinion_oauth::{self as oauth, HttpOptions};
use serde_json::{Value, json};
use url::Url;

use crate::config::OauthSettings;

/// The addresses and abilities of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AuthorizationServer {
    /// The identity in answers of the browser; `None` if it is not known.
    pub issuer: Option<String>,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub registration_endpoint: Option<String>,
    /// The client's secret is sent in the header `Authorization`, not in the body.
    pub expects_basic: bool,
    /// The scopes that the server advertises.
    pub scopes: Vec<String>,
    /// The identity of the MCP server, which the token is for.
    pub resource: String,
}

/// Finds the authorization server of the MCP server at `url`.
pub(super) async fn discover(
    url: &str,
    settings: &OauthSettings,
) -> Result<AuthorizationServer, String> {
    let server = Url::parse(url).map_err(|error| error.to_string())?;
    let challenge = challenge(url).await;
    let resource = resource(&server, &challenge).await;
    let scopes = match &challenge.scope {
        Some(scope) => scope.split_whitespace().map(str::to_owned).collect(),
        None => texts(&resource["scopes_supported"]),
    };
    let identity = resource["resource"].as_str();
    let identity = identity.filter(|identity| covers(identity, &server));
    let identity = identity.unwrap_or(url).to_owned();
    if let Some(document) = &settings.metadata_url {
        let metadata = oauth::get(document).await?.success()?;
        return read(&metadata, identity, scopes);
    }
    let issuers = texts(&resource["authorization_servers"]);
    let issuer = issuers.into_iter().next();
    let issuer = issuer.unwrap_or_else(|| server.origin().ascii_serialization());
    for document in documents(&issuer)? {
        let Ok(answer) = oauth::get(&document).await else {
            continue;
        };
        let Ok(metadata) = answer.success() else {
            continue;
        };
        let named = metadata["issuer"].as_str().unwrap_or_default();
        if named.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err(format!(
                "{document} belongs to the issuer \"{named}\", not to \"{issuer}\""
            ));
        }
        return read(&metadata, identity, scopes);
    }
    // Servers of the first revision of the protocol have fixed addresses.
    let at = |path: &str| server.join(path).map(String::from);
    let metadata = json!({
        "authorization_endpoint": at("/authorize").map_err(|error| error.to_string())?,
        "token_endpoint": at("/token").map_err(|error| error.to_string())?,
        "registration_endpoint": at("/register").map_err(|error| error.to_string())?,
    });
    read(&metadata, identity, scopes)
}

/// The reason for which a server refuses a request without a token.
#[derive(Debug, Default, PartialEq, Eq)]
struct Challenge {
    metadata: Option<String>,
    scope: Option<String>,
}

async fn challenge(url: &str) -> Challenge {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "pinion", "version": env!("CARGO_PKG_VERSION")},
    }});
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let request = FetchRequest {
        method: "POST".into(),
        url: url.to_owned(),
        headers: headers
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        body: Some(body.to_string().into()),
        redirect: Redirect::Refuse,
    };
    match oauth::send(request, HttpOptions::default()).await {
        Ok(answer) if answer.status == 401 => {
            parse_challenge(answer.header("www-authenticate").unwrap_or_default())
        }
        _ => Challenge::default(),
    }
}

fn parse_challenge(header: &str) -> Challenge {
    let parameter = |name: &str| {
        let start = header.find(&format!("{name}=\""))? + name.len() + 2;
        let rest = header.get(start..)?;
        Some(rest.split('"').next()?.to_owned())
    };
    Challenge {
        metadata: parameter("resource_metadata"),
        scope: parameter("scope"),
    }
}

/// Returns the document in which the MCP server describes itself, or null.
async fn resource(server: &Url, challenge: &Challenge) -> Value {
    let path = server.path().trim_end_matches('/');
    let well_known = |path: &str| {
        let document = format!("/.well-known/oauth-protected-resource{path}");
        server.join(&document).map(String::from).ok()
    };
    let places = [challenge.metadata.clone(), well_known(path), well_known("")];
    for place in places.into_iter().flatten() {
        if let Ok(answer) = oauth::get(&place).await
            && let Ok(document) = answer.success()
        {
            return document;
        }
    }
    Value::Null
}

/// Reports whether a document about `identity` may speak for `server`.
fn covers(identity: &str, server: &Url) -> bool {
    Url::parse(identity).is_ok_and(|identity| {
        identity.origin() == server.origin() && server.path().starts_with(identity.path())
    })
}

/// Returns the addresses at which an issuer may describe itself.
fn documents(issuer: &str) -> Result<Vec<String>, String> {
    let issuer = Url::parse(issuer).map_err(|error| format!("{issuer}: {error}"))?;
    let path = issuer.path().trim_end_matches('/').to_owned();
    let mut documents = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        documents.push(format!("{path}/.well-known/openid-configuration"));
    }
    let documents = documents.iter().map(|document| issuer.join(document));
    documents
        .map(|document| {
            document
                .map(String::from)
                .map_err(|error| error.to_string())
        })
        .collect()
}

fn read(
    metadata: &Value,
    resource: String,
    scopes: Vec<String>,
) -> Result<AuthorizationServer, String> {
    let endpoint = |name: &str| match metadata[name].as_str() {
        None => Ok(None),
        Some(address) => secure(address).map(Some),
    };
    let required = |name: &str| {
        endpoint(name)?.ok_or_else(|| format!("the authorization server names no {name}"))
    };
    let methods = texts(&metadata["code_challenge_methods_supported"]);
    if !methods.is_empty() && !methods.iter().any(|method| method == "S256") {
        return Err("the authorization server does not support PKCE with S256".into());
    }
    let ways = texts(&metadata["token_endpoint_auth_methods_supported"]);
    let supports = |way: &str| ways.iter().any(|known| known == way);
    Ok(AuthorizationServer {
        issuer: metadata["issuer"].as_str().map(str::to_owned),
        authorization_endpoint: required("authorization_endpoint")?,
        token_endpoint: required("token_endpoint")?,
        registration_endpoint: endpoint("registration_endpoint")?,
        expects_basic: supports("client_secret_basic") && !supports("client_secret_post"),
        scopes,
        resource,
    })
}

/// Accepts an address that is encrypted, or on this machine.
fn secure(address: &str) -> Result<String, String> {
    let url = Url::parse(address).map_err(|error| format!("{address}: {error}"))?;
    let is_here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if url.scheme() == "https" || (url.scheme() == "http" && is_here) {
        Ok(address.to_owned())
    } else {
        Err(format!(
            "\"{address}\" does not begin with https://, so secrets are not sent to it"
        ))
    }
}

fn texts(value: &Value) -> Vec<String> {
    let values = value.as_array().into_iter().flatten();
    values
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_and_documents() {
        let header =
            r#"Bearer error="invalid_token", resource_metadata="https://x.example/r", scope="a b""#;
        let challenge = parse_challenge(header);
        assert_eq!(challenge.metadata.as_deref(), Some("https://x.example/r"));
        assert_eq!(challenge.scope.as_deref(), Some("a b"));
        assert_eq!(parse_challenge("Basic"), Challenge::default());
        assert_eq!(
            documents("https://x.example/tenant").unwrap(),
            [
                "https://x.example/.well-known/oauth-authorization-server/tenant",
                "https://x.example/.well-known/openid-configuration/tenant",
                "https://x.example/tenant/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn secrets_go_only_to_encrypted_addresses_and_this_machine() {
        for (address, sound) in [
            ("https://x.example/token", true),
            ("http://127.0.0.1:9/token", true),
            ("http://x.example/token", false),
            ("ftp://localhost/token", false),
        ] {
            assert_eq!(secure(address).is_ok(), sound, "{address}");
        }
        let server = Url::parse("https://x.example/a/mcp").unwrap();
        assert!(covers("https://x.example/a", &server));
        assert!(!covers("https://y.example/a", &server));
    }
}
