//! Pages of `session/list`.

use pinion_session::SessionInfo;
use serde_json::{Value, json};

use crate::error::AcpError;
use crate::{time, title};

/// Sessions per page.
const PAGE: usize = 50;

/// Returns the page after `cursor`. `sessions` are all of them, in any order; those without a message of the user are
/// left out.
pub(crate) fn page(
    mut sessions: Vec<SessionInfo>,
    cursor: Option<&str>,
) -> Result<Value, AcpError> {
    // An absent first message reads as a text in parentheses.
    sessions.retain(|info| info.message_count > 0 && info.first_message != "(no messages)");
    sessions.sort_by(|a, b| (b.modified, &a.id).cmp(&(a.modified, &b.id)));
    let after = cursor.map(read_cursor).transpose()?;
    if let Some((modified, id)) = after {
        sessions.retain(|info| {
            (std::cmp::Reverse(info.modified), info.id.as_str()) > (std::cmp::Reverse(modified), id)
        });
    }
    let has_more = sessions.len() > PAGE;
    sessions.truncate(PAGE);
    let mut page = json!({});
    if has_more && let Some(last) = sessions.last() {
        page["nextCursor"] = format!("{}:{}", last.modified, last.id).into();
    }
    page["sessions"] = sessions.iter().map(described).collect();
    Ok(page)
}

fn read_cursor(cursor: &str) -> Result<(i64, &str), AcpError> {
    let parts = cursor.split_once(':').filter(|(_, id)| !id.is_empty());
    let read = parts.and_then(|(modified, id)| Some((modified.parse().ok()?, id)));
    read.ok_or_else(|| AcpError::invalid_params("unknown cursor"))
}

fn described(info: &SessionInfo) -> Value {
    let mut session = json!({"sessionId": info.id, "cwd": info.cwd});
    let title = info
        .name
        .clone()
        .or_else(|| title::of_message(&info.first_message));
    if let Some(title) = title {
        session["title"] = title.into();
    }
    if let Some(at) = time::iso(info.modified) {
        session["updatedAt"] = at.into();
    }
    session
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: usize, modified: i64, first_message: &str) -> SessionInfo {
        SessionInfo {
            path: "/a".into(),
            id: format!("id-{id:03}"),
            cwd: "/work".into(),
            name: None,
            parent_session_path: None,
            created: 0,
            modified,
            message_count: 1,
            first_message: first_message.to_owned(),
        }
    }

    #[test]
    fn pages_hold_every_session_once_newest_first() {
        let mut all: Vec<SessionInfo> = (0..120)
            .map(|n| session(n, (n / 3) as i64, "hello"))
            .collect();
        all.push(session(999, 1000, "(no messages)"));
        let mut seen = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = page(all.clone(), cursor.as_deref()).unwrap();
            let sessions = page["sessions"].as_array().unwrap().clone();
            seen.extend(
                sessions
                    .iter()
                    .map(|it| it["sessionId"].as_str().unwrap().to_owned()),
            );
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(seen.len(), 120);
        assert_eq!(seen[0], "id-117");
        let mut unique = seen.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), 120);
        assert!(page(all, Some("bad")).is_err());
    }
}
