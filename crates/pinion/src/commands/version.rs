//! `--version`: the version, and what this binary was built from and speaks.

use std::process::ExitCode;

use pinion_pi::Dialect;
use serde_json::json;

use super::out;
use crate::failure::Failure;
use crate::program::Program;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit that was built; empty for a build during development.
const COMMIT: &str = env!("PINION_COMMIT");
const TARGET: &str = env!("PINION_TARGET");
const PROFILE: &str = env!("PINION_PROFILE");
/// Differences of this build, separated by spaces.
const FEATURES: &str = env!("PINION_FEATURES");

/// The form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionForm {
    Text,
    Json,
}

/// Prints the version. Under the names of other programs this is the number alone, which their clients parse.
pub(crate) fn print(program: Program, form: VersionForm) -> Result<ExitCode, Failure> {
    out(&match (program, form) {
        (Program::Pinion, VersionForm::Text) => text(),
        (Program::Pinion, VersionForm::Json) => json(),
        (Program::Pi | Program::Pinocchio, _) => return print_number(),
    })
}

/// Prints the version alone.
pub(crate) fn print_number() -> Result<ExitCode, Failure> {
    out(&format!("{VERSION}\n"))
}

/// The first line is the number alone, as before.
fn text() -> String {
    let commit = if COMMIT.is_empty() {
        "not recorded"
    } else {
        COMMIT
    };
    let features = if FEATURES.is_empty() { "-" } else { FEATURES };
    let (pi, mcp) = (dialects().join(", "), pinion_mcp::REVISIONS.join(", "));
    format!(
        "{VERSION}\ncommit     {commit}\ntarget     {TARGET}, {PROFILE}\nfeatures   {features}\n\
         protocols  pi {pi}; pinocchio rpc; pinix v2; MCP {mcp}; OTLP 1\n"
    )
}

fn json() -> String {
    let features: Vec<&str> = FEATURES.split_whitespace().collect();
    let version = json!({
        "version": VERSION,
        "commit": (!COMMIT.is_empty()).then_some(COMMIT),
        "target": TARGET,
        "profile": PROFILE,
        "features": features,
        "protocols": {
            "pi": dialects(),
            "pinocchio": ["rpc"],
            "pinix": ["v2"],
            "mcp": pinion_mcp::REVISIONS,
            "otlp": ["1"],
        },
    });
    format!("{version}\n")
}

fn dialects() -> Vec<&'static str> {
    Dialect::ALL.map(Dialect::name).to_vec()
}
