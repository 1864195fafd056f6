//! `clip add`, `clip remove`, `clip update`: changes the installed clips.

use std::process::ExitCode;

use pinion_access::client::chosen_registry;
use pinion_clip::source::TypedSource;
use pinion_clip::watch::Watch;
use pinion_config::Dirs;
use pinion_hub_client::is_from_registry;
use pinion_proto::Message;
use pinion_proto::hub::{AddClipRequest, ClipInfo, RemoveClipRequest, RemoveClipResponse};
use pinion_status::Code;
use serde_json::json;

use super::list;
use crate::failure::Failure;
use crate::hub::caller::{self, Caller, print};
use crate::hub::{environment, failed, root_dir};
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::harmless_line;

pub(super) const ADD: Verb = Verb::new("pinion clip", &tables::clip::ADD, add);

pub(super) const REMOVE: Verb = Verb::new("pinion clip", &tables::clip::REMOVE, remove);

pub(super) const UPDATE: Verb = Verb::new("pinion clip", &tables::clip::UPDATE, update);

/// Returns the source in the hub's form.
fn source(line: &Line, text: &str) -> Result<String, Failure> {
    let registry = if text.starts_with('@') {
        let root = root_dir(line)?;
        chosen_registry(&root, line.value("--registry"), environment).map_err(failed)?
    } else {
        None
    };
    let typed = TypedSource {
        text,
        path: line.value("--path"),
        registry: registry.as_deref(),
        home: &Dirs::from_env()?.home,
    };
    typed.resolve().map_err(|failure| match failure.code {
        Code::InvalidArgument => line.wrong(&failure.message),
        _ => failed(failure),
    })
}

fn text(line: &Line, flag: &str) -> pinion_proto::Text {
    line.value(flag).unwrap_or_default().to_owned().into()
}

fn add(line: &Line) -> Result<ExitCode, Failure> {
    let [typed] = line.exactly()?;
    let request = AddClipRequest {
        source: source(line, typed)?.into(),
        provider: text(line, "--provider"),
        clip_token: text(line, "--token"),
        requested_alias: text(line, "--alias"),
        ..AddClipRequest::default()
    };
    let watched = match (line.has("--watch"), request.source.split_once(":/")) {
        (false, _) => None,
        (true, Some((name, path))) if name.starts_with("local/") => Some(format!("/{path}")),
        (true, _) => return Err(line.wrong("--watch is for directories and archives")),
    };
    let caller = Caller::of(line)?;
    caller::wait(async {
        let watch = watched.map(Watch::new);
        let clip = caller.explained(caller.client().add_clip(&request)).await?;
        added(line, &clip)?;
        match watch {
            Some(watch) => add_on_changes(line, &caller, request, clip, watch).await,
            None => Ok(ExitCode::SUCCESS),
        }
    })
}

fn added(line: &Line, clip: &ClipInfo) -> Result<ExitCode, Failure> {
    let text = || {
        let package = format!(
            "{} {}",
            harmless_line(&clip.package),
            harmless_line(&clip.version)
        );
        let mut text = format!("Added {} ({})", harmless_line(&clip.name), package.trim());
        if !clip.commands.is_empty() {
            text += &format!(": {}", harmless_line(&list::commands(clip)));
        }
        text + ".\n"
    };
    print(line, || clip.to_json(), text)
}

/// Installs a clip again whenever its directory changes. Prints failures; the installed version then stays.
async fn add_on_changes(
    line: &Line,
    caller: &Caller,
    mut request: AddClipRequest,
    clip: ClipInfo,
    mut watch: Watch,
) -> Result<ExitCode, Failure> {
    request.requested_alias = clip.name;
    loop {
        watch.changed().await;
        match caller.explained(caller.client().add_clip(&request)).await {
            Ok(clip) => added(line, &clip)?,
            Err(failure) => {
                eprintln!("Error: {failure}");
                ExitCode::FAILURE
            }
        };
    }
}

fn remove(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    let request = RemoveClipRequest {
        clip_name: alias.to_owned().into(),
        purge: line.has("--purge"),
    };
    let removed: RemoveClipResponse = caller::ask(line, "RemoveClip", &request)?;
    let data = if request.purge {
        " and its data"
    } else {
        "; its data stays"
    };
    print(
        line,
        || json!({"removed": removed.clip_name.as_str()}).to_string(),
        || format!("Removed {alias}{data}.\n"),
    )
}

fn update(line: &Line) -> Result<ExitCode, Failure> {
    let wanted: Option<&str> = match (line.words.as_slice(), line.has("--all")) {
        ([alias], false) => Some(alias),
        ([], true) => None,
        _ => return Err(line.wrong("name a clip, or use --all")),
    };
    if wanted.is_none() && line.has("--version") {
        return Err(line.wrong("--version is for one clip"));
    }
    let caller = Caller::of(line)?;
    let client = caller.client();
    let mut failures = 0;
    let updated = caller::wait(async {
        let mut updated = Vec::new();
        for clip in caller.explained(client.clips()).await? {
            let is_wanted = match wanted {
                Some(alias) => clip.name == *alias,
                None => is_from_registry(&clip),
            };
            if !is_wanted {
                continue;
            }
            let update =
                client.update_clip(&clip, line.value("--version"), line.value("--registry"));
            match caller.explained(update).await {
                Ok(now) => updated.push((clip, now)),
                Err(failure) if wanted.is_some() => return Err(failure),
                Err(failure) => {
                    failures += 1;
                    eprintln!("{}: {failure}", clip.name);
                }
            }
        }
        Ok(updated)
    })?;
    if let (Some(alias), true) = (wanted, updated.is_empty()) {
        return Err(Failure::failed(format!(
            "Error: clip \"{alias}\" not found"
        )));
    }
    for (before, now) in &updated {
        print_update(line, before, now)?;
    }
    Ok(if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print_update(line: &Line, before: &ClipInfo, now: &ClipInfo) -> Result<ExitCode, Failure> {
    let (alias, old, new) = (
        harmless_line(&now.name),
        harmless_line(&before.version),
        harmless_line(&now.version),
    );
    let text = || {
        if old == new {
            format!("{alias} is up to date ({new}).\n")
        } else {
            format!("{alias}: {old} is now {new}.\n")
        }
    };
    let json = json!({"name": alias, "before": old, "version": new});
    print(line, || json.to_string(), text)
}
