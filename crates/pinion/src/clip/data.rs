//! `clip data`: the files that a clip stores.

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

use pinion_hub_client::{data_request, data_rows, decode_content, stat_text};
use pinion_proto::Message;
use pinion_proto::hub::DataResponse;
use serde_json::json;

use crate::failure::{Context, Failure};
use crate::hub::caller::{self, print};
use crate::hub::show::{json_list, table};
use crate::verb::{Line, Verb};
use pinion_cli::tables;
use pinion_text::harmless_line;

/// The largest content to send, in bytes: the hub stores less, but base64 is longer.
const FILE_LIMIT: u64 = 64 << 20;

pub(super) const VERB: Verb = Verb::new("pinion clip", &tables::clip::DATA, run);

fn run(line: &Line) -> Result<ExitCode, Failure> {
    let mut request = match line.words.as_slice() {
        [alias, operation] => data_request(alias, operation, None),
        [alias, operation, path] => data_request(alias, operation, Some(path)),
        _ => return Err(line.misfit()),
    }
    .map_err(|problem| line.wrong(problem))?;
    let operation = request.operation.to_string();
    request.mime = line.value("--mime").unwrap_or_default().to_owned().into();
    if operation == "write" {
        request.content = content(line)?.into();
    }
    let answer: DataResponse = caller::ask(line, "Data", &request)?;
    if let Some(error) = &answer.error {
        return Err(Failure::failed(&error.message));
    }
    show(line, &operation, &answer)
}

fn show(line: &Line, operation: &str, answer: &DataResponse) -> Result<ExitCode, Failure> {
    match operation {
        "read" => match std::io::stdout().write_all(&answer.content) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(ExitCode::SUCCESS),
        },
        "list" => {
            let rows = data_rows(answer);
            print(
                line,
                || json_list(&answer.entries),
                || table(&["NAME", "BYTES", "TYPE"], &rows),
            )
        }
        "stat" => {
            let stat = answer.stat.clone().unwrap_or_default();
            print(line, || stat.to_json(), || stat_text(&stat))
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
        (None, Some(path)) if path != "-" => {
            pinion_files::read_named(path.as_ref(), FILE_LIMIT).context(path)?
        }
        (None, _) => {
            if std::io::stdin().is_terminal() {
                eprintln!("Reading the content from the terminal; Ctrl-D ends it.");
            }
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes)?;
            bytes
        }
    };
    let decoded = decode_content(bytes, line.value("--encoding"));
    decoded.map_err(|problem| line.wrong(problem))
}
