//! Sign-ins to servers at a URL: OAuth 2.1 with PKCE, discovery of the authorization server and registration of a client.
//!
//! Sign-ins are stored in `mcp-auth.json` in the agent directory, by name and URL of the server, in the form that pi
//! uses: a sign-in with one of them is valid for the other. A connection never starts a sign-in; it renews an expired
//! token, or fails with the command that signs in.

mod discovery;
mod sign_in;
mod token;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pinion_config::{ConfigError, Dirs, read_json_file, update_json_file};
use pinion_message::{Mask, Secret, now_millis};
use pinion_status::{Code, Failure};
use pinion_tools::run_blocking;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

pub use self::sign_in::{SignInPrompt, sign_in};
use crate::config::{OauthSettings, ServerEntry, ServerTarget};
use crate::names;

/// A token that expires within this time is renewed before it is used, in milliseconds.
const EXPIRY_MARGIN: i64 = 60_000;
/// Time to wait for another process that renews a token.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// The stored sign-in of a server at a URL.
#[derive(Debug, Clone)]
pub(crate) struct SignInStore {
    file: PathBuf,
    key: String,
    url: String,
}

impl SignInStore {
    /// Returns the place of the sign-in of `entry`; `None` for a program, or if its headers authorize it.
    pub fn of(entry: &ServerEntry, dirs: &Dirs) -> Option<(Self, OauthSettings)> {
        let ServerTarget::Http {
            url,
            headers,
            oauth,
        } = &entry.config.target
        else {
            return None;
        };
        let authorizes = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        if headers.iter().any(authorizes) {
            return None;
        }
        let canonical = url::Url::parse(url).map_or_else(|_| url.clone(), |url| url.to_string());
        let store = Self {
            file: dirs.agent_dir.join("mcp-auth.json"),
            key: format!("{}|{canonical}", names::namespace(&entry.name)),
            url: url.clone(),
        };
        Some((store, oauth.clone()))
    }

    /// Reads the sign-in. Blocks on the file.
    fn load(&self) -> Option<Value> {
        let mut all = read_json_file(&self.file, &mut Vec::new());
        all.shift_remove(&self.key).filter(Value::is_object)
    }

    async fn load_beside(&self) -> Option<Value> {
        let store = self.clone();
        let loaded = run_blocking(&CancellationToken::new(), move || store.load()).await;
        loaded.ok().flatten()
    }

    /// Changes members of the sign-in. Blocks on the file.
    fn change(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), ConfigError> {
        update_json_file(&self.file, |all| {
            let state = all.entry(self.key.clone()).or_insert_with(Value::default);
            if !state.is_object() {
                *state = Value::Object(Map::new());
            }
            if let Some(state) = state.as_object_mut() {
                state.insert("serverUrl".into(), self.url.clone().into());
                change(state);
            }
        })
    }

    async fn save(&self, members: Vec<(&'static str, Value)>) -> Result<(), String> {
        let store = self.clone();
        let save = move || {
            store.change(|state| {
                for (name, value) in members {
                    state.insert(name.to_owned(), value);
                }
            })
        };
        let saved = run_blocking(&CancellationToken::new(), save).await;
        let saved = saved.map_err(|error| error.to_string())?;
        saved.map_err(|error| error.to_string())
    }

    fn lock_file(&self) -> PathBuf {
        self.file.with_extension("lock")
    }
}

/// Deletes the sign-in of a server. Returns `false` if there is none. Blocks on the file.
pub fn sign_out(entry: &ServerEntry, dirs: &Dirs) -> Result<bool, ConfigError> {
    let Some((store, _)) = SignInStore::of(entry, dirs) else {
        return Ok(false);
    };
    if store.file.symlink_metadata().is_err() {
        return Ok(false);
    }
    let mut removed = false;
    update_json_file(&store.file, |all| {
        removed = all.shift_remove(&store.key).is_some();
    })?;
    Ok(removed)
}

/// The token that a connection sends.
pub(crate) struct Credentials {
    name: String,
    place: Option<(SignInStore, OauthSettings)>,
    cwd: PathBuf,
    mask: Mask,
    /// Held while a token is renewed: servers accept each refresh token once.
    renewing: tokio::sync::Mutex<()>,
}

impl Credentials {
    pub fn new(entry: &ServerEntry, dirs: &Dirs, mask: Mask) -> Self {
        Self {
            name: entry.name.clone(),
            place: SignInStore::of(entry, dirs),
            cwd: dirs.cwd.clone(),
            mask,
            renewing: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the stored access token, renewed if it is about to expire.
    pub async fn access_token(&self) -> Option<String> {
        let (store, _) = self.place.as_ref()?;
        let state = store.load_beside().await?;
        let expires = state["tokensExpireAt"].as_i64();
        if expires.is_some_and(|at| at < now_millis() + EXPIRY_MARGIN)
            && let Ok(true) = self.renew().await
        {
            let state = store.load_beside().await?;
            return self.token_of(&state);
        }
        self.token_of(&state)
    }

    fn token_of(&self, state: &Value) -> Option<String> {
        let token = state["tokens"]["access_token"].as_str()?.to_owned();
        self.mask.learn(&Secret::from(token.clone()));
        Some(token)
    }

    /// Renews the access token. Returns `false` if that needs the user.
    pub async fn renew(&self) -> Result<bool, Failure> {
        let Some((store, settings)) = &self.place else {
            return Ok(false);
        };
        let Some(before) = store.load_beside().await else {
            return Ok(false);
        };
        let _alone = self.renewing.lock().await;
        let lock = store.lock_file();
        let locked = run_blocking(&CancellationToken::new(), move || lock_out(&lock)).await;
        let _locked = locked.ok().and_then(Result::ok);
        let Some(state) = store.load_beside().await else {
            return Ok(false);
        };
        // Another connection has renewed the token, or the user has signed in.
        if state["tokens"]["access_token"] != before["tokens"]["access_token"] {
            return Ok(true);
        }
        if !state["tokens"]["refresh_token"].is_string() {
            return Ok(false);
        }
        let renewed = token::renew(store, settings, &state, &self.cwd, &self.mask).await;
        renewed.map_err(|message| {
            let message = format!(
                "MCP server \"{}\": its sign-in could not be renewed: {message}",
                self.name
            );
            Failure::new(Code::Unauthenticated, message)
        })
    }

    /// Adds the command that signs in to the failure of a refused connection.
    pub fn sign_in_required(&self, failure: Failure) -> Failure {
        if self.place.is_none() || failure.code != Code::Unauthenticated {
            return failure;
        }
        let name = &self.name;
        let message =
            format!("MCP server \"{name}\" requires a sign-in: run `pinion mcp login {name}`");
        Failure::new(Code::Unauthenticated, message)
    }
}

fn lock_out(path: &Path) -> std::io::Result<std::fs::File> {
    pinion_files::lock(path, LOCK_TIMEOUT)
}
