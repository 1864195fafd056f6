//! Requests on standard input: parses a line and decides whether it is accepted.

use pinion_proto::rpc::{RpcRequestLine, rpc_request_line};
use pinion_proto::{Message, Strictness};

use crate::frames::Address;
use crate::ids;
use crate::outgoing::{Control, Out, Terminal};
use crate::pb::Text;

/// The longest accepted line in bytes, without its LF.
pub const LINE_LIMIT: usize = 10 * 1024 * 1024 - 1;
/// The error for a longer line.
pub const LINE_TOO_LONG: &str = "bufio.Scanner: token too long";

/// The stable name of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the protocol")]
pub enum ErrorCode {
    RunnerInitFailed,
    InitialSnapshotFailed,
    EngineInitFailed,
    SubmitFailed,
    WaitFailed,
    SnapshotFailed,
    RunFailed,
    InvalidRequestJson,
    SessionMismatch,
    SessionBusy,
    EmptyPrompt,
    UnknownRequest,
    CancelFailed,
    NoActiveRequest,
    StdinReadFailed,
    TuiFailed,
    /// Specific to pinion: the timeline could not be stored. The run continues without it.
    StoreFailed,
}

impl ErrorCode {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunnerInitFailed => "runner_init_failed",
            Self::InitialSnapshotFailed => "initial_snapshot_failed",
            Self::EngineInitFailed => "engine_init_failed",
            Self::SubmitFailed => "submit_failed",
            Self::WaitFailed => "wait_failed",
            Self::SnapshotFailed => "snapshot_failed",
            Self::RunFailed => "run_failed",
            Self::InvalidRequestJson => "invalid_request_json",
            Self::SessionMismatch => "session_mismatch",
            Self::SessionBusy => "session_busy",
            Self::EmptyPrompt => "empty_prompt",
            Self::UnknownRequest => "unknown_request",
            Self::CancelFailed => "cancel_failed",
            Self::NoActiveRequest => "no_active_request",
            Self::StdinReadFailed => "stdin_read_failed",
            Self::TuiFailed => "tui_failed",
            Self::StoreFailed => "store_failed",
        }
    }
}

/// The result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoneStatus {
    /// The run finished, or the request was served.
    Ok,
    /// The run was stopped.
    Stopped,
    /// The run failed, or the request was refused.
    Failed,
    /// The answer to shutdown; the last frame.
    Shutdown,
}

impl DoneStatus {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Shutdown => "shutdown",
        }
    }
}

/// A parsed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// As the client sent it, trimmed; empty if it sent none.
    pub session_id: Text,
    /// As the client sent it, trimmed; generated if it sent none.
    pub request_id: Text,
    pub kind: RequestKind,
}

/// The kind of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestKind {
    /// Sends this trimmed prompt to the model.
    Submit(String),
    /// Stops the run.
    Cancel,
    /// Asks for the state of the session.
    Snapshot,
    /// Ends the process.
    Shutdown,
    /// An unknown request, with its name.
    Unknown(String),
    /// The line names no request.
    Empty,
}

/// The reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The stable name of the error.
    pub code: ErrorCode,
    /// A message for people.
    pub message: String,
    /// The status of the `done` frame; `None` for a line that is not a request.
    pub done: Option<DoneStatus>,
}

impl Refusal {
    /// Creates a refusal that ends the request as failed.
    pub fn failed(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            done: Some(DoneStatus::Failed),
        }
    }

    /// Creates the refusal of a line that names no request, sent after the active run has ended. The words are
    /// Pinocchio's, because clients compare them.
    pub fn empty_request() -> Self {
        Self::failed(ErrorCode::UnknownRequest, "request oneof is empty")
    }

    /// Creates the refusal of an unknown request, sent after the active run has ended.
    pub fn unknown_request(name: &str) -> Self {
        Self::failed(
            ErrorCode::UnknownRequest,
            format!("unknown request {name:?}; use submit, cancel, snapshot or shutdown"),
        )
    }

    /// Returns the frames that report the refusal.
    pub fn frames(self, address: &Address) -> Vec<Out> {
        let error = Control::Error {
            code: self.code,
            message: self.message,
            terminal: Terminal::No,
        };
        let done = self.done.map(Control::Done);
        let frame = |control| Out::Control {
            address: address.clone(),
            control,
        };
        [Some(error), done]
            .into_iter()
            .flatten()
            .map(frame)
            .collect()
    }
}

