//! The exported page holds the whole session and accesses no network.

use std::fs;
use std::path::Path;

use crate::support::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pinion_message::ToolSpec;
use pinion_session::export::{self, Extras};
use pinion_session::{NewSession, Store};
use serde_json::{Value, json};

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    text.split_once(start).unwrap().1.split_once(end).unwrap().0
}

fn envelope(page: &str) -> Value {
    let data = between(
        page,
        r#"<script id="session-data" type="application/json">"#,
        "</script>",
    );
    serde_json::from_slice(&STANDARD.decode(data).unwrap()).unwrap()
}

#[test]
fn the_page_carries_the_session_as_it_is_on_disk() {
    let home = tempfile::tempdir().unwrap();
    let mut store = two_turns(home.path());
    store
        .append(user("</script><b>{{DATA}} \u{2028} ünïcode</b>"))
        .unwrap();
    let page = export::html(&store, Extras::default());
    let data = envelope(&page);
    let written = lines(store.file().unwrap());
    assert_eq!(data["header"], written[0]);
    assert_eq!(data["entries"].as_array().unwrap()[..], written[1..]);
    assert_eq!(data["leafId"], store.leaf().unwrap());
    assert_eq!(data.get("systemPrompt"), None);
    assert_eq!(data.get("tools"), None);

    let tools = [ToolSpec {
        name: "ls".into(),
        description: "d".into(),
        parameters: json!({}),
    }];
    let extras = Extras {
        system_prompt: Some("be kind"),
        tools: Some(&tools),
    };
    let data = envelope(&export::html(&store, extras));
    assert_eq!(data["systemPrompt"], "be kind");
    assert_eq!(
        data["tools"],
        json!([{"name":"ls","description":"d","parameters":{}}])
    );
}

#[test]
fn the_page_stands_alone() {
    let store = Store::create(NewSession::default()).unwrap();
    let page = export::html(&store, Extras::default());
    assert!(page.contains("<title>Session Export</title>"));
    let outside = page.replace(between(&page, r#"type="application/json">"#, "<"), "");
    for reach in [
        "src=\"",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
        "innerHTML",
        "eval(",
    ] {
        assert!(!outside.contains(reach), "{reach}");
    }
    assert!(!outside.contains("{{"), "every placeholder is filled");
    let nonce = between(&page, "script-src 'nonce-", "'");
    assert_eq!(outside.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
    let again = export::html(&store, Extras::default());
    assert_ne!(between(&again, "script-src 'nonce-", "'"), nonce);
}

#[test]
fn a_page_is_written_where_asked_or_under_its_default_name() {
    let home = tempfile::tempdir().unwrap();
    let memory = Store::create(NewSession::default()).unwrap();
    let write = |store: &Store, output: Option<&Path>| {
        export::to_file(store, output, home.path(), Extras::default())
    };
    let refused = write(&memory, None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Cannot export in-memory session to HTML"
    );
    let empty = new_session(home.path());
    let refused = write(&empty, None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Nothing to export yet - start a conversation first"
    );

    let store = two_turns(home.path());
    let name = write(&store, None).unwrap();
    let stem = store.file().unwrap().file_stem().unwrap().to_str().unwrap();
    assert_eq!(name, Path::new(&format!("pi-session-{stem}.html")));
    assert!(
        fs::read_to_string(home.path().join(name))
            .unwrap()
            .starts_with("<!DOCTYPE html>")
    );
    let asked = home.path().join("out.html");
    assert_eq!(write(&store, Some(&asked)).unwrap(), asked);
    let missing = home.path().join("no/such/dir/out.html");
    assert_eq!(
        write(&store, Some(&missing)).unwrap_err().code(),
        "session_io"
    );
}
