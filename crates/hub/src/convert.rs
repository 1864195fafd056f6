//! Conversions between the hub's types and the messages of the wire.

use pinion_clip::data::{DataAnswer, DataOperation, Entry, EntryKind, Stat};
use pinion_clip::logs::LogEntry;
use pinion_clip::manifest::{Command, Dependency, Manifest, Schedule};
use pinion_clip::{ClipState, Snapshot, Status};
use pinion_proto::{Text, hub as wire};
use pinion_status::{Code, Failure};

use crate::endpoint::Endpoint;
use crate::table::Route;

pub(crate) fn text(text: &str) -> Text {
    Text::new(text)
}

/// Converts a failure for use inside a message.
pub(crate) fn hub_error(failure: &Failure) -> wire::HubError {
    wire::HubError {
        code: failure.code.as_str().into(),
        message: text(&failure.message),
    }
}

/// Converts a row of the routing table.
pub(crate) fn clip_info(route: &Route) -> wire::ClipInfo {
    clip_info_of(&route.alias, (&route.provider).into(), &*route.endpoint)
}

/// Describes an endpoint that may not be in the routing table.
pub(crate) fn clip_info_of(alias: &str, provider: Text, endpoint: &dyn Endpoint) -> wire::ClipInfo {
    let snapshot = endpoint.snapshot();
    let manifest = &snapshot.manifest;
    wire::ClipInfo {
        name: text(alias),
        package: text(&manifest.package),
        version: text(&manifest.version),
        provider,
        domain: text(&manifest.domain),
        commands: manifest.commands.iter().map(command_info).collect(),
        has_web: manifest.has_web,
        token_protected: endpoint.is_guarded(),
        dependencies: slots(manifest),
        status: status(&snapshot.status),
        status_message: text(&snapshot.status.message),
        description: text(&manifest.description),
        ..wire::ClipInfo::default()
    }
}

/// Describes a clip that does not run yet, for the other hubs of a cluster.
pub(crate) fn clip_registration_of(
    alias: &str,
    manifest: &Manifest,
    guarded: bool,
) -> wire::ClipRegistration {
    let snapshot = Snapshot {
        manifest: manifest.clone().into(),
        status: Status {
            state: ClipState::Running,
            message: String::new(),
        },
    };
    clip_registration(alias, &snapshot, guarded)
}

/// Describes a clip for the registration at another hub.
pub(crate) fn clip_registration(
    alias: &str,
    snapshot: &Snapshot,
    guarded: bool,
) -> wire::ClipRegistration {
    let wire::ClipManifest {
        name,
        package,
        version,
        domain,
        description,
        commands,
        dependencies,
        has_web,
        patterns,
        entities,
        dependency_slots,
        groups,
        schedules,
    } = clip_manifest(alias, snapshot);
    wire::ClipRegistration {
        alias: name,
        package,
        version,
        domain,
        description,
        commands,
        dependencies,
        has_web,
        patterns,
        entities,
        dependency_slots,
        groups,
        schedules,
        token_protected: guarded,
        ..wire::ClipRegistration::default()
    }
}

pub(crate) fn status(status: &Status) -> wire::ClipStatus {
    match status.state {
        ClipState::Running => wire::ClipStatus::Running,
        ClipState::Sleeping => wire::ClipStatus::Sleeping,
        ClipState::Error => wire::ClipStatus::Error,
    }
}

fn slots(manifest: &Manifest) -> Vec<Text> {
    let names = manifest.dependencies.keys();
    names.map(|slot| text(slot)).collect()
}

fn command_info(command: &Command) -> wire::CommandInfo {
    wire::CommandInfo {
        name: text(&command.name),
        description: text(&command.description),
        input: text(&command.input),
        output: text(&command.output),
        ..wire::CommandInfo::default()
    }
}

pub(crate) fn dependency_slot(dependency: &Dependency) -> wire::DependencySlot {
    wire::DependencySlot {
        package: text(&dependency.package),
        version: text(&dependency.version),
    }
}

fn schedule(schedule: &Schedule) -> wire::ClipSchedule {
    wire::ClipSchedule {
        command: text(&schedule.command),
        cron: text(&schedule.cron),
        input: text(&schedule.input),
        description: text(&schedule.description),
    }
}

