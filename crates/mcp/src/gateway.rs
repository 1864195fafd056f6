//! Clips as tools: what each request of a client is answered with. How requests come and answers go is left to `stdio` and
//! `http`.

mod call;
mod changes;
pub(crate) mod clips;
mod tools;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) use changes::tell_changes;
use clips::Clips;
use tools::{HubTool, Tool};

use crate::rpc::{Fault, Request, code};
use crate::version::{self, Era, Implementation, SERVER_KEY};

/// What the program says it is when it stands for a whole hub.
const HUB_NAME: &str = "pinix";
/// The version of what is served.
const SERVED_VERSION: &str = "v2";
/// So many tools are told at once; who wants more asks again.
const PAGE: usize = 500;

/// What a gateway shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exposes {
    /// Every clip, through the tools `list`, `info`, `invoke` and `invoke_stream`.
    Hub,
    /// The commands of one clip, each as a tool.
    Clip(String),
}

/// An MCP server whose tools are clips.
#[derive(Debug)]
pub struct Gateway {
    clips: Arc<dyn Clips>,
    exposes: Exposes,
    prefix: String,
    /// The tools as they were told last, so that a call need not ask for them.
    told: Mutex<Arc<Vec<Tool>>>,
}

/// Where what belongs to a request goes before its answer.
pub(crate) trait Outlet: Send + Sync {
    /// Sends a message once there is room for it.
    fn send(&self, message: Bytes) -> BoxFuture<'_, ()>;
}

/// What surrounds a request.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) era: Era,
    /// `None` if the client takes an answer and nothing else.
    pub(crate) outlet: Option<&'a dyn Outlet>,
    /// Told when no more answers will be read.
    pub(crate) ending: &'a CancellationToken,
}

type Answer = Result<Box<RawValue>, Fault>;

impl Gateway {
    /// A gateway to `clips`.
    pub fn new(clips: Arc<dyn Clips>, exposes: Exposes) -> Self {
        Self {
            clips,
            exposes,
            prefix: String::new(),
            told: Mutex::default(),
        }
    }

    /// Puts `prefix` in front of the name of every tool.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Whether there is something to show: for the start, so that a slip in a name is told at once.
    pub async fn check(&self) -> Result<(), Failure> {
        let Exposes::Clip(clip) = &self.exposes else {
            return Ok(());
        };
        if self.clips.manifest(clip).await?.commands.is_empty() {
            let message = format!(
                "clip \"{clip}\" lists no commands, so there is nothing to make tools of; use invoke of the whole hub"
            );
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        Ok(())
    }

    fn implementation(&self) -> Implementation<'_> {
        Implementation {
            name: match &self.exposes {
                Exposes::Hub => HUB_NAME,
                Exposes::Clip(clip) => clip,
            },
            version: SERVED_VERSION,
        }
    }

    fn instructions(&self) -> String {
        match &self.exposes {
            Exposes::Hub => {
                let prefix = &self.prefix;
                format!(
                    "Clips are small programs on a hub. {prefix}list names them, {prefix}info tells what one can do, {prefix}invoke calls it."
                )
            }
            Exposes::Clip(clip) => {
                format!("Each tool is a command of the clip \"{clip}\" on a hub.")
            }
        }
    }

    fn tells_changes(&self) -> bool {
        matches!(self.exposes, Exposes::Clip(_)) && self.clips.changes().is_some()
    }

    fn capabilities(&self) -> Value {
        json!({ "tools": { "listChanged": self.tells_changes() } })
    }

    /// Answers `initialize`; the revision that was agreed on.
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

    /// Answers any other request. Dropping it cancels what it does.
    pub(crate) async fn answer(&self, request: &Request, context: Context<'_>) -> Answer {
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

    /// The tools there are at the moment.
    pub(crate) async fn tools(&self) -> Result<Arc<Vec<Tool>>, Failure> {
        let tools = Arc::new(match &self.exposes {
            Exposes::Hub => HubTool::tools(&self.prefix),
            Exposes::Clip(clip) => tools::of_clip(&self.clips.manifest(clip).await?, &self.prefix),
        });
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = tools.clone();
        Ok(tools)
    }

    /// Finds a tool, among those that were last listed first.
    pub(crate) async fn tool(&self, name: &str) -> Result<Option<Tool>, Failure> {
        let find = |tools: &[Tool]| tools.iter().find(|known| known.name == name).cloned();
        let listed = self
            .told
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
            Some(Err(_)) => return Err(Fault::invalid_params("this cursor is none of ours")),
        };
        let tools = self.tools().await.map_err(|failure| told(&failure))?;
        let page = tools.get(from..).unwrap_or_default();
        let page = &page[..page.len().min(PAGE)];
        let mut result = json!({ "tools": page });
        if from + page.len() < tools.len() {
            result["nextCursor"] = (from + PAGE).to_string().into();
        }
        if era == Era::Modern {
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        self.finish(era, &result)
    }

    /// A result as the revision wants it.
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

/// The parameters of a request.
fn read<'a, P: Deserialize<'a>>(request: &'a Request) -> Result<P, Fault> {
    let params = request.params.as_ref().map_or("{}", |params| params.get());
    serde_json::from_str(params)
        .map_err(|error| Fault::invalid_params(format!("params of {}: {error}", request.method)))
}

/// A failure where only a fault can be told.
fn told(failure: &Failure) -> Fault {
    let mut fault = Fault::new(code::INTERNAL, failure.message.clone());
    fault.data = Some(json!({ "code": failure.code() }).into());
    fault
}
