//! Requests on stdin: what a line asks, and whether it may be asked.

use pinion_proto::rpc::{RpcRequestLine, rpc_request_line};
use pinion_proto::{Message, Strictness};

use crate::frames::Address;
use crate::ids;
use crate::outgoing::{Control, Out, Terminal};
use crate::pb::Text;

/// The longest line that is read, without its LF.
pub const LINE_LIMIT: usize = 10 * 1024 * 1024 - 1;
/// What a client is told of a longer one.
pub const LINE_TOO_LONG: &str = "bufio.Scanner: token too long";

/// What went wrong, as a name that does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the protocol")]
pub enum Code {
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
    /// Ours: the timeline could not be kept. The run goes on without it.
    StoreFailed,
}

impl Code {
    /// The name on the wire.
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

/// How a request ended.
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
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Shutdown => "shutdown",
        }
    }
}

/// What a line asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// As the client gave it, trimmed; empty where it gave none.
    pub session_id: Text,
    /// As the client gave it, trimmed; invented where it gave none.
    pub request_id: Text,
    /// What is asked.
    pub kind: RequestKind,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestKind {
    /// Say something to the model; trimmed.
    Submit(String),
    /// Stop the run.
    Cancel,
    /// Show the session.
    Snapshot,
    /// End the process.
    Shutdown,
    /// A request this protocol does not have, by its name.
    Unknown(String),
    /// The line names no request.
    Empty,
}

/// Why a request is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Why, as a name that does not change.
    pub code: Code,
    /// Why, in words.
    pub message: String,
    /// How the request is told to be over; a line that is no request has no end.
    pub done: Option<DoneStatus>,
}

impl Refusal {
    /// A refusal after which the request is over and failed.
    pub fn failed(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            done: Some(DoneStatus::Failed),
        }
    }

    /// For a line that names no request, once the active run is over. The words are Pinocchio's, which clients compare.
    pub fn empty_request() -> Self {
        Self::failed(Code::UnknownRequest, "request oneof is empty")
    }

    /// For a request this protocol does not have, once the active run is over.
    pub fn unknown_request(name: &str) -> Self {
        Self::failed(
            Code::UnknownRequest,
            format!("unknown request {name:?}; use submit, cancel, snapshot or shutdown"),
        )
    }

    /// The frames that tell of it.
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

/// Reads a line; `None` if it is blank.
pub fn decode(line: &[u8]) -> Result<Option<Request>, Refusal> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let decoded = RpcRequestLine::decode_json(line, Strictness::Lenient);
    let decoded = decoded.map_err(|error| Refusal {
        code: Code::InvalidRequestJson,
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

/// The members of a request, as protobuf's JSON spells them.
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
const NAME_SHOWN: usize = 40;

/// The first member of a line that a request does not have.
fn unknown_member(line: &[u8]) -> Option<String> {
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(line).ok()?;
    let name = members.keys().find(|name| !MEMBERS.contains(&&***name))?;
    Some(name.chars().take(NAME_SHOWN).collect())
}

/// Whether a submit is being served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// None is.
    Idle,
    /// One is.
    Busy,
}

/// The session a process serves: the one the first request names, or the default.
#[derive(Debug)]
pub struct Binding {
    default: Text,
    bound: Option<Text>,
}

impl Binding {
    /// A process that is bound by its first request; `default` is the session of those that name none.
    pub fn new(default: impl Into<Text>) -> Self {
        Self {
            default: default.into(),
            bound: None,
        }
    }

    /// A process that is bound from the start.
    pub fn to(session_id: impl Into<Text>) -> Self {
        let default = session_id.into();
        Self {
            bound: Some(default.clone()),
            default,
        }
    }

    /// Whose frames are that belong to no request.
    pub fn default_address(&self) -> Address {
        Address {
            session_id: self.default.clone(),
            request_id: Text::default(),
        }
    }

    /// The session the process is bound to.
    pub fn bound(&self) -> Option<&Text> {
        self.bound.as_ref()
    }

    /// Whether `request` may be served: whose frames its answer is, or whose its refusal and why.
    ///
    /// A request without a session id is meant for the session the process is bound to. One that asks nothing
    /// passes, because it is refused only when the active run is over: [`Refusal::empty_request`].
    pub fn check(
        &mut self,
        request: &Request,
        activity: Activity,
    ) -> Result<Address, (Address, Refusal)> {
        let bound = self
            .bound
            .get_or_insert_with(|| match request.session_id.is_empty() {
                true => self.default.clone(),
                false => request.session_id.clone(),
            });
        let address = Address {
            session_id: bound.clone(),
            request_id: request.request_id.clone(),
        };
        let given = &request.session_id;
        let refusal = match (&request.kind, activity) {
            _ if !given.is_empty() && given != bound => Refusal::failed(
                Code::SessionMismatch,
                format!("stdin RPC process is bound to session {bound}; got {given}"),
            ),
            (RequestKind::Submit(prompt), _) if prompt.is_empty() => {
                Refusal::failed(Code::EmptyPrompt, "prompt is empty")
            }
            (RequestKind::Submit(_), Activity::Busy) => Refusal::failed(
                Code::SessionBusy,
                format!("stdin RPC session {bound} already has an active submit"),
            ),
            (RequestKind::Cancel, Activity::Idle) => Refusal {
                code: Code::NoActiveRequest,
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
        assert_eq!(refusal.code, Code::EmptyPrompt);
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
            unknown(&long[..NAME_SHOWN])
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
                prop_assert_eq!(refusal.code, Code::InvalidRequestJson);
                prop_assert!(refusal.done.is_none() && !refusal.message.is_empty());
            }
        }
    }
}
