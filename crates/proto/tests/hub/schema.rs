//! Published declarations must not change. `public.txt` is the public schema, one fact per line; no
//! line of it may change.

use std::collections::HashSet;

const PUBLIC: &str = include_str!("public.txt");
const DECLARED: &str = include_str!(concat!(env!("OUT_DIR"), "/hub.txt"));

/// Returns the message and the number in the line of a field.
fn numbered(line: &str) -> Option<(&str, u32)> {
    let mut words = line.strip_prefix("field ")?.split(' ');
    let message = words.next()?.split('.').next()?;
    Some((message, words.next()?.parse().ok()?))
}

#[test]
fn everything_public_is_declared_as_it_was() {
    let ours: HashSet<&str> = DECLARED.lines().collect();
    assert_eq!(PUBLIC.lines().count(), 225);
    for line in PUBLIC.lines() {
        assert!(ours.contains(line), "changed or missing: {line}");
    }
}

#[test]
fn additions_to_public_messages_begin_at_100() {
    let public: HashSet<&str> = PUBLIC.lines().collect();
    let named = |line: &'static str| {
        let empty = line.strip_prefix("message ");
        empty.or_else(|| Some(numbered(line)?.0))
    };
    let messages: HashSet<&str> = PUBLIC.lines().filter_map(named).collect();
    assert_eq!(messages.len(), 57);
    let mut additions = 0;
    for line in DECLARED.lines().filter(|it| !public.contains(it)) {
        if let Some((message, number)) = numbered(line)
            && messages.contains(message)
        {
            assert!(number >= 100, "{line}");
            additions += 1;
        }
    }
    assert!(additions >= 18, "{additions}");
}

#[test]
fn the_methods_of_the_reference_are_there() {
    let methods = [
        "Invoke",
        "InvokeStream",
        "ListClips",
        "GetClipManifest",
        "GetClipWeb",
        "AddClip",
        "RemoveClip",
        "ProviderStream",
        "RuntimeStream",
        "GetLogs",
        "HubInfo",
        "DataRead",
        "DataWrite",
    ];
    for method in methods {
        let start = format!("rpc {method} ");
        assert!(
            DECLARED.lines().any(|it| it.starts_with(&start)),
            "{method}"
        );
    }
}
