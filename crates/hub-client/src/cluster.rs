//! The report of a hub about its cluster, over HTTP.

use pinion_http::{FetchError, FetchRequest, Fetcher, Redirect};
use pinion_status::{Code, Failure};
use serde_json::Value;

use crate::HubClient;

/// The longest report, in bytes.
const REPORT_LIMIT: usize = 16 * 1024 * 1024;

/// Asks a hub for its members. Fails if the hub belongs to no cluster.
pub async fn cluster_report(client: &HubClient) -> Result<Value, Failure> {
    let mut headers = Vec::new();
    if let Some(token) = client.token() {
        headers.push(("authorization".to_owned(), format!("Bearer {token}")));
    }
    let request = FetchRequest {
        method: "GET".to_owned(),
        url: format!("{}/cluster", client.url()),
        headers,
        body: None,
        redirect: Redirect::Refuse,
    };
    let unreachable = |error: FetchError| {
        let message = format!("no connection to {}: {error}", client.url());
        client.explain(Failure::new(Code::Unavailable, message))
    };
    let mut response = Fetcher::default()
        .fetch(request)
        .await
        .map_err(unreachable)?;
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        text.extend_from_slice(&chunk);
        if text.len() > REPORT_LIMIT {
            let message = format!("the hub's answer is larger than {REPORT_LIMIT} bytes");
            return Err(Failure::new(Code::ResourceExhausted, message));
        }
    }
    let answer: Value = serde_json::from_slice(&text).unwrap_or_default();
    match response.status {
        200 if answer.is_object() => Ok(answer),
        // Without a cluster the address does not exist, or is a page of the portal.
        200 | 404 => Err(Failure::new(
            Code::FailedPrecondition,
            format!(
                "the hub at {} belongs to no cluster; start it with `pinion hub serve --cluster URLS`",
                client.url()
            ),
        )),
        status => {
            let code = Code::parse(answer["error"]["code"].as_str().unwrap_or_default());
            let message = match answer["error"]["message"].as_str() {
                Some(message) => message.to_owned(),
                None => format!("the hub answers with {status}"),
            };
            Err(client.explain(Failure::new(code, message)))
        }
    }
}
