//! Which token to show a hub: a flag beats the environment beats a file.

use std::path::Path;

use pinion_status::Failure;

use super::{ClientConfig, same_address};
use crate::{Token, local_token};

/// The variable that command lines read.
pub const CLI_VARIABLE: &str = "PINIX_TOKEN";
/// The variable that daemons and providers read.
pub const DAEMON_VARIABLE: &str = "PINIX_HUB_TOKEN";

/// What a token is wanted for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The root directory.
    pub root: &'a Path,
    /// What the command line said.
    pub flag: Option<&'a str>,
    /// The variable that counts: [`CLI_VARIABLE`] or [`DAEMON_VARIABLE`].
    pub variable: &'static str,
    /// The address of the hub the token will be shown to.
    pub hub: &'a str,
    /// The address of the hub that runs on `root`, as that hub itself has left it there. No other hub is shown the local token.
    pub local_hub: Option<&'a str>,
}

/// A token, and where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The token.
    pub token: Token,
    /// Where it was.
    pub source: Source,
}

/// Where a token was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// On the command line.
    Flag,
    /// In this variable.
    Variable(&'static str),
    /// In `client.json`.
    ClientFile,
    /// In the file of the hub on this machine.
    LocalFile,
}

impl Wanted<'_> {
    /// The token to show, if there is one; `environment` gives the values of variables.
    ///
    /// The token of `client.json` goes to the hub named beside it, or to any if none is named there and the hub is not the local one.
    pub fn choose(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Chosen>, Failure> {
        let found = |token: Option<Token>, source| Ok(token.map(|token| Chosen { token, source }));
        if let Some(token) = self.flag.and_then(Token::given) {
            return found(Some(token), Source::Flag);
        }
        if let Some(token) = environment(self.variable).as_deref().and_then(Token::given) {
            return found(Some(token), Source::Variable(self.variable));
        }
        let config = ClientConfig::load(self.root)?;
        let named = config.hub.as_deref().map(|hub| same_address(hub, self.hub));
        let is_local = self
            .local_hub
            .is_some_and(|local| same_address(local, self.hub));
        if is_local && named != Some(true) {
            return found(local_token(self.root)?, Source::LocalFile);
        }
        match (config.hub_token, named) {
            (Some(token), Some(true) | None) => found(Some(token), Source::ClientFile),
            (None, _) if is_local => found(local_token(self.root)?, Source::LocalFile),
            _ => Ok(None),
        }
    }
}
