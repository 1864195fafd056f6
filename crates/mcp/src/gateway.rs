//! Clips as tools: answers each request of a client. The modules `stdio` and `http` carry the requests and answers.

mod call;
mod changes;
pub(crate) mod clips;
pub(crate) mod remote_hub;
mod tools;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) use changes::report_changes;
use clips::Clips;
use tools::{HubTool, Tool};

use crate::rpc::{Fault, Request, code};
use crate::version::{self, Era, Implementation, SERVER_KEY};

/// The server name of a gateway to a whole hub.
const HUB_NAME: &str = "pinix";
/// The server version that the gateway reports.
const SERVED_VERSION: &str = "v2";
/// Tools per page of `tools/list`.
const TOOLS_PER_PAGE: usize = 500;

/// The clips that a gateway exposes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayScope {
    /// Every clip, through the tools `list`, `info`, `invoke` and `invoke_stream`.
    Hub,
    /// The commands of one clip, each as a tool.
    Clip(String),
}

/// An MCP server whose tools are clips.
#[derive(Debug)]
pub struct Gateway {
    clips: Arc<dyn Clips>,
    scope: GatewayScope,
    prefix: String,
    /// The tools as last listed, so that a call need not ask the hub for them.
    last_listed: Mutex<Arc<Vec<Tool>>>,
}

/// Receives the notifications that belong to a request, before its answer.
pub(crate) trait NotificationSink: Send + Sync {
    /// Sends a message once there is room for it.
    fn send(&self, message: Bytes) -> BoxFuture<'_, ()>;
}

/// The circumstances of a request.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub(crate) era: Era,
    /// `None` if the client accepts only the answer.
    pub(crate) sink: Option<&'a dyn NotificationSink>,
    /// Cancelled when no more answers will be read.
    pub(crate) ending: &'a CancellationToken,
}

type Answer = Result<Box<RawValue>, Fault>;

impl Gateway {
    pub fn new(clips: Arc<dyn Clips>, scope: GatewayScope) -> Self {
        Self {
            clips,
            scope,
            prefix: String::new(),
            last_listed: Mutex::default(),
        }
    }

    /// Prefixes the name of every tool.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Fails if there is nothing to expose. Call it at the start, so that a misspelled clip name is reported at once.
    pub async fn check(&self) -> Result<(), Failure> {
        let GatewayScope::Clip(clip) = &self.scope else {
            return Ok(());
        };
        if self.clips.manifest(clip).await?.commands.is_empty() {
            let message = format!(
                "clip \"{clip}\" lists no commands, so it has no tools; expose the whole hub and use invoke"
            );
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        Ok(())
    }

    fn implementation(&self) -> Implementation<'_> {
        Implementation {
            name: match &self.scope {
                GatewayScope::Hub => HUB_NAME,
                GatewayScope::Clip(clip) => clip,
            },
            version: SERVED_VERSION,
        }
    }

    fn instructions(&self) -> String {
        match &self.scope {
            GatewayScope::Hub => {
                let prefix = &self.prefix;
                format!(
                    "Clips are small programs on a hub. {prefix}list names them, {prefix}info describes one, {prefix}invoke calls it."
                )
            }
            GatewayScope::Clip(clip) => {
                format!("Each tool is a command of the clip \"{clip}\" on a hub.")
            }
        }
    }

    fn reports_changes(&self) -> bool {
        matches!(self.scope, GatewayScope::Clip(_)) && self.clips.changes().is_some()
    }

    fn capabilities(&self) -> Value {
        json!({ "tools": { "listChanged": self.reports_changes() } })
    }

    /// Answers `initialize` and returns the negotiated revision.
    pub(crate) fn initialize(
        &self,
        request: &Request,
    ) -> Result<(&'static str, Box<RawValue>), Fault> {
        #[derive(Deserialize)]
        struct Params {
            #[serde(rename = "protocolVersion")]
            version: String,
        }
        let params: Params = read(request)?;
        let agreed = version::agreed(&params.version);
        let result = json!({
            "protocolVersion": agreed,
            "capabilities": self.capabilities(),
            "serverInfo": self.implementation(),
            "instructions": self.instructions(),
        });
        Ok((agreed, self.finish(Era::Handshake, &result)?))
    }

