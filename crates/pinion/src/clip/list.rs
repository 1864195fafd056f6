//! `clip list`: lists the clips of a hub.

use std::process::ExitCode;

use pinion_hub_client::{CLIP_HEADINGS, clip_in_tabs, clip_row};
use pinion_proto::hub::ClipInfo;

use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::{self, Caller, Shape, print};
use crate::hub::show::{json_list, table};
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinion clip", &tables::clip::LIST, run);

/// `clip list` in the format of `pinix`: alias, package, version, provider and commands, separated by tabs.
pub(crate) const IN_TABS: Verb = Verb::new("pinix hub", &tables::clip::LIST, in_tabs);

/// Returns the clips that the caller may see.
fn clips(caller: &Caller) -> Result<Vec<ClipInfo>, Failure> {
    caller::wait(caller.explained(caller.client().clips()))
}

/// Returns the aliases of all clips. A hub that does not answer within two seconds is a failure.
pub(super) fn aliases() -> Result<Vec<String>, Failure> {
    let Some(line) = Line::read(&VERB, &["--timeout=2s".to_owned()])? else {
        return Ok(Vec::new());
    };
    let caller = Caller::of(&line)?;
    let clips = clips(&caller)?;
    Ok(clips.iter().map(|clip| clip.name.to_string()).collect())
}

fn run(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let caller = Caller::of(line)?;
    let clips = clips(&caller)?;
    if clips.is_empty() && Shape::of(line) == Shape::Table {
        eprintln!(
            "There are no clips. `pinion clip new hello` writes a starter clip, `pinion clip add ./hello` installs it."
        );
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = clips.iter().map(clip_row).collect();
    print(line, || json_list(&clips), || table(&CLIP_HEADINGS, &rows))
}

fn in_tabs(line: &Line) -> Result<ExitCode, Failure> {
    line.exactly::<0>()?;
    let caller = Caller::of(line)?;
    let clips = clips(&caller)?;
    if line.has("--json") {
        return out(&(json_list(&clips) + "\n"));
    }
    let rows = clips.iter().map(clip_in_tabs);
    out(&rows.collect::<String>())
}