/// Parses a line; `None` if it is blank.
pub fn decode(line: &[u8]) -> Result<Option<Request>, Refusal> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let decoded = RpcRequestLine::decode_json(line, Strictness::Lenient);
    let decoded = decoded.map_err(|error| Refusal {
        code: ErrorCode::InvalidRequestJson,
        message: error.to_string(),
        done: None,
    })?;
    let kind = match decoded.request {
        Some(rpc_request_line::Request::Submit(submit)) => {
            RequestKind::Submit(submit.prompt.trim().to_owned())
        }
        Some(rpc_request_line::Request::Cancel(_)) => RequestKind::Cancel,
        Some(rpc_request_line::Request::Snapshot(_)) => RequestKind::Snapshot,
        Some(rpc_request_line::Request::Shutdown(_)) => RequestKind::Shutdown,
        None => match unknown_member(line) {
            Some(name) => RequestKind::Unknown(name),
            None => RequestKind::Empty,
        },
    };
    let request_id = match decoded.request_id.trim() {
        "" => ids::new_id().into(),
        id => Text::new(id),
    };
    Ok(Some(Request {
        session_id: Text::from(decoded.session_id.trim().to_owned()),
        request_id,
        kind,
    }))
}

/// The members of a request in protobuf JSON.
const MEMBERS: [&str; 9] = [
    "version",
    "sessionId",
    "session_id",
    "requestId",
    "request_id",
    "submit",
    "cancel",
    "snapshot",
    "shutdown",
];

/// The longest unknown name that an error repeats, in characters.
const MAX_QUOTED_NAME: usize = 40;

/// Returns the first unknown member of a line.
fn unknown_member(line: &[u8]) -> Option<String> {
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(line).ok()?;
    let name = members.keys().find(|name| !MEMBERS.contains(&&***name))?;
    Some(name.chars().take(MAX_QUOTED_NAME).collect())
}

/// Reports whether a submit is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// No submit is active.
    Idle,
    /// A submit is active.
    Busy,
}

/// The session that a process serves: the one that the first request names, or the default.
#[derive(Debug)]
pub struct Binding {
    default: Text,
    bound: Option<Text>,
}

impl Binding {
    /// Creates a binding that the first request fixes; requests without a session use `default`.
    pub fn new(default: impl Into<Text>) -> Self {
        Self {
            default: default.into(),
            bound: None,
        }
    }

    /// Creates a binding that is fixed from the start.
    pub fn to(session_id: impl Into<Text>) -> Self {
        let default = session_id.into();
        Self {
            bound: Some(default.clone()),
            default,
        }
    }

    /// Returns the address of frames outside requests.
    pub fn default_address(&self) -> Address {
        Address {
            session_id: self.default.clone(),
            request_id: Text::default(),
        }
    }

    /// Returns the session that the process is bound to.
    pub fn bound(&self) -> Option<&Text> {
        self.bound.as_ref()
    }

