//! Checks the names of tools in flags and rules after extensions and clips have added theirs: a misspelled name must
//! not leave a tool active or a rule without effect.

use pinion_approval::{Origin, Policy, Rule};
use pinion_config::Dirs;
use pinion_text::nearest;

use super::tool_choice::plain_name;
use crate::cli::Flags;
use crate::failure::Failure;
use crate::program::Program;

/// A name of a tool, and the flag or file that contains it.
pub(super) struct Named {
    place: Place,
    name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Flag(&'static str),
    Settings,
    Project,
}

/// The prefix of the names of tools of MCP servers, which connect later.
const MCP_PREFIX: &str = "mcp__";

/// Returns every name of a tool in the flags and the rules, except names and patterns for tools of MCP servers if the
/// session `has_servers`.
pub(super) fn named(flags: &Flags, policy: Option<&Policy>, has_servers: bool) -> Vec<Named> {
    let of = |flag| {
        move |name: &String| Named {
            place: Place::Flag(flag),
            name: plain_name(name).to_owned(),
        }
    };
    let tools = flags.tools.iter().flatten().map(of("--tools"));
    let excluded = flags.exclude_tools.iter().map(of("--exclude-tools"));
    let rules = policy.into_iter().flat_map(|policy| {
        let allow = policy.allow.iter().map(|rule| ("--allow", rule));
        allow.chain(policy.deny.iter().map(|rule| ("--deny", rule)))
    });
    let rules = rules.filter_map(|(flag, rule): (_, &Rule)| {
        Some(Named {
            place: match rule.origin() {
                Origin::Flag => Place::Flag(flag),
                Origin::Settings => Place::Settings,
                Origin::Project => Place::Project,
            },
            name: rule.tool()?.to_owned(),
        })
    });
    let arrives = |named: &Named| has_servers && named.name.starts_with(MCP_PREFIX);
    let named = tools.chain(excluded).chain(rules);
    named.filter(|named| !arrives(named)).collect()
}

/// Fails for a name that no tool in `known` has. Returns warnings for unknown names that it accepts nevertheless.
///
/// A name in the settings that resembles no known tool may belong to an extension that is not loaded here; a name in a
/// flag that resembles none may be registered later if `may_add_tools`. A project must not prevent the start, so names
/// in its settings give only a warning. Under the name `pi`, flags give only a warning too.
pub(super) fn check(
    program: Program,
    named: &[Named],
    known: &[&str],
    may_add_tools: bool,
    dirs: &Dirs,
) -> Result<Vec<String>, Failure> {
    let mut warnings = Vec::new();
    for Named { place, name } in named {
        if known.contains(&name.as_str()) {
            continue;
        }
        let near = nearest(name, known.iter().copied());
        let hint = match near {
            Some(near) => format!("Did you mean {near}?"),
            None => format!("Valid tools: {}.", known.join(", ")),
        };
        match place {
            Place::Flag("--tools") if program == Program::Pi => warnings.push(format!(
                "Unknown tool \"{name}\". Valid tools: {}",
                known.join(", ")
            )),
            Place::Flag(flag) if program == Program::Pi || (near.is_none() && may_add_tools) => {
                warnings.push(format!("{flag}: unknown tool \"{name}\". {hint}"));
            }
            Place::Flag(flag) => {
                let problem = format!("{flag}: unknown tool \"{name}\".");
                return Err(Failure::usage(problem).hint(hint));
            }
            Place::Settings if near.is_some() => {
                let file = dirs.global_settings();
                let problem = format!("{}: approvals: unknown tool \"{name}\".", file.display());
                return Err(Failure::failed(problem).hint(hint));
            }
            Place::Settings => warnings.push(format!(
                "{}: approvals: no tool is called \"{name}\" here",
                dirs.global_settings().display()
            )),
            Place::Project => warnings.push(format!(
                "{}: approvals: unknown tool \"{name}\". {hint}",
                dirs.project_settings().display()
            )),
        }
    }
    Ok(warnings)
}
