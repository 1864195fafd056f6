//! `clip bind`, `clip unbind`, `clip bindings`: the clips that another clip calls.

use std::process::ExitCode;

use pinion_hub_client::{Slot, candidates_json, keep_slot, slots};
use pinion_proto::Message;
use pinion_proto::hub::{
    ClipBinding, GetBindingsRequest, GetBindingsResponse, RemoveBindingRequest,
    RemoveBindingResponse, SetBindingRequest, SetBindingResponse,
};
use serde_json::json;

use crate::failure::Failure;
use crate::hub::caller::{self, Caller, print};
use crate::hub::show::table;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const BIND: Verb = Verb::new("pinion clip", &tables::clip::BIND, bind);

pub(super) const UNBIND: Verb = Verb::new("pinion clip", &tables::clip::UNBIND, unbind);

pub(super) const BINDINGS: Verb = Verb::new("pinion clip", &tables::clip::BINDINGS, bindings);

fn bind(line: &Line) -> Result<ExitCode, Failure> {
    if line.has("--list") {
        let (alias, slot) = line.one_or_two()?;
        return candidates(line, alias, slot);
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
    let _: SetBindingResponse = caller::ask(line, "SetBinding", &request)?;
    let text = format!("{slot} of {alias} is bound to {target}.\n");
    print(line, || json!({"name": alias}).to_string(), || text)
}

fn unbind(line: &Line) -> Result<ExitCode, Failure> {
    let [alias, slot] = line.exactly()?;
    let request = RemoveBindingRequest {
        clip_name: alias.to_owned().into(),
        slot: slot.to_owned().into(),
    };
    let _: RemoveBindingResponse = caller::ask(line, "RemoveBinding", &request)?;
    let text = format!("{slot} of {alias} is not bound any more.\n");
    print(line, || json!({"name": alias}).to_string(), || text)
}

fn bindings(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    let request = GetBindingsRequest {
        clip_name: alias.to_owned().into(),
    };
    let bindings: GetBindingsResponse = caller::ask(line, "GetBindings", &request)?;
    let slots = slots(&bindings, &[]);
    let rows: Vec<_> = slots.iter().map(Slot::row).collect();
    print(
        line,
        || bindings.to_json(),
        || table(&["SLOT", "WANTS", "BOUND TO"], &rows),
    )
}

/// Prints the bindings with the clips that fit each slot, for one slot or for all.
fn candidates(line: &Line, alias: &str, only: Option<&str>) -> Result<ExitCode, Failure> {
    let request = GetBindingsRequest {
        clip_name: alias.to_owned().into(),
    };
    let caller = Caller::of(line)?;
    let (mut bindings, clips): (GetBindingsResponse, _) = caller::wait(async {
        let bindings = caller.ask("GetBindings", &request).await?;
        let clips = caller.explained(caller.client().clips()).await?;
        Ok((bindings, clips))
    })?;
    if let Some(only) = only {
        keep_slot(&mut bindings, only);
    }
    let slots = slots(&bindings, &clips);
    if let (Some(only), true) = (only, slots.is_empty()) {
        return Err(Failure::failed(format!("{alias} has no slot {only}.")));
    }
    let rows: Vec<_> = slots.iter().map(Slot::row_with_candidates).collect();
    let headings = ["SLOT", "WANTS", "BOUND TO", "CANDIDATES"];
    let json = || candidates_json(&bindings, &slots).to_string();
    print(line, json, || table(&headings, &rows))
}
