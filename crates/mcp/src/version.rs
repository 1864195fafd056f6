//! Which revisions of MCP are spoken, and what is the same and what is not between them.
//!
//! Up to 2025-11-25 a conversation begins with `initialize`; since 2026-07-28 each request says for itself what it needs.
//! Both are served side by side: how a client begins decides.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::rpc::{Fault, code};

/// The revision in which every request stands for itself.
pub(crate) const MODERN: &str = "2026-07-28";
/// The revisions that begin with `initialize`, the newest first.
pub(crate) const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The only revision that has batches.
pub(crate) const BATCHES: &str = "2025-03-26";

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// How a request is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// By what `initialize` agreed on.
    Handshake,
    /// By what the request itself says.
    Modern,
}

/// What a request says about itself.
#[derive(Debug, Default, Deserialize)]
struct Params {
    #[serde(default, rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Debug, Default, Deserialize)]
struct Meta {
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Value>,
    #[serde(default, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Value>,
}

/// The revision that a request names for itself, if it does.
pub(crate) fn named(params: Option<&RawValue>) -> Option<Value> {
    let params: Params = serde_json::from_str(params?.get()).ok()?;
    params.meta?.version
}

/// How a request with these parameters is served.
pub(crate) fn era(params: Option<&RawValue>) -> Result<Era, Fault> {
    let read = params.map(|params| serde_json::from_str::<Params>(params.get()));
    let meta = match read {
        Some(Ok(params)) => params.meta.unwrap_or_default(),
        Some(Err(error)) => {
            return Err(Fault::invalid_params(format!("_meta: {error}")));
        }
        None => Meta::default(),
    };
    let Some(version) = meta.version else {
        return Ok(Era::Handshake);
    };
    match version.as_str() {
        Some(MODERN) => {}
        Some(version) if HANDSHAKE.contains(&version) => return Ok(Era::Handshake),
        _ => return Err(unsupported(&version)),
    }
    if !meta.capabilities.is_some_and(|it| it.is_object()) {
        let message = format!("_meta lacks {CAPABILITIES_KEY}");
        return Err(Fault::invalid_params(message));
    }
    Ok(Era::Modern)
}

/// The fault of a request of the modern era that does not say so itself.
pub(crate) fn missing() -> Fault {
    Fault::invalid_params(format!("params._meta lacks {VERSION_KEY}"))
}

/// Says which revisions there are.
pub(crate) fn unsupported(requested: &Value) -> Fault {
    let mut fault = Fault::new(code::UNSUPPORTED_VERSION, "unsupported protocol version");
    fault.data = Some(json!({ "supported": all(), "requested": requested }).into());
    fault
}

/// A server refused the revision of a request, but lists the newest one among those it supports.
pub(crate) fn is_supported_after_all(fault: &Fault) -> bool {
    let data = fault
        .data
        .as_ref()
        .filter(|_| fault.code == code::UNSUPPORTED_VERSION);
    let supported = data
        .and_then(|data| data.get("supported"))
        .and_then(Value::as_array);
    supported.is_some_and(|supported| supported.iter().any(|version| version == MODERN))
}

/// All revisions, the newest first.
pub(crate) fn all() -> Vec<&'static str> {
    std::iter::once(MODERN).chain(HANDSHAKE).collect()
}

/// The revision `initialize` agrees on.
pub(crate) fn agreed(wanted: &str) -> &'static str {
    let known = HANDSHAKE.iter().find(|known| **known == wanted);
    known.copied().unwrap_or(HANDSHAKE[0])
}

/// What a request of ours says about itself in the modern era.
pub(crate) fn own_meta(implementation: &Implementation<'_>) -> Value {
    json!({ VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, CLIENT_KEY: implementation })
}

/// Who somebody is.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Implementation<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
}

/// Who we are towards servers.
pub(crate) const OURSELVES: Implementation<'static> = Implementation {
    name: "pinion",
    version: env!("CARGO_PKG_VERSION"),
};

#[cfg(test)]
mod tests {
    use super::*;

    fn of(params: &Value) -> Result<Era, i64> {
        let params = RawValue::from_string(params.to_string()).unwrap();
        era(Some(&params)).map_err(|fault| fault.code)
    }

    #[test]
    fn a_request_says_how_it_is_served() {
        assert_eq!(era(None).ok(), Some(Era::Handshake));
        assert_eq!(of(&json!({})), Ok(Era::Handshake));
        assert_eq!(of(&json!({"_meta": null})), Ok(Era::Handshake));
        assert_eq!(
            of(&json!({"_meta": {"progressToken": 1}})),
            Ok(Era::Handshake)
        );
        let modern = json!({"_meta": {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}});
        assert_eq!(of(&modern), Ok(Era::Modern));
        let silent = json!({"_meta": {VERSION_KEY: MODERN}});
        assert_eq!(of(&silent), Err(code::INVALID_PARAMS));
        for unknown in [json!("1900-01-01"), json!(7)] {
            let unknown = json!({"_meta": {VERSION_KEY: unknown, CAPABILITIES_KEY: {}}});
            assert_eq!(of(&unknown), Err(code::UNSUPPORTED_VERSION));
        }
        assert_eq!(of(&json!({"_meta": 5})), Err(code::INVALID_PARAMS));
    }

    #[test]
    fn what_is_unknown_is_answered_with_what_we_know_best() {
        assert_eq!(agreed("2025-03-26"), "2025-03-26");
        assert_eq!(agreed("2030-01-01"), HANDSHAKE[0]);
        assert_eq!(agreed(MODERN), HANDSHAKE[0]);
    }
}
