//! Questions about tool calls as `session/request_permission`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pinion_approval::{Absence, Answer, Ask, Question};
use serde_json::{Value, json};

use crate::client_requests::ClientAnswer;
use crate::view::SessionView;

const ALLOW: &str = "allow";
const ALLOW_RUN: &str = "allow-run";

/// Asks the client about the tool calls of one session.
pub(crate) struct Permissions(pub Arc<SessionView>);

impl Permissions {
    async fn put(&self, question: &Question, timeout: Duration) -> Answer {
        let view = &self.0;
        let call = view.call(&question.call_id).unwrap_or_else(|| {
            json!({"toolCallId": question.call_id, "title": question.title, "status": "pending"})
        });
        let params = json!({
            "sessionId": view.id(),
            "toolCall": call,
            "options": [
                {"optionId": ALLOW, "name": "Allow once", "kind": "allow_once"},
                {"optionId": ALLOW_RUN, "name": "Allow for this run", "kind": "allow_always"},
                {"optionId": "refuse", "name": "Refuse", "kind": "reject_once"},
            ],
        });
        let mut request = view.request("session/request_permission", &params);
        match tokio::time::timeout(timeout, request.answer()).await {
            Ok(Some(answer)) => meaning(&answer),
            Ok(None) => Answer::Absent(Absence::ClientLeft),
            Err(_) => Answer::Absent(Absence::Expired),
        }
    }
}

impl Ask for Permissions {
    fn ask<'a>(&'a self, question: &'a Question, timeout: Duration) -> BoxFuture<'a, Answer> {
        Box::pin(self.put(question, timeout))
    }
}

/// Returns the option that the client selected; `None` for every other answer.
pub(crate) fn selected(answer: &ClientAnswer) -> Option<&str> {
    let outcome = &answer.as_ref().ok()?["outcome"];
    let is_selected = outcome["outcome"] == "selected";
    outcome["optionId"].as_str().filter(|_| is_selected)
}

/// Translates an answer. One that is not clearly an approval is a refusal.
fn meaning(answer: &Result<Value, Value>) -> Answer {
    match selected(answer) {
        Some(ALLOW) => Answer::Allowed,
        Some(ALLOW_RUN) => Answer::AllowedForRun,
        _ => Answer::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let selected =
            |option: Value| json!({"outcome": {"outcome": "selected", "optionId": option}});
        for (answer, expected) in [
            (Ok(selected(json!("allow"))), Answer::Allowed),
            (Ok(selected(json!("allow-run"))), Answer::AllowedForRun),
            (Ok(selected(json!("refuse"))), Answer::Refused),
            (Ok(selected(json!("Allow"))), Answer::Refused),
            (Ok(selected(json!(1))), Answer::Refused),
            (
                Ok(json!({"outcome": {"outcome": "cancelled"}})),
                Answer::Refused,
            ),
            (
                Ok(json!({"outcome": {"outcome": "cancelled", "optionId": "allow"}})),
                Answer::Refused,
            ),
            (Ok(json!({"optionId": "allow"})), Answer::Refused),
            (Ok(Value::Null), Answer::Refused),
            (Err(json!({"code": -32601})), Answer::Refused),
        ] {
            assert_eq!(meaning(&answer), expected, "{answer:?}");
        }
    }
}
