//! `pinix config`: reads and sets the registry and the hub in `client.json`.

use std::process::ExitCode;

use pinion_access::Token;
use pinion_access::client::ClientConfig;

use crate::commands::out;
use crate::failure::Failure;
use crate::hub::root_dir;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinix", &tables::pinix::CONFIG, change);

const HELP: &str = "See `pinix config --help`.";

fn change(line: &Line) -> Result<ExitCode, Failure> {
    let root = root_dir(line)?;
    let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["get", name] => {
            let config = ClientConfig::load(&root)?;
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
            ClientConfig::update(&root, |config| match *name {
                "registry" => config.registry = filled(),
                "hub" => config.hub = filled(),
                _ => config.hub_token = Token::given(value),
            })?;
            Ok(ExitCode::SUCCESS)
        }
        ["set", name, _] => Err(unknown(name)),
        ["set", name] => Err(Failure::failed(format!(
            "the value of {name} is missing: pinix config set {name} VALUE"
        ))),
        ["get"] | ["set"] => {
            Err(Failure::failed("name a setting: registry, hub or hub-token.").hint(HELP))
        }
        [] => Err(
            Failure::failed("use `pinix config get NAME` or `pinix config set NAME VALUE`.")
                .hint(HELP),
        ),
        ["get", _, extra, ..] | ["set", _, _, extra, ..] => {
            Err(Failure::failed(format!("unexpected argument \"{extra}\".")).hint(HELP))
        }
        [other, ..] => {
            Err(Failure::failed(format!("unknown command \"{other}\"; use get or set.")).hint(HELP))
        }
    }
}

fn unknown(name: &str) -> Failure {
    Failure::failed(format!(
        "{name} cannot be configured; there are registry, hub and hub-token."
    ))
}
