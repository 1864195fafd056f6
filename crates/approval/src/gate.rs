//! The gate before every tool call: applies the policy, asks the user if necessary, and stores grants.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use pinion_agent::{Admission, Gate, Verdict};
use serde_json::{Value, json};

use crate::call::{Grant, ToolCall};
use crate::policy::Decision;
use crate::{Absence, Answer, Ask, Mode, Policy, Question, Rule};

/// Decides which tool calls of a session may run.
pub struct Approvals {
    policy: Policy,
    /// The current mode; the policy has the first one.
    mode: Mutex<Mode>,
    /// Directories besides the working directory in which files may be read.
    roots: Arc<[PathBuf]>,
    asker: Arc<dyn Ask>,
    /// The permissions granted to the active run; cleared when it settles.
    grants: Mutex<HashSet<Grant>>,
    /// Locked during a question, because a client shows one question at a time.
    asking: tokio::sync::Mutex<()>,
}

impl Approvals {
    /// Creates a gate that applies `policy` and asks through `asker`.
    pub fn new(policy: Policy, asker: Arc<dyn Ask>) -> Self {
        Self {
            mode: Mutex::new(policy.mode),
            roots: Arc::default(),
            policy,
            asker,
            grants: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Lets calls read files in these directories as in the working directory.
    pub fn with_roots(self, roots: Vec<PathBuf>) -> Self {
        Self {
            roots: roots.into(),
            ..self
        }
    }

    /// Returns the current mode.
    pub fn mode(&self) -> Mode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the mode for the calls that follow. Open questions stay.
    pub fn set_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    fn grants(&self) -> MutexGuard<'_, HashSet<Grant>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn decide(&self, admission: Admission<'_>) -> Verdict {
        let call = ToolCall::of(&admission, &self.roots).await;
        match self.policy.decide(self.mode(), &call) {
            Decision::Run => Verdict::Run,
            Decision::Ask => self.ask(&call).await,
            Decision::Forbidden(rule) => forbidden(rule),
            Decision::NotAFile(path, reason) => refusal(
                &format!("{path} {reason}. This call is never run."),
                json!({"outcome": "not-a-file"}),
            ),
            Decision::NotPermitted => refusal(
                "No rule allows this call, and the approval mode \"deny\" never asks the user.",
                json!({"outcome": "not-allowed"}),
            ),
        }
    }

    async fn ask(&self, call: &ToolCall<'_>) -> Verdict {
        let _question = self.asking.lock().await;
        let grant = call.grant();
        // An earlier question may have granted it while this one waited.
        if self.grants().contains(&grant) {
            return Verdict::Run;
        }
        let timeout = self.policy.answer_timeout;
        let answer = self.asker.ask(&Question::about(call), timeout).await;
        match answer {
            Answer::Allowed => Verdict::Run,
            Answer::AllowedForRun => {
                self.grants().insert(grant);
                Verdict::Run
            }
            Answer::Refused => {
                refusal("The user refused this call.", json!({"outcome": "refused"}))
            }
            Answer::Absent(Absence::Expired) => {
                let seconds = timeout.as_secs();
                refusal(
                    &format!("No answer within {seconds} s, so this call was not run."),
                    json!({"outcome": "expired", "timeoutSeconds": seconds}),
                )
            }
            Answer::Absent(Absence::NoClient) => refusal(
                "There is no client to ask, so this call was not run.",
                json!({"outcome": "absent"}),
            ),
            Answer::Absent(Absence::ClientLeft) => refusal(
                "The client left without an answer, so this call was not run.",
                json!({"outcome": "absent"}),
            ),
        }
    }
}

impl Gate for Approvals {
    fn begin(&self) {
        self.grants().clear();
    }

    fn settled(&self) {
        self.grants().clear();
    }

    fn admit<'a>(&'a self, call: Admission<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(self.decide(call))
    }
}

fn forbidden(rule: &Rule) -> Verdict {
    refusal(
        &format!("The rule \"{}\" forbids this call.", rule.text()),
        json!({
            "outcome": "denied-by-rule",
            "rule": rule.text(),
            "from": rule.origin().code(),
        }),
    )
}

fn refusal(text: &str, approval: Value) -> Verdict {
    Verdict::Refuse {
        text: text.to_owned(),
        details: json!({"approval": approval}),
    }
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