/// Converts a manifest, with the alias that the clip has in this hub.
pub(crate) fn clip_manifest(alias: &str, snapshot: &Snapshot) -> wire::ClipManifest {
    let manifest = &snapshot.manifest;
    let texts = |map: &std::collections::BTreeMap<String, String>| {
        let pairs = map.iter();
        pairs.map(|(key, value)| (text(key), text(value))).collect()
    };
    wire::ClipManifest {
        name: text(alias),
        package: text(&manifest.package),
        version: text(&manifest.version),
        domain: text(&manifest.domain),
        description: text(&manifest.description),
        commands: manifest.commands.iter().map(command_info).collect(),
        dependencies: slots(manifest),
        has_web: manifest.has_web,
        patterns: manifest.patterns.iter().map(|it| text(it)).collect(),
        entities: texts(&manifest.entities),
        dependency_slots: manifest
            .dependencies
            .iter()
            .map(|(slot, it)| (text(slot), dependency_slot(it)))
            .collect(),
        groups: texts(&manifest.groups),
        schedules: manifest.schedules.iter().map(schedule).collect(),
    }
}

pub(crate) fn log_entry(clip: &str, entry: &LogEntry) -> wire::LogEntry {
    wire::LogEntry {
        timestamp_unix_ms: entry.time.as_millisecond(),
        clip_name: text(clip),
        level: entry.level.name().into(),
        message: (&entry.message).into(),
        origin: entry.origin.name().into(),
    }
}

/// Converts the result of an operation on files; a failure becomes a member of the response.
pub(crate) fn data_response(answer: Result<DataAnswer, Failure>) -> wire::DataResponse {
    let mut response = wire::DataResponse::default();
    match answer {
        Ok(DataAnswer::Uri(uri)) => response.uri = uri.into(),
        Ok(DataAnswer::Content(content)) => response.content = content,
        Ok(DataAnswer::Entries(entries)) => {
            response.entries = entries.iter().map(data_entry).collect();
        }
        Ok(DataAnswer::Stat(stat)) => {
            response.stat = Some(wire::DataStat {
                size: stat.size.try_into().unwrap_or(i64::MAX),
                mime: text(&stat.mime),
                modified: stat.modified.into(),
            });
        }
        Err(failure) => response.error = Some(hub_error(&failure)),
    }
    response
}

/// The name of an operation on the wire.
pub(crate) fn operation_name(operation: &DataOperation) -> &'static str {
    match operation {
        DataOperation::Read => "read",
        DataOperation::Write { .. } => "write",
        DataOperation::List => "list",
        DataOperation::Delete => "delete",
        DataOperation::Stat => "stat",
    }
}

/// Converts a peer's result of an operation on files.
pub(crate) fn data_answer(
    operation: &str,
    result: wire::DataResult,
) -> Result<DataAnswer, Failure> {
    if let Some(error) = &result.error {
        return Err(failure(error));
    }
    let size = |size: i64| u64::try_from(size).unwrap_or_default();
    Ok(match operation {
        "read" => DataAnswer::Content(result.content),
        "list" => {
            let entries = result.entries.iter().map(|entry| Entry {
                name: entry.name.to_string(),
                path: entry.path.to_string(),
                r#type: match &*entry.r#type {
                    "directory" => EntryKind::Directory,
                    _ => EntryKind::File,
                },
                size: size(entry.size),
                mime: Some(entry.mime.to_string().into()).filter(|_| !entry.mime.is_empty()),
            });
            DataAnswer::Entries(entries.collect())
        }
        "stat" => {
            let stat = result.stat.unwrap_or_default();
            DataAnswer::Stat(Stat {
                size: size(stat.size),
                mime: stat.mime.to_string().into(),
                modified: stat.modified.to_string(),
            })
        }
        _ => DataAnswer::Uri(result.uri.to_string()),
    })
}

/// Converts a failure that arrived inside a message.
pub(crate) fn failure(error: &wire::HubError) -> Failure {
    Failure::new(Code::parse(&error.code), error.message.to_string())
}

fn data_entry(entry: &Entry) -> wire::DataEntry {
    wire::DataEntry {
        name: text(&entry.name),
        path: text(&entry.path),
        r#type: match entry.r#type {
            EntryKind::File => "file".into(),
            EntryKind::Directory => "directory".into(),
        },
        size: entry.size.try_into().unwrap_or(i64::MAX),
        mime: text(entry.mime.as_deref().unwrap_or_default()),
    }
}
