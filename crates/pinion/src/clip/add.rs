//! `clip add`, `clip remove`, `clip update`: changes the installed clips.

use std::process::ExitCode;

use pinion_access::client::chosen_registry;
use pinion_clip::source::TypedSource;
use pinion_clip::watch::Watch;
use pinion_config::Dirs;
use pinion_hub_client::{added_text, updated_text};
use pinion_proto::Message;
use pinion_proto::hub::{AddClipRequest, ClipInfo, RemoveClipRequest, RemoveClipResponse};
use pinion_status::Code;
use serde_json::json;

use crate::failure::Failure;
use crate::hub::caller::{self, Caller, print};
use crate::hub::{environment, root_dir};
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
        chosen_registry(&root, line.value("--registry"), environment)?
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
        Code::InvalidArgument => line.wrong(failure),
        _ => failure.into(),
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
    print(line, || clip.to_json(), || added_text(clip))
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
                failure.print();
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
    let report = |clip: &ClipInfo, failure: pinion_status::Failure| {
        failures += 1;
        eprintln!("{}: {failure}", clip.name);
    };
    let (version, registry) = (line.value("--version"), line.value("--registry"));
    let updated = caller::wait(async {
        let updated = client.update_clips(wanted, version, registry, report);
        Ok(updated.await?)
    })?;
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
    let [alias, old, new] =
        [&now.name, &before.version, &now.version].map(|text| harmless_line(text));
    let json = json!({"name": alias, "before": old, "version": new});
    print(line, || json.to_string(), || updated_text(before, now))
}
