//! `clip data`: the files that a clip stores.

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

use pinion_proto::Message;
use pinion_proto::hub::{DataRequest, DataResponse};
use serde_json::json;

use crate::failure::Failure;
use crate::hub::caller::{self, print};
use crate::hub::show::{json_list, table};
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::harmless_line;

/// The largest content to send, in bytes: the hub stores less, but base64 is longer.
const FILE_LIMIT: u64 = 64 << 20;

const OPERATIONS: [&str; 5] = ["read", "write", "list", "delete", "stat"];

pub(super) const VERB: Verb = Verb::new("pinion clip", &tables::clip::DATA, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let (alias, operation, path) = match line.words.as_slice() {
        [alias, operation, path] => (alias, operation.as_str(), path.as_str()),
        [_, operation] if OPERATIONS.contains(&operation.as_str()) && operation != "list" => {
            return Err(line.wrong(&format!("{operation} needs a path")));
        }
        [alias, operation] => (alias, operation.as_str(), ""),
        _ => return Err(line.misfit()),
    };
    if !OPERATIONS.contains(&operation) {
        let hint = pinion_text::nearest(operation, OPERATIONS);
        let hint = hint.map_or_else(
            || "there are read, write, list, delete and stat".into(),
            |it| format!("did you mean {it}"),
        );
        return Err(line.wrong(&format!("unknown operation {operation}, {hint}")));
    }
    // `list` prints whole addresses, which are accepted as paths.
    let own = format!("pinix://{alias}/");
    let path = path.strip_prefix(own.as_str()).unwrap_or(path);
    let request = DataRequest {
        clip_name: alias.clone().into(),
        operation: operation.to_owned().into(),
        path: path.to_owned().into(),
        content: match operation {
            "write" => content(line)?.into(),
            _ => Vec::new().into(),
        },
        mime: line.value("--mime").unwrap_or_default().to_owned().into(),
        ..DataRequest::default()
    };
    let answer: DataResponse = caller::ask(line, "Data", &request)?;
    if let Some(error) = &answer.error {
        return Err(Failure::failed(format!("Error: {}", error.message)));
    }
    show(line, operation, &answer)
}

fn show(line: &Line, operation: &str, answer: &DataResponse) -> Result<ExitCode, Failure> {
    match operation {
        "read" => match std::io::stdout().write_all(&answer.content) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(ExitCode::SUCCESS),
        },
        "list" => {
            let rows = answer.entries.iter().map(|entry| {
                let size = match entry.r#type.as_str() {
                    "directory" => String::new(),
                    _ => entry.size.to_string(),
                };
                vec![entry.name.to_string(), size, entry.mime.to_string()]
            });
            let rows: Vec<_> = rows.collect();
            print(
                line,
                || json_list(&answer.entries),
                || table(&["NAME", "BYTES", "TYPE"], &rows),
            )
        }
        "stat" => {
            let stat = answer.stat.clone().unwrap_or_default();
            let text = || {
                let (mime, modified) = (harmless_line(&stat.mime), harmless_line(&stat.modified));
                format!("{} bytes, {mime}, changed {modified}\n", stat.size)
            };
            print(line, || stat.to_json(), text)
        }
        _ => print(
            line,
            || json!({"uri": answer.uri.as_str()}).to_string(),
            || harmless_line(&answer.uri) + "\n",
        ),
    }
}

/// Returns the content to write: `--content`, `--file`, or standard input.
fn content(line: &Line) -> Result<Vec<u8>, Failure> {
    let bytes = match (line.value("--content"), line.value("--file")) {
        (Some(_), Some(_)) => return Err(line.wrong("--content and --file exclude each other")),
        (Some(content), None) => content.as_bytes().to_vec(),
        (None, Some(path)) if path != "-" => pinion_files::read_named(path.as_ref(), FILE_LIMIT)
            .map_err(|error| Failure::failed(format!("Error: {path}: {error}")))?,
        (None, _) => {
            if std::io::stdin().is_terminal() {
                eprintln!("Reading the content from the terminal; Ctrl-D ends it.");
            }
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes)?;
            bytes
        }
    };
    match line.value("--encoding") {
        None | Some("utf-8" | "utf8") => Ok(bytes),
        Some("base64") => {
            use base64::Engine;
            let text: Vec<u8> = bytes
                .into_iter()
                .filter(|it| !it.is_ascii_whitespace())
                .collect();
            base64::engine::general_purpose::STANDARD
                .decode(text)
                .map_err(|error| line.wrong(&format!("the content is not base64: {error}")))
        }
        Some(other) => Err(line.wrong(&format!("--encoding is utf-8 or base64, not {other:?}"))),
    }
}
