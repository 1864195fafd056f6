//! Logins: tokens for hubs in `client.json`, and tokens for registries in `credentials.json`.

use std::fs;
use std::path::Path;

use pinion_access::Token;
use pinion_access::client::{ClientConfig, Credential, Credentials, User};
use pinion_clip::registry::{Accounts, Address, Login};
use pinion_status::{Code, Failure};

/// Creates a login with an existing token. `service`, if given, provides the user's name; it may be a hub.
pub async fn log_in_with_token(token: &str, service: Option<&Address>) -> Result<Login, Failure> {
    let token = pinion_clip::Token::new(token.trim());
    let username = match service {
        Some(service) => {
            let accounts = Accounts::at(service, Some(token.clone()))?;
            let name = accounts.name().await;
            name.map_err(|failure| refused(service, failure))?
        }
        None => String::new(),
    };
    Ok(Login {
        token,
        username,
        scope: None,
        hub: None,
    })
}

fn refused(service: &Address, failure: Failure) -> Failure {
    match failure.code {
        Code::Unauthenticated => Failure::new(
            failure.code,
            format!(
                "{service} does not accept this token ({}). It may be mistyped, expired or revoked; \
                 the owner of the hub makes another with `pinion hub token create`.",
                failure.message
            ),
        ),
        _ => failure,
    }
}

/// Stores a login in `client.json` under `root`, which is created if it does not exist.
pub fn store_login(root: &Path, login: &Login) -> Result<(), Failure> {
    let token = stored_token(root, login, "the token is empty.")?;
    let scope = login.scope.as_deref().and_then(|scope| scope.parse().ok());
    let user = (!login.username.is_empty()).then(|| User {
        username: login.username.clone(),
        scope,
    });
    ClientConfig::update(root, |config| {
        config.hub_token = Some(token);
        config.user = user;
        if let Some(hub) = &login.hub {
            config.hub = Some(hub.clone());
        }
    })
}

/// Removes the login in `client.json` under `root`. Returns false if there was none.
pub fn remove_login(root: &Path) -> Result<bool, Failure> {
    if !root.exists() {
        return Ok(false);
    }
    let mut was_there = false;
    ClientConfig::update(root, |config| {
        was_there = config.hub_token.take().is_some();
        config.user = None;
    })?;
    Ok(was_there)
}

/// Stores a login at a registry in `credentials.json` under `root`, which is created if it does not exist.
pub fn store_registry_login(
    root: &Path,
    registry: &str,
    login: &Login,
    username: &str,
) -> Result<(), Failure> {
    let token = stored_token(root, login, "the registry gave an empty token.")?;
    let username = username.to_owned();
    Credentials::set(root, registry, Some(Credential { token, username }))
}

/// Removes the login at a registry. Returns false if there was none.
pub fn remove_registry_login(root: &Path, registry: &str) -> Result<bool, Failure> {
    if Credentials::load(root)?.get(registry).is_none() {
        return Ok(false);
    }
    Credentials::set(root, registry, None)?;
    Ok(true)
}

fn stored_token(root: &Path, login: &Login, empty: &'static str) -> Result<Token, Failure> {
    fs::create_dir_all(root).map_err(|error| Failure::io(root.display(), &error))?;
    Token::given(login.token.reveal()).ok_or_else(|| Failure::new(Code::InvalidArgument, empty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_stored_and_removed() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("hub");
        assert!(!remove_login(&root).unwrap());
        let login = Login {
            token: pinion_clip::Token::new("pnx_test"),
            username: "ada".into(),
            scope: None,
            hub: Some("http://hub.example".into()),
        };
        store_login(&root, &login).unwrap();
        let config = ClientConfig::load(&root).unwrap();
        assert_eq!(config.hub.as_deref(), Some("http://hub.example"));
        assert_eq!(config.user.unwrap().username, "ada");
        assert!(remove_login(&root).unwrap());
        assert!(!remove_login(&root).unwrap());
        let registry = "https://packages.example";
        store_registry_login(&root, registry, &login, "ada").unwrap();
        assert!(remove_registry_login(&root, registry).unwrap());
        assert!(!remove_registry_login(&root, registry).unwrap());
        let login = Login {
            token: pinion_clip::Token::new(""),
            ..login
        };
        assert!(store_login(&root, &login).is_err());
    }
}