    /// Answers any other request. Dropping the future cancels the work.
    pub(crate) async fn answer(&self, request: &Request, context: RequestContext<'_>) -> Answer {
        match request.method.as_str() {
            "ping" if context.era == Era::Handshake => self.finish(context.era, &json!({})),
            "tools/list" => self.list(request, context.era).await,
            "tools/call" => self.call(request, context).await,
            "server/discover" if context.era == Era::Modern => self.discover(),
            "subscriptions/listen" if context.era == Era::Modern => {
                self.listen(request, context).await
            }
            method => Err(Fault::no_method(method)),
        }
    }

    fn discover(&self) -> Answer {
        let found = json!({
            "supportedVersions": version::all(),
            "capabilities": self.capabilities(),
            "instructions": self.instructions(),
            "ttlMs": 0,
            "cacheScope": "private",
        });
        self.finish(Era::Modern, &found)
    }

    /// Asks the hub for the current tools.
    pub(crate) async fn tools(&self) -> Result<Arc<Vec<Tool>>, Failure> {
        let tools = Arc::new(match &self.scope {
            GatewayScope::Hub => HubTool::tools(&self.prefix),
            GatewayScope::Clip(clip) => {
                tools::of_clip(&self.clips.manifest(clip).await?, &self.prefix)
            }
        });
        *self
            .last_listed
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = tools.clone();
        Ok(tools)
    }

    /// Finds a tool, first among those last listed.
    pub(crate) async fn tool(&self, name: &str) -> Result<Option<Tool>, Failure> {
        let find = |tools: &[Tool]| tools.iter().find(|known| known.name == name).cloned();
        let listed = self
            .last_listed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match find(&listed) {
            Some(tool) => Ok(Some(tool)),
            None => Ok(find(&self.tools().await?)),
        }
    }

    async fn list(&self, request: &Request, era: Era) -> Answer {
        #[derive(Default, Deserialize)]
        struct Params {
            #[serde(default)]
            cursor: Option<String>,
        }
        let params: Params = match request.params {
            Some(_) => read(request)?,
            None => Params::default(),
        };
        let from = match params.cursor.as_deref().map(str::parse::<usize>) {
            None => 0,
            Some(Ok(from)) => from,
            Some(Err(_)) => {
                return Err(Fault::invalid_params(
                    "unknown cursor; use one from an earlier page",
                ));
            }
        };
        let tools = self
            .tools()
            .await
            .map_err(|failure| last_listed(&failure))?;
        let page = tools.get(from..).unwrap_or_default();
        let page = &page[..page.len().min(TOOLS_PER_PAGE)];
        let mut result = json!({ "tools": page });
        if from + page.len() < tools.len() {
            result["nextCursor"] = (from + TOOLS_PER_PAGE).to_string().into();
        }
        if era == Era::Modern {
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        self.finish(era, &result)
    }

    /// Encodes a result in the form of the revision.
    fn finish(&self, era: Era, result: &impl Serialize) -> Answer {
        #[derive(Serialize)]
        struct Complete<'a, R: Serialize> {
            #[serde(rename = "resultType")]
            result_type: &'static str,
            #[serde(flatten)]
            result: &'a R,
            #[serde(rename = "_meta")]
            meta: Value,
        }
        let text = match era {
            Era::Handshake => serde_json::value::to_raw_value(result),
            Era::Modern => serde_json::value::to_raw_value(&Complete {
                result_type: "complete",
                result,
                meta: json!({ SERVER_KEY: self.implementation() }),
            }),
        };
        text.map_err(|error| Fault::new(code::INTERNAL, error.to_string()))
    }
}

/// Parses the parameters of a request.
fn read<'a, P: Deserialize<'a>>(request: &'a Request) -> Result<P, Fault> {
    let params = request.params.as_ref().map_or("{}", |params| params.get());
    serde_json::from_str(params)
        .map_err(|error| Fault::invalid_params(format!("params of {}: {error}", request.method)))
}

/// Converts a failure into a JSON-RPC error.
fn last_listed(failure: &Failure) -> Fault {
    let mut fault = Fault::new(code::INTERNAL, failure.message.clone());
    fault.data = Some(json!({ "code": failure.code() }).into());
    fault
}
