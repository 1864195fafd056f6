//! `pinix config`: reads and sets the registry and the hub in `client.json`.

use std::process::ExitCode;

use pinion_access::Token;
use pinion_access::client::ClientConfig;

use crate::commands::out;
use crate::failure::Failure;
use crate::hub::{failed, root_dir};
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinix", &tables::pinix::CONFIG, change);

fn change(line: &Line) -> Result<ExitCode, Failure> {
    let root = root_dir(line)?;
    let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["get", name] => {
            let config = ClientConfig::load(&root).map_err(failed)?;
            let value = match *name {
                "registry" => config.registry,
                "hub" => config.hub,
                "hub-token" => config.hub_token.map(|token| token.reveal().to_owned()),
                other => return Err(unknown(other)),
            };
            out(&format!("{}\n", value.unwrap_or_default()))
        }
        ["set", name @ ("registry" | "hub" | "hub-token"), value] => {
            std::fs::create_dir_all(&root)?;
            let filled = || Some((*value).to_owned()).filter(|value| !value.trim().is_empty());
            let set = ClientConfig::update(&root, |config| match *name {
                "registry" => config.registry = filled(),
                "hub" => config.hub = filled(),
                _ => config.hub_token = Token::given(value),
            });
            set.map_err(failed)?;
            Ok(ExitCode::SUCCESS)
        }
        ["set", name, _] => Err(unknown(name)),
        ["set", name] => Err(Failure::failed(format!(
            "Error: the value of {name} is missing: pinix config set {name} VALUE"
        ))),
        ["get"] | ["set"] => Err(Failure::failed(
            "Error: name a setting: registry, hub or hub-token. See `pinix config --help`.",
        )),
        [] => Err(Failure::failed(
            "Error: use `pinix config get NAME` or `pinix config set NAME VALUE`. See `pinix config --help`.",
        )),
        ["get", _, extra, ..] | ["set", _, _, extra, ..] => Err(Failure::failed(format!(
            "Error: unexpected argument \"{extra}\". See `pinix config --help`."
        ))),
        [other, ..] => Err(Failure::failed(format!(
            "Error: unknown command \"{other}\"; use get or set. See `pinix config --help`."
        ))),
    }
}

fn unknown(name: &str) -> Failure {
    Failure::failed(format!(
        "Error: {name} cannot be configured; there are registry, hub and hub-token."
    ))
}
