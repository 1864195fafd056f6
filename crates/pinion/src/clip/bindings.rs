//! `clip bind`, `clip unbind`, `clip bindings`: which clips another one calls.

use std::process::ExitCode;

use pinion_proto::Message;
use pinion_proto::hub::{
    ClipBinding, GetBindingsRequest, GetBindingsResponse, RemoveBindingRequest,
    RemoveBindingResponse, SetBindingRequest, SetBindingResponse,
};
use serde_json::json;

use super::help;
use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::{self, Caller, Shape};
use crate::hub::show::table;
use crate::verb::{Flag, Line, Verb};

pub(super) const BIND: Verb = Verb {
    name: "clip bind",
    flags: &[
        caller::FLAGS,
        &[
            Flag::valued("--hub"),
            Flag::valued("--hub-token"),
            Flag::valued("--clip-token"),
            Flag::bare("--list"),
        ],
    ],
    raw_after: usize::MAX,
    help: help::BIND,
    run: bind,
};

pub(super) const UNBIND: Verb = Verb {
    name: "clip unbind",
    flags: &[caller::FLAGS],
    raw_after: usize::MAX,
    help: help::UNBIND,
    run: unbind,
};

pub(super) const BINDINGS: Verb = Verb {
    name: "clip bindings",
    flags: &[caller::FLAGS],
    raw_after: usize::MAX,
    help: help::BINDINGS,
    run: bindings,
};

fn bind(line: &Line) -> Result<ExitCode, Failure> {
    if line.has("--list") {
        let (alias, _) = line.one_or_two()?;
        return tell(line, alias);
    }
    let (alias, slot, target) = match line.words.as_slice() {
        [alias, slot] => (alias, slot, slot),
        [alias, slot, target] => (alias, slot, target),
        _ => return Err(line.wrong("say which clip, which slot, and what to bind")),
    };
    let text = |flag: &str| line.value(flag).unwrap_or_default().to_owned();
    if line.value("--hub").is_none() && line.has("--hub-token") {
        return Err(line.wrong("--hub-token needs --hub"));
    }
    let request = SetBindingRequest {
        clip_name: alias.clone().into(),
        slot: slot.clone().into(),
        binding: Some(ClipBinding {
            alias: target.clone().into(),
            hub: text("--hub").into(),
            hub_token: text("--hub-token").into(),
            clip_token: text("--clip-token").into(),
        }),
    };
    let caller = Caller::of(line)?;
    let _: SetBindingResponse = caller::wait(async { caller.ask("SetBinding", &request).await })?;
    done(line, alias, &format!("{slot} of {alias} is {target} now."))
}

fn unbind(line: &Line) -> Result<ExitCode, Failure> {
    let [alias, slot] = line.exactly()?;
    let request = RemoveBindingRequest {
        clip_name: alias.to_owned().into(),
        slot: slot.to_owned().into(),
    };
    let caller = Caller::of(line)?;
    let _: RemoveBindingResponse =
        caller::wait(async { caller.ask("RemoveBinding", &request).await })?;
    done(line, alias, &format!("{slot} of {alias} is free now."))
}

fn done(line: &Line, alias: &str, words: &str) -> Result<ExitCode, Failure> {
    match Shape::of(line) {
        Shape::Json => out(&format!("{}\n", json!({"name": alias}))),
        Shape::Table => out(&format!("{words}\n")),
    }
}

fn bindings(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    tell(line, alias)
}

fn tell(line: &Line, alias: &str) -> Result<ExitCode, Failure> {
    let request = GetBindingsRequest {
        clip_name: alias.to_owned().into(),
    };
    let caller = Caller::of(line)?;
    let told: GetBindingsResponse =
        caller::wait(async { caller.ask("GetBindings", &request).await })?;
    if Shape::of(line) == Shape::Json {
        return out(&format!("{}\n", told.to_json()));
    }
    let mut slots: Vec<&str> = told.dependency_slots.keys().map(|it| it.as_str()).collect();
    slots.extend(told.bindings.keys().map(|it| it.as_str()));
    slots.sort_unstable();
    slots.dedup();
    let rows = slots.into_iter().map(|slot| {
        let wanted = told.dependency_slots.get(slot);
        let wanted = wanted.map(|it| format!("{} {}", it.package, it.version));
        let bound = told.bindings.get(slot);
        let bound = bound.map(|it| match it.hub.is_empty() {
            true => it.alias.to_string(),
            false => format!("{} at {}", it.alias, it.hub),
        });
        vec![
            slot.to_owned(),
            wanted.unwrap_or_default().trim().to_owned(),
            bound.unwrap_or_else(|| "-".into()),
        ]
    });
    out(&table(
        &["SLOT", "WANTS", "BOUND TO"],
        &rows.collect::<Vec<_>>(),
    ))
}
