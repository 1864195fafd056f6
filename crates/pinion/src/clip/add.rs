//! `clip add`, `clip remove`, `clip update`: changes the installed clips.

use std::process::ExitCode;

use pinion_clip::watch::Watch;
use pinion_proto::Message;
use pinion_proto::hub::{
    AddClipRequest, AddClipResponse, ClipInfo, RemoveClipRequest, RemoveClipResponse,
};
use pinion_text::harmless_line;
use serde_json::json;

use super::{list, source};
use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::{self, Caller, Shape};
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const ADD: Verb = Verb::new("pinion clip", &tables::clip::ADD, add);

pub(super) const REMOVE: Verb = Verb::new("pinion clip", &tables::clip::REMOVE, remove);

pub(super) const UPDATE: Verb = Verb::new("pinion clip", &tables::clip::UPDATE, update);

async fn install(caller: &Caller, request: &AddClipRequest) -> Result<ClipInfo, Failure> {
    let added: AddClipResponse = caller.ask("AddClip", request).await?;
    Ok(added.clip.unwrap_or_default())
}

fn text(line: &Line, flag: &str) -> pinion_proto::Text {
    line.value(flag).unwrap_or_default().to_owned().into()
}

fn add(line: &Line) -> Result<ExitCode, Failure> {
    let [typed] = line.exactly()?;
    let request = AddClipRequest {
        source: source::resolve(line, typed)?.into(),
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
        let clip = install(&caller, &request).await?;
        added(line, &clip)?;
        match watch {
            Some(watch) => keep_adding(line, &caller, request, clip, watch).await,
            None => Ok(ExitCode::SUCCESS),
        }
    })
}

fn added(line: &Line, clip: &ClipInfo) -> Result<ExitCode, Failure> {
    match Shape::of(line) {
        Shape::Json => out(&format!("{}\n", clip.to_json())),
        Shape::Table => out(&format!("Added {}.\n", told(clip))),
    }
}

/// Installs a clip again whenever its directory changes. Prints failures; the installed version then stays.
async fn keep_adding(
    line: &Line,
    caller: &Caller,
    mut request: AddClipRequest,
    clip: ClipInfo,
    mut watch: Watch,
) -> Result<ExitCode, Failure> {
    request.requested_alias = clip.name;
    loop {
        watch.changed().await;
        match install(caller, &request).await {
            Ok(clip) => added(line, &clip)?,
            Err(failure) => {
                eprintln!("Error: {failure}");
                ExitCode::FAILURE
            }
        };
    }
}

fn told(clip: &ClipInfo) -> String {
    let what = format!(
        "{} {}",
        harmless_line(&clip.package),
        harmless_line(&clip.version)
    );
    match clip.commands.is_empty() {
        true => format!("{} ({})", harmless_line(&clip.name), what.trim()),
        false => {
            let commands = harmless_line(&list::commands(clip));
            format!(
                "{} ({}): {commands}",
                harmless_line(&clip.name),
                what.trim()
            )
        }
    }
}

fn remove(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    let request = RemoveClipRequest {
        clip_name: alias.to_owned().into(),
        purge: line.has("--purge"),
    };
    let caller = Caller::of(line)?;
    let removed: RemoveClipResponse =
        caller::wait(async { caller.ask("RemoveClip", &request).await })?;
    match (Shape::of(line), request.purge) {
        (Shape::Json, _) => out(&format!(
            "{}\n",
            json!({"removed": removed.clip_name.as_str()})
        )),
        (Shape::Table, true) => out(&format!("Removed {alias} and its data.\n")),
        (Shape::Table, false) => out(&format!("Removed {alias}; its data is kept.\n")),
    }
}

fn update(line: &Line) -> Result<ExitCode, Failure> {
    let wanted: Option<&str> = match (line.words.as_slice(), line.has("--all")) {
        ([alias], false) => Some(alias),
        ([], true) => None,
        _ => return Err(line.wrong("say which clip, or --all")),
    };
    if wanted.is_none() && line.has("--version") {
        return Err(line.wrong("--version is for one clip"));
    }
    let caller = Caller::of(line)?;
    let mut failures = 0;
    let updated = caller::wait(async {
        let mut updated = Vec::new();
        for clip in list::clips(&caller).await? {
            let is_wanted = wanted.is_none_or(|alias| clip.name == *alias);
            if !is_wanted || (wanted.is_none() && !is_of_a_registry(&clip)) {
                continue;
            }
            match update_one(line, &caller, &clip).await {
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
        tell(line, before, now)?;
    }
    Ok(if failures == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn tell(line: &Line, before: &ClipInfo, now: &ClipInfo) -> Result<ExitCode, Failure> {
    let (alias, old, new) = (
        harmless_line(&now.name),
        harmless_line(&before.version),
        harmless_line(&now.version),
    );
    if Shape::of(line) == Shape::Json {
        let told = json!({"name": alias, "before": old, "version": new});
        return out(&format!("{told}\n"));
    }
    match old == new {
        true => out(&format!("{alias} is up to date ({new}).\n")),
        false => out(&format!("{alias}: {old} is now {new}.\n")),
    }
}

/// Reports whether a clip comes from a registry. Built-in clips have packages too, but are part of the hub.
fn is_of_a_registry(clip: &ClipInfo) -> bool {
    clip.package.starts_with('@') && clip.provider != *"builtin"
}

async fn update_one(line: &Line, caller: &Caller, clip: &ClipInfo) -> Result<ClipInfo, Failure> {
    if !is_of_a_registry(clip) {
        let alias = harmless_line(&clip.name);
        return Err(Failure::failed(format!(
            "Error: {alias} did not come from a registry. `pinion clip add SOURCE --alias {alias}` puts another version in its place."
        )));
    }
    let package = match line.value("--version") {
        Some(version) => format!("{}@{version}", clip.package),
        None => clip.package.to_string(),
    };
    // Without --registry, a clip stays with the registry it came from: the same name in another registry may belong to
    // another author.
    let package = match line.value("--registry") {
        Some(_) => source::resolve(line, &package)?,
        None => package,
    };
    let request = AddClipRequest {
        source: package.into(),
        requested_alias: clip.name.clone(),
        ..AddClipRequest::default()
    };
    install(caller, &request).await
}
