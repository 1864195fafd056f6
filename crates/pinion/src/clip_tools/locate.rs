//! The address and the token of the hub, chosen as the commands of the command line choose them.

use pinion_access::client::{CLI_VARIABLE, Source, TokenQuery};

use crate::failure::Failure;
use crate::hub::seat::{Holder, pid_file};
use crate::hub::{caller, failed, place};

/// The address of a hub, and the token for it.
#[derive(Debug)]
pub(super) struct Located {
    pub url: String,
    pub token: Option<String>,
    /// The variable or file that contained the token, for messages.
    pub token_source: String,
}

/// Returns the hub at `named`, or the hub that commands call.
pub(super) fn locate(named: Option<&str>) -> Result<Located, Failure> {
    let root = place::named_or_usual(None)?;
    let holder = Holder::at(&pid_file(&root));
    let url = caller::address(named, &root, holder.as_ref())?;
    let wanted = TokenQuery {
        root: &root,
        flag: None,
        variable: CLI_VARIABLE,
        hub: &url,
        local_hub: holder.as_ref().map(|holder| holder.url.as_str()),
    };
    let chosen = wanted.choose(|name| std::env::var(name).ok());
    let chosen = chosen.map_err(failed)?;
    let token_source = match chosen.as_ref().map(|chosen| chosen.source) {
        Some(Source::Variable(name)) => name.to_owned(),
        Some(Source::LocalFile) => root.join("local.token").display().to_string(),
        Some(Source::ClientFile) => root.join("client.json").display().to_string(),
        Some(Source::Flag) | None => "nowhere".to_owned(),
    };
    Ok(Located {
        url,
        token: chosen.map(|chosen| chosen.token.reveal().to_owned()),
        token_source,
    })
}
