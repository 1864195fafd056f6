//! Exports a session as one HTML page that works without a network.
//!
//! The page holds `{header, entries, leafId, systemPrompt?, tools?}` as base64 in the element `session-data`, the
//! envelope that other viewers read too, and a small program that draws it. The program inserts text from the session
//! only as text nodes, never as markup, and the page's content security policy forbids loading or running anything
//! else.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pinion_files::Replace;
use pinion_jsonl::json;
use pinion_message::ToolSpec;

use crate::{Entry, SessionError, Store};

const PAGE: &str = include_str!("export/page.html");
const STYLE: &str = include_str!("export/style.css");
const SCRIPTS: [&str; 5] = [
    include_str!("export/session.js"),
    include_str!("export/markdown.js"),
    include_str!("export/highlight.js"),
    include_str!("export/render.js"),
    include_str!("export/page.js"),
];

/// Data of a running agent that is not in the session file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    pub system_prompt: Option<&'a str>,
    /// The active tools.
    pub tools: Option<&'a [ToolSpec]>,
}

/// Returns the page.
pub fn html(store: &Store, extras: Extras<'_>) -> String {
    let data = STANDARD.encode(data(store, extras));
    let nonce = uuid::Uuid::new_v4().simple().to_string();
    let script = SCRIPTS.concat();
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + script.len() + data.len());
    let mut rest = PAGE;
    while let Some((before, (name, after))) = rest
        .split_once("{{")
        .and_then(|(before, rest)| Some((before, rest.split_once("}}")?)))
    {
        page.push_str(before);
        page.push_str(match name {
            "NONCE" => &nonce,
            "STYLE" => STYLE,
            "DATA" => &data,
            "SCRIPT" => &script,
            other => other,
        });
        rest = after;
    }
    page.push_str(rest);
    page
}

/// A page that is not written yet.
#[derive(Debug)]
pub struct Export {
    output: PathBuf,
    page: String,
}

impl Export {
    /// Makes the page of a session that is on disk, for the path `output` or [`default_name`].
    pub fn new(
        store: &Store,
        output: Option<&Path>,
        extras: Extras<'_>,
    ) -> Result<Self, SessionError> {
        let session = store.file().ok_or(SessionError::InMemory)?;
        if !store.is_on_disk() {
            return Err(SessionError::NothingToExport);
        }
        Ok(Self {
            output: output.map_or_else(|| default_name(session), Path::to_owned),
            page: html(store, extras),
        })
    }

    /// Writes the page; a relative path is relative to `directory`. Blocks.
    ///
    /// Returns the path as given, or the default name.
    pub fn write(self, directory: &Path) -> Result<PathBuf, SessionError> {
        let Self { output, page } = self;
        pinion_files::replace(&directory.join(&output), page.as_bytes(), Replace::USER)
            .map_err(SessionError::io("write", &output))?;
        Ok(output)
    }
}

/// Writes the page to `output` or [`default_name`]; a relative path is relative to `directory`.
///
/// Returns the path as given, or the default name.
pub fn to_file(
    store: &Store,
    output: Option<&Path>,
    directory: &Path,
    extras: Extras<'_>,
) -> Result<PathBuf, SessionError> {
    Export::new(store, output, extras)?.write(directory)
}

/// Returns `pi-session-<stem>.html`.
pub fn default_name(session: &Path) -> PathBuf {
    let stem = session.file_stem().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!("pi-session-{stem}.html"))
}

/// Returns the envelope. Lines are copied unchanged.
fn data(store: &Store, extras: Extras<'_>) -> Vec<u8> {
    let mut out = br#"{"header":"#.to_vec();
    out.extend_from_slice(store.header().json());
    out.extend_from_slice(br#","entries":["#);
    let mut separator = false;
    for line in store.entries().filter_map(Entry::shown) {
        if std::mem::replace(&mut separator, true) {
            out.push(b',');
        }
        out.extend_from_slice(line.get().as_bytes());
    }
    out.extend_from_slice(br#"],"leafId":"#);
    json::append(&mut out, &store.leaf());
    if let Some(prompt) = extras.system_prompt {
        out.extend_from_slice(br#","systemPrompt":"#);
        json::append(&mut out, prompt);
    }
    if let Some(tools) = extras.tools {
        out.extend_from_slice(br#","tools":"#);
        json::append(&mut out, tools);
    }
    out.push(b'}');
    out
}
