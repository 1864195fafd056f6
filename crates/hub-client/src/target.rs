//! The hub that a command calls, and the token for it.

use std::path::Path;

use pinion_access::LOCAL_TOKEN;
use pinion_access::client::{CLI_VARIABLE, CLIENT, ChosenToken, Source, TokenQuery, chosen_hub};
use pinion_hub::{HubProcess, pid_file};
use pinion_status::Failure;

/// The address of a hub if the user names none and none runs in the hub's directory.
const DEFAULT_URL: &str = "http://127.0.0.1:9000";

/// The address of a hub, and the token for it.
#[derive(Debug, Clone)]
pub struct HubTarget {
    pub url: String,
    pub token: Option<ChosenToken>,
}

impl HubTarget {
    /// Chooses the hub named by `server`, the environment or `client.json` under `root`, else the hub that runs in
    /// `root`, else the default address; and the token for it: `token`, else that of the environment or of a file.
    pub fn choose(
        root: &Path,
        server: Option<&str>,
        token: Option<&str>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        let running = HubProcess::hub_at(&pid_file(root)).map(|process| process.url);
        let url = match chosen_hub(root, server, &environment)? {
            Some(url) => url,
            None => running.clone().unwrap_or_else(|| DEFAULT_URL.to_owned()),
        };
        let query = TokenQuery {
            root,
            flag: token,
            variable: CLI_VARIABLE,
            hub: &url,
            local_hub: running.as_deref(),
        };
        let token = query.choose(environment)?;
        Ok(Self { url, token })
    }

    /// Returns the variable or file that contained the token; `None` without a token or for one of a flag.
    pub fn token_source(&self, root: &Path) -> Option<String> {
        match self.token.as_ref()?.source {
            Source::Flag => None,
            Source::Variable(name) => Some(name.to_owned()),
            Source::LocalFile => Some(root.join(LOCAL_TOKEN).display().to_string()),
            Source::ClientFile => Some(root.join(CLIENT).display().to_string()),
        }
    }
}
