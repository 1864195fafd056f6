//! A provider's description of a clip, in one form for both dialects.

use std::collections::BTreeSet;

use pinion_clip::alias;
use pinion_clip::manifest::{Command, Dependency, Manifest, Schedule};
use pinion_proto::hub::{ClipRegistration, CommandInfo};
use pinion_status::{Code, Failure};
use serde_json::Value;

use crate::limits::Limits;

/// A clip that a provider offers.
#[derive(Debug)]
pub(super) struct Registration {
    /// The requested alias, which may differ from the granted one.
    pub(super) name: String,
    /// The provider's own name for the clip.
    pub(super) called: String,
    pub(super) manifest: Manifest,
    /// Callers must send a secret.
    pub(super) guarded: bool,
    /// The alias that was claimed in the cluster.
    pub(super) claimed: Option<String>,
}

impl Registration {
    /// Converts a clip of the schema's messages. Fails if it has no alias.
    pub(super) fn of(clip: ClipRegistration) -> Result<Self, Failure> {
        let given = match clip.alias.trim() {
            "" => clip.name.trim(),
            alias => alias,
        };
        let name = alias::normalise(given)
            .ok_or_else(|| Failure::invalid("every clip needs an alias with a letter or digit"))?;
        let manifest = unchecked_manifest(&name, &clip);
        Ok(Self::complete(
            name.clone(),
            name,
            manifest,
            clip.token_protected,
        ))
    }

    /// Reads a clip of the typed dialect. If it has no alias, the hub derives one from the package.
    pub(super) fn read(clip: &Value) -> Self {
        let manifest = Manifest::read(clip);
        let text = |key: &str| clip.get(key).and_then(Value::as_str);
        let given = ["alias", "name"]
            .into_iter()
            .find_map(|key| Some((alias::normalise(text(key)?)?, text(key)?.trim().to_owned())));
        let (name, called) = given.unwrap_or_else(|| {
            let name = alias::from_source(&manifest.package);
            (name.clone(), name)
        });
        let flags = ["tokenProtected", "token_protected"];
        let guarded = flags
            .iter()
            .any(|key| clip.get(key).and_then(Value::as_bool) == Some(true));
        Self::complete(name, called, manifest, guarded)
    }

    fn complete(name: String, called: String, mut manifest: Manifest, guarded: bool) -> Self {
        manifest.name.clone_from(&name);
        manifest.normalise();
        if manifest.package.is_empty() {
            manifest.package.clone_from(&name);
        }
        Self {
            name,
            called,
            manifest,
            guarded,
            claimed: None,
        }
    }
}

/// Checks the limits and unique names of clips that are registered together, beside `present` others.
pub(super) fn check(
    clips: &[Registration],
    present: usize,
    limits: &Limits,
) -> Result<(), Failure> {
    let exhausted = |message| Err(Failure::new(Code::ResourceExhausted, message));
    if present + clips.len() > limits.clips {
        return exhausted(format!(
            "a provider may register at most {} clips",
            limits.clips
        ));
    }
    let mut names = BTreeSet::new();
    for clip in clips {
        let name = &clip.name;
        if !names.insert(name) {
            let message = format!("clip \"{name}\" already registered in request");
            return Err(Failure::new(Code::AlreadyExists, message));
        }
        if clip.manifest.commands.len() > limits.commands {
            return exhausted(format!(
                "clip \"{name}\" has {} commands; at most {} are allowed",
                clip.manifest.commands.len(),
                limits.commands
            ));
        }
    }
    Ok(())
}

fn command(command: &CommandInfo) -> Command {
    Command {
        name: command.name.to_string(),
        description: command.description.to_string(),
        input: command.input.to_string(),
        output: command.output.to_string(),
    }
}

fn texts<'a, T: ToString + 'a>(
    pairs: impl Iterator<Item = (&'a T, &'a T)>,
) -> std::collections::BTreeMap<String, String> {
    pairs
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect()
}

/// Converts the manifest in a registration that another hub has checked.
pub(crate) fn manifest_of(clip: &ClipRegistration) -> Manifest {
    let mut manifest = unchecked_manifest(&clip.alias, clip);
    manifest.normalise();
    manifest
}

fn unchecked_manifest(name: &str, clip: &ClipRegistration) -> Manifest {
    let mut manifest = Manifest {
        name: name.to_owned(),
        package: clip.package.to_string(),
        version: clip.version.to_string(),
        domain: clip.domain.to_string(),
        description: clip.description.to_string(),
        commands: clip.commands.iter().map(command).collect(),
        groups: texts(clip.groups.iter()),
        dependencies: clip
            .dependencies
            .iter()
            .map(|slot| (slot.to_string(), Dependency::default()))
            .collect(),
        patterns: clip.patterns.iter().map(ToString::to_string).collect(),
        entities: texts(clip.entities.iter()),
        has_web: clip.has_web,
        schedules: clip
            .schedules
            .iter()
            .map(|it| Schedule {
                command: it.command.to_string(),
                cron: it.cron.to_string(),
                input: it.input.to_string(),
                description: it.description.to_string(),
            })
            .collect(),
        ..Manifest::default()
    };
    for (slot, wanted) in &clip.dependency_slots {
        let wanted = Dependency {
            package: wanted.package.to_string(),
            version: wanted.version.to_string(),
        };
        manifest.dependencies.insert(slot.to_string(), wanted);
    }
    manifest
}