    /// Decides whether `request` is accepted. Returns the address of its answer, or that of its refusal and the reason.
    ///
    /// A request without a session id belongs to the bound session. An empty request passes, because it is refused only
    /// after the active run has ended: [`Refusal::empty_request`].
    pub fn check(
        &mut self,
        request: &Request,
        activity: Activity,
    ) -> Result<Address, (Address, Refusal)> {
        let bound = self.bound.get_or_insert_with(|| {
            if request.session_id.is_empty() {
                self.default.clone()
            } else {
                request.session_id.clone()
            }
        });
        let address = Address {
            session_id: bound.clone(),
            request_id: request.request_id.clone(),
        };
        let given = &request.session_id;
        let refusal = match (&request.kind, activity) {
            _ if !given.is_empty() && given != bound => Refusal::failed(
                ErrorCode::SessionMismatch,
                format!("stdin RPC process is bound to session {bound}; got {given}"),
            ),
            (RequestKind::Submit(prompt), _) if prompt.is_empty() => {
                Refusal::failed(ErrorCode::EmptyPrompt, "prompt is empty")
            }
            (RequestKind::Submit(_), Activity::Busy) => Refusal::failed(
                ErrorCode::SessionBusy,
                format!("stdin RPC session {bound} already has an active submit"),
            ),
            (RequestKind::Cancel, Activity::Idle) => Refusal {
                code: ErrorCode::NoActiveRequest,
                message: format!("stdin RPC session {bound} has no active submit"),
                done: Some(DoneStatus::Ok),
            },
            _ => return Ok(address),
        };
        Err((address, refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(line: &str) -> Request {
        decode(line.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn the_first_request_that_decodes_binds() {
        let mut binding = Binding::new("default");
        assert!(decode(b"not-json").is_err());
        assert!(binding.bound().is_none());
        let blank = request(r#"{"sessionId":" s1 ","requestId":" a ","submit":{"prompt":"  "}}"#);
        let (address, refusal) = binding.check(&blank, Activity::Idle).unwrap_err();
        assert_eq!((&*address.session_id, &*address.request_id), ("s1", "a"));
        assert_eq!(refusal.code, ErrorCode::EmptyPrompt);
        let foreign = request(r#"{"sessionId":"s2","snapshot":{}}"#);
        let (address, refusal) = binding.check(&foreign, Activity::Idle).unwrap_err();
        assert_eq!(address.session_id, "s1");
        assert_eq!(
            refusal.message,
            "stdin RPC process is bound to session s1; got s2"
        );
        let omitted = request(r#"{"snapshot":{}}"#);
        let address = binding.check(&omitted, Activity::Idle).unwrap();
        assert_eq!(address.session_id, "s1");
        assert!(!address.request_id.is_empty());
    }

    #[test]
    fn without_a_session_the_default_is_bound() {
        let mut binding = Binding::new("default");
        let address = binding
            .check(&request(r#"{"snapshot":{}}"#), Activity::Idle)
            .unwrap();
        assert_eq!(address.session_id, "default");
        let named = request(r#"{"sessionId":"s1","snapshot":{}}"#);
        assert!(binding.check(&named, Activity::Idle).is_err());
    }

    #[test]
    fn what_may_be_asked_depends_on_the_run() {
        let mut binding = Binding::to("s1");
        let submit = request(r#"{"submit":{"prompt":"x"}}"#);
        let cancel = request(r#"{"cancel":{}}"#);
        assert!(binding.check(&submit, Activity::Idle).is_ok());
        assert!(binding.check(&cancel, Activity::Busy).is_ok());
        let busy = binding.check(&submit, Activity::Busy).unwrap_err().1;
        assert_eq!(
            busy.message,
            "stdin RPC session s1 already has an active submit"
        );
        let idle = binding.check(&cancel, Activity::Idle).unwrap_err().1;
        assert_eq!(idle.message, "stdin RPC session s1 has no active submit");
        assert_eq!(idle.done, Some(DoneStatus::Ok));
        let empty = request("{}");
        assert_eq!(empty.kind, RequestKind::Empty);
        assert!(binding.check(&empty, Activity::Busy).is_ok());
    }

    #[test]
    fn a_request_that_does_not_exist_is_named() {
        let kind = |line: &str| request(line).kind;
        let unknown = |name: &str| RequestKind::Unknown(name.to_owned());
        assert_eq!(kind(r#"{"submt":{"prompt":"x"}}"#), unknown("submt"));
        assert_eq!(
            kind(r#"{"version":1,"session_id":"s","requestId":"r","Cancel":{}}"#),
            unknown("Cancel")
        );
        let long = "x".repeat(1000);
        assert_eq!(
            kind(&format!("{{\"{long}\":1}}")),
            unknown(&long[..MAX_QUOTED_NAME])
        );
        assert_eq!(kind(r#"{"version":1,"submit":null}"#), RequestKind::Empty);
        assert_eq!(
            Refusal::unknown_request("submt").message,
            "unknown request \"submt\"; use submit, cancel, snapshot or shutdown"
        );
    }

    #[test]
    fn lines_are_accepted_and_refused_as_the_original_does() {
        let table = include_str!("../../../tests/pinocchio/request-codec.json");
        let rows: Vec<serde_json::Value> = serde_json::from_str(table).unwrap();
        assert!(rows.len() > 20);
        for row in rows {
            let line = row["line"].as_str().unwrap();
            let decoded = decode(line.as_bytes());
            assert_eq!(decoded.is_ok(), row["accepted"] == true, "{row}");
            let Ok(Some(decoded)) = decoded else { continue };
            let kind = match decoded.kind {
                RequestKind::Submit(_) => "submit",
                RequestKind::Cancel => "cancel",
                RequestKind::Snapshot => "snapshot",
                RequestKind::Shutdown => "shutdown",
                RequestKind::Unknown(_) | RequestKind::Empty => "",
            };
            assert_eq!(row["request"].as_str().unwrap_or(""), kind, "{row}");
        }
    }

    #[test]
    fn blank_lines_are_nothing() {
        assert_eq!(decode(b" \t\r"), Ok(None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_a_refusal(line in any::<Vec<u8>>()) {
            if let Err(refusal) = decode(&line) {
                prop_assert_eq!(refusal.code, ErrorCode::InvalidRequestJson);
                prop_assert!(refusal.done.is_none() && !refusal.message.is_empty());
            }
        }
    }
}
