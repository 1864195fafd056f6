//! `clip show`: prints the manifest of a clip.

use std::process::ExitCode;

use pinion_hub_client::manifest_text;
use pinion_proto::Message;
use pinion_proto::hub::ClipManifest;

use crate::commands::out;
use crate::failure::Failure;
use crate::hub::caller::{self, Caller, print};
use crate::hub::show::strong;
use crate::verb::{Line, Verb};
use pinion_cli::tables;

pub(super) const VERB: Verb = Verb::new("pinion clip", &tables::clip::SHOW, run);

/// `clip show` with text output unless `--json` is given, even if stdout is not a terminal.
pub(crate) const INFO: Verb = Verb::new("pinix hub", &tables::pinix::INFO, info);

/// Fetches the manifest of a clip.
pub(crate) fn manifest(caller: &Caller, alias: &str) -> Result<ClipManifest, Failure> {
    caller::wait(caller.explained(caller.client().clip_manifest(alias)))
}

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    let caller = Caller::of(line)?;
    let manifest = manifest(&caller, alias)?;
    print(line, || manifest.to_json(), || described(&manifest))
}

fn info(line: &Line) -> Result<ExitCode, Failure> {
    let [alias] = line.exactly()?;
    let caller = Caller::of(line)?;
    let manifest = manifest(&caller, alias)?;
    if line.has("--json") {
        out(&format!("{}\n", manifest.to_json()))
    } else {
        out(&described(&manifest))
    }
}

/// Formats a manifest as text for standard output.
pub(crate) fn described(manifest: &ClipManifest) -> String {
    manifest_text(manifest, strong)
}
