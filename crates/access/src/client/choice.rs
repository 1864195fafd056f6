//! Chooses the token for a hub: a flag overrides the environment, which overrides a file.

use std::net::IpAddr;
use std::path::Path;

use pinion_status::Failure;

use super::{ClientConfig, same_address};
use crate::{Token, local_token};

/// The environment variable that command lines read.
pub const CLI_VARIABLE: &str = "PINIX_TOKEN";
/// The environment variable that daemons and providers read.
pub const DAEMON_VARIABLE: &str = "PINIX_HUB_TOKEN";

/// The purpose of a token.
#[derive(Debug, Clone, Copy)]
pub struct TokenQuery<'a> {
    pub root: &'a Path,
    /// The value of the command-line flag.
    pub flag: Option<&'a str>,
    /// The environment variable to read: [`CLI_VARIABLE`] or [`DAEMON_VARIABLE`].
    pub variable: &'static str,
    /// The URL of the hub that will receive the token.
    pub hub: &'a str,
    /// The URL of the hub that runs on `root`, as that hub has recorded it there. No other hub receives the local
    /// token.
    pub local_hub: Option<&'a str>,
}

/// A token and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenToken {
    pub token: Token,
    pub source: Source,
}

/// The source of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The command line.
    Flag,
    /// This environment variable.
    Variable(&'static str),
    /// `client.json`.
    ClientFile,
    /// The token file of the hub on this machine.
    LocalFile,
}

impl TokenQuery<'_> {
    /// Returns the token to send, if there is one. `environment` returns the values of variables.
    ///
    /// The token of `client.json` goes to the hub named beside it; if none is named there, to hubs on this machine.
    pub fn choose(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<ChosenToken>, Failure> {
        let found = |token: Option<Token>, source| token.map(|token| ChosenToken { token, source });
        let flag = self.flag.and_then(Token::given);
        let set = || environment(self.variable).as_deref().and_then(Token::given);
        if let Some(chosen) =
            found(flag, Source::Flag).or_else(|| found(set(), Source::Variable(self.variable)))
        {
            return Ok(Some(chosen));
        }
        let config = ClientConfig::load(self.root)?;
        let is_meant = match &config.hub {
            Some(hub) => same_address(hub, self.hub),
            None => is_on_this_machine(self.hub),
        };
        let kept = config.hub_token.filter(|_| is_meant);
        let kept = found(kept, Source::ClientFile);
        let is_local = self
            .local_hub
            .is_some_and(|local| same_address(local, self.hub));
        let is_named = is_meant && config.hub.is_some();
        if !is_local || (is_named && kept.is_some()) {
            return Ok(kept);
        }
        Ok(found(local_token(self.root)?, Source::LocalFile).or(kept))
    }
}

/// Reports whether a URL belongs to this machine, on any port.
fn is_on_this_machine(address: &str) -> bool {
    let address = address.trim();
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains(['@', '\\']) {
        return false;
    }
    let host = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => authority
            .rsplit_once(':')
            .map_or(authority, |(host, _)| host),
    };
    let ip: Option<IpAddr> = host.parse().ok();
    host.eq_ignore_ascii_case("localhost") || ip.is_some_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_told_from_those_that_look_like_them() {
        for address in [
            "http://127.0.0.1:9000",
            "http://127.0.0.1",
            "https://localhost:9000/",
            "http://LOCALHOST/x",
            "http://[::1]:9000",
            "127.3.2.1:9000",
        ] {
            assert!(is_on_this_machine(address), "{address}");
        }
        for address in [
            "",
            "http://127.0.0.1.example.com",
            "http://127.0.0.1@example.com",
            "http://example.com#@127.0.0.1",
            "http://example.com\\@127.0.0.1",
            "http://localhost.example.com",
            "http://example.com/127.0.0.1",
            "http://192.168.0.1:9000",
            "http://[::2]:9000",
            "http://0.0.0.0:9000",
        ] {
            assert!(!is_on_this_machine(address), "{address}");
        }
    }
}
