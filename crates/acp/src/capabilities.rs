//! The capabilities of both sides: what the client offers, and the answer to `initialize`.

use serde_json::{Value, json};

use crate::error::AcpError;
use crate::rpc::Params;

/// The version of the protocol.
const PROTOCOL_VERSION: u64 = 1;
/// The largest version that a client may name.
const MAX_VERSION: u64 = 65_535;

/// The command that shows the set-up in a terminal, for clients that run it themselves.
#[derive(Debug, Clone)]
pub struct SetupCommand {
    pub program: String,
    pub args: Vec<String>,
}

/// The facts about the agent in the answer to `initialize`.
#[derive(Debug, Clone)]
pub struct AgentInfo {
    pub version: String,
    pub setup: SetupCommand,
    /// Offers the members and methods that the protocol calls unstable.
    pub unstable: bool,
}

/// The capabilities of the client, as far as they change what the agent sends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientCapabilities {
    /// It shows terminals whose output the agent sends.
    pub(crate) terminal_output: bool,
    pub(crate) notices: bool,
    pub(crate) compaction: bool,
    pub(crate) elicitation_form: bool,
    /// It can start the agent in a terminal, for the set-up.
    pub(crate) auth_terminal: bool,
    /// The older form of `auth_terminal`.
    pub(crate) auth_terminal_meta: bool,
    /// It receives the records of extensions that the protocol has no messages for.
    pub(crate) ui_records: bool,
}

impl ClientCapabilities {
    /// Reads `initialize`. Members of other types count as absent.
    pub(crate) fn read(params: &Params) -> Result<Self, AcpError> {
        params.check()?;
        let version = params.get("protocolVersion");
        let version =
            version.ok_or_else(|| AcpError::invalid_params("protocolVersion is missing"))?;
        if version.as_u64().is_none_or(|version| version > MAX_VERSION) {
            let problem = format!("protocolVersion must be an integer from 0 to {MAX_VERSION}");
            return Err(AcpError::invalid_params(problem));
        }
        let none = Value::Null;
        let client = params.get("clientCapabilities").unwrap_or(&none);
        let has = |value: &Value| value.is_object();
        Ok(Self {
            terminal_output: client["_meta"]["terminal_output"] == true,
            notices: has(&client["session"]["notices"]),
            compaction: has(&client["session"]["compaction"]),
            elicitation_form: has(&client["elicitation"]["form"]),
            auth_terminal: client["auth"]["terminal"] == true,
            auth_terminal_meta: client["_meta"]["terminal-auth"] == true,
            ui_records: client["_meta"]["pinion.ui"] == true
                || client["_meta"]["pinion"]["ui"] == true,
        })
    }

    /// Returns the ids of the methods of authentication that this client can use.
    pub(crate) fn auth_methods(&self) -> Vec<&'static str> {
        if self.auth_terminal || self.auth_terminal_meta {
            vec!["keys", "setup"]
        } else {
            vec!["keys"]
        }
    }

    /// Returns the answer to `initialize`.
    pub(crate) fn answer(&self, agent: &AgentInfo) -> Value {
        let mut sessions = json!({
            "list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {}, "fork": {}
        });
        if agent.unstable {
            sessions["title"] = json!({});
            sessions["systemPrompt"] = json!({});
        }
        let mut methods = vec![json!({
            "id": "keys",
            "name": "Keys",
            "description": "Uses the keys in the environment and in auth.json; reads them again",
        })];
        if self.auth_terminal || self.auth_terminal_meta {
            let mut setup = json!({
                "id": "setup",
                "name": "Set up in a terminal",
                "description": "Asks for a provider and a key and saves it",
                "type": "terminal",
                "args": ["--setup"],
                "env": {},
            });
            if !self.auth_terminal {
                setup["_meta"]["terminal-auth"] = json!({
                    "command": agent.setup.program,
                    "args": agent.setup.args,
                    "label": "Set up pinion",
                });
            }
            methods.push(setup);
        }
        json!({
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
                "sessionCapabilities": sessions,
                "auth": {},
            },
            "authMethods": methods,
            "agentInfo": {"name": "pinion", "title": "pinion", "version": agent.version},
            "_meta": {"steering": {"supported": true}},
        })
    }
}
