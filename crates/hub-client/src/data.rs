//! The files that a clip stores: requests, contents and answers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pinion_proto::hub::{DataRequest, DataResponse, DataStat};
use pinion_text::{harmless_line, nearest};

const OPERATIONS: [&str; 5] = ["read", "write", "list", "delete", "stat"];

/// Creates the request for an operation without content. The error is for the user.
pub fn data_request(
    alias: &str,
    operation: &str,
    path: Option<&str>,
) -> Result<DataRequest, String> {
    if !OPERATIONS.contains(&operation) {
        let hint = nearest(operation, OPERATIONS);
        let hint = hint.map_or_else(
            || "there are read, write, list, delete and stat".into(),
            |it| format!("did you mean {it}"),
        );
        return Err(format!("unknown operation {operation}, {hint}"));
    }
    let path = match path {
        None if operation == "list" => "",
        None => return Err(format!("{operation} needs a path")),
        // `list` prints whole addresses, which are accepted as paths.
        Some(path) => path
            .strip_prefix(&format!("pinix://{alias}/"))
            .unwrap_or(path),
    };
    Ok(DataRequest {
        clip_name: alias.to_owned().into(),
        operation: operation.to_owned().into(),
        path: path.to_owned().into(),
        ..DataRequest::default()
    })
}

/// Decodes content that is written in this encoding, UTF-8 by default. The error is for the user.
pub fn decode_content(bytes: Vec<u8>, encoding: Option<&str>) -> Result<Vec<u8>, String> {
    match encoding {
        None | Some("utf-8" | "utf8") => Ok(bytes),
        Some("base64") => {
            let text: Vec<u8> = bytes
                .into_iter()
                .filter(|it| !it.is_ascii_whitespace())
                .collect();
            let decoded = STANDARD.decode(text);
            decoded.map_err(|error| format!("the content is not base64: {error}"))
        }
        Some(other) => Err(format!("--encoding is utf-8 or base64, not {other:?}")),
    }
}

/// Returns the cells of the listed files: name, bytes and type.
pub fn data_rows(answer: &DataResponse) -> Vec<Vec<String>> {
    let rows = answer.entries.iter().map(|entry| {
        let size = match entry.r#type.as_str() {
            "directory" => String::new(),
            _ => entry.size.to_string(),
        };
        vec![entry.name.to_string(), size, entry.mime.to_string()]
    });
    rows.collect()
}

/// Formats the properties of a file.
pub fn stat_text(stat: &DataStat) -> String {
    let (mime, modified) = (harmless_line(&stat.mime), harmless_line(&stat.modified));
    format!("{} bytes, {mime}, changed {modified}\n", stat.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_clip_are_paths() {
        let request = data_request("todo", "read", Some("pinix://todo/a/b.txt")).unwrap();
        assert_eq!(request.path.as_str(), "a/b.txt");
        assert_eq!(
            data_request("todo", "list", None).unwrap().path.as_str(),
            ""
        );
        let error = data_request("todo", "stat", None).unwrap_err();
        assert_eq!(error, "stat needs a path");
        let error = data_request("todo", "wirte", None).unwrap_err();
        assert_eq!(error, "unknown operation wirte, did you mean write");
    }

    #[test]
    fn base64_may_have_line_breaks() {
        let decoded = decode_content(b"aGk\n=\n".to_vec(), Some("base64"));
        assert_eq!(decoded.unwrap(), b"hi");
        assert!(decode_content(b"?".to_vec(), Some("base64")).is_err());
    }
}
