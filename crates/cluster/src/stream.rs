//! The configuration of buckets: what is requested, and a comparison with what a server made of it.

use serde_json::{Value, json};

use crate::names::Bucket;

/// Seconds for which a removed key leaves a mark.
pub const MARKER_LIFETIME_SECONDS: u64 = 300;

/// The number of servers that store each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replicas(pub u8);

/// Returns the configuration of a bucket's stream.
pub fn bucket(bucket: &Bucket, replicas: Replicas) -> Value {
    let nanoseconds = |seconds: u64| seconds * 1_000_000_000;
    json!({
        "name": bucket.stream(),
        "subjects": [bucket.subjects()],
        "num_replicas": replicas.0,
        "storage": "file",
        "retention": "limits",
        "discard": "new",
        "max_msgs_per_subject": 1,
        "max_msg_size": 1_000_000,
        "allow_rollup_hdrs": true,
        "deny_delete": true,
        "allow_direct": true,
        "allow_msg_ttl": true,
        "subject_delete_marker_ttl": nanoseconds(MARKER_LIFETIME_SECONDS),
        "duplicate_window": nanoseconds(120),
        "republish": { "src": bucket.subjects(), "dest": bucket.feed_subjects() },
        "metadata": { "pinion": "1" },
    })
}

/// Returns the first member of `wanted` that `present` has differently, with both values. Members that the server added
/// are ignored.
pub fn difference(wanted: &Value, present: &Value) -> Option<String> {
    difference_at("", wanted, present)
}

fn difference_at(path: &str, wanted: &Value, present: &Value) -> Option<String> {
    match (wanted, present) {
        (Value::Object(wanted), Value::Object(present)) => {
            wanted.iter().find_map(|(name, value)| {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                let found = present.get(name).unwrap_or(&Value::Null);
                difference_at(&path, value, found)
            })
        }
        _ if wanted == present => None,
        _ => Some(format!("{path} is {present} instead of {wanted}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::ClusterName;

    #[test]
    fn a_member_that_a_server_left_out_is_named() {
        let bucket = bucket(&ClusterName::default().control_bucket(), Replicas(3));
        let mut present = bucket.clone();
        present["created"] = json!("now");
        present["metadata"]["_nats.ver"] = json!("2.15.1");
        assert_eq!(difference(&bucket, &present), None);
        present.as_object_mut().unwrap().remove("allow_msg_ttl");
        let words = "allow_msg_ttl is null instead of true";
        assert_eq!(difference(&bucket, &present).as_deref(), Some(words));
        present["allow_msg_ttl"] = json!(true);
        present["republish"]["dest"] = json!("x.>");
        let found = difference(&bucket, &present).unwrap();
        assert!(found.starts_with("republish.dest is \"x.>\""), "{found}");
    }
}
