//! `clip bind`, `clip unbind`, `clip bindings`: the clips that another clip calls.

use std::collections::BTreeSet;
use std::process::ExitCode;

use pinion_clip::version::Range;
use pinion_proto::Message;
use pinion_proto::hub::{
    ClipBinding, ClipInfo, DependencySlot, GetBindingsRequest, GetBindingsResponse,
    RemoveBindingRequest, RemoveBindingResponse, SetBindingRequest, SetBindingResponse,
};
use serde_json::{Value, json};

use super::list;
use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::{self, Caller, Shape};
use crate::hub::show::table;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const BIND: Verb = Verb::new("pinion clip", &tables::clip::BIND, bind);

pub(super) const UNBIND: Verb = Verb::new("pinion clip", &tables::clip::UNBIND, unbind);

pub(super) const BINDINGS: Verb = Verb::new("pinion clip", &tables::clip::BINDINGS, bindings);

fn bind(line: &Line) -> Result<ExitCode, Failure> {
    if line.has("--list") {
        let (alias, slot) = line.one_or_two()?;
        return tell_candidates(line, alias, slot);
    }
    let (alias, slot, target) = match line.words.as_slice() {
        [alias, slot] => (alias, slot, slot),
        [alias, slot, target] => (alias, slot, target),
        _ => return Err(line.misfit()),
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

async fn ask(caller: &Caller, alias: &str) -> Result<GetBindingsResponse, Failure> {
    let request = GetBindingsRequest {
        clip_name: alias.to_owned().into(),
    };
    caller.ask("GetBindings", &request).await
}

fn tell(line: &Line, alias: &str) -> Result<ExitCode, Failure> {
    let caller = Caller::of(line)?;
    let told = caller::wait(ask(&caller, alias))?;
    if Shape::of(line) == Shape::Json {
        return out(&format!("{}\n", told.to_json()));
    }
    let rows: Vec<_> = slots(&told).map(|slot| row(&told, slot)).collect();
    out(&table(&["SLOT", "WANTS", "BOUND TO"], &rows))
}

/// Prints the bindings with the clips that fit each slot, for one slot or for all.
fn tell_candidates(line: &Line, alias: &str, slot: Option<&str>) -> Result<ExitCode, Failure> {
    let caller = Caller::of(line)?;
    let asking = async { Ok((ask(&caller, alias).await?, list::clips(&caller).await?)) };
    let (mut told, clips): (GetBindingsResponse, Vec<ClipInfo>) = caller::wait(asking)?;
    if let Some(slot) = slot {
        if !slots(&told).any(|it| it == slot) {
            return Err(Failure::failed(format!(
                "Error: {alias} has no slot {slot}."
            )));
        }
        told.dependency_slots
            .retain(|name, _| name.as_str() == slot);
        told.bindings.retain(|name, _| name.as_str() == slot);
    }
    let fitting = |slot: &str| candidates(told.dependency_slots.get(slot), &clips);
    if Shape::of(line) == Shape::Json {
        let mut shown: Value = serde_json::from_str(&told.to_json()).unwrap_or_default();
        shown["candidates"] = slots(&told).map(|slot| (slot, fitting(slot))).collect();
        return out(&format!("{shown}\n"));
    }
    let rows = slots(&told).map(|slot| {
        let mut row = row(&told, slot);
        row.push(match fitting(slot).join(", ") {
            none if none.is_empty() => "-".into(),
            some => some,
        });
        row
    });
    let headings = ["SLOT", "WANTS", "BOUND TO", "CANDIDATES"];
    out(&table(&headings, &rows.collect::<Vec<_>>()))
}

/// Returns the clips of the package that a slot requires, in a version that it accepts.
fn candidates<'a>(wanted: Option<&DependencySlot>, clips: &'a [ClipInfo]) -> Vec<&'a str> {
    let Some(wanted) = wanted else {
        return Vec::new();
    };
    let range = Range::parse(&wanted.version);
    let fitting = clips
        .iter()
        .filter(|clip| clip.package == wanted.package && range.contains(&clip.version));
    fitting.map(|clip| clip.name.as_str()).collect()
}

/// Returns the names of all declared or bound slots, sorted.
fn slots(told: &GetBindingsResponse) -> impl Iterator<Item = &str> {
    let declared = told.dependency_slots.keys();
    let names = declared.chain(told.bindings.keys());
    names
        .map(|name| name.as_str())
        .collect::<BTreeSet<_>>()
        .into_iter()
}

fn row(told: &GetBindingsResponse, slot: &str) -> Vec<String> {
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
}
