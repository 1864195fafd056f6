//! The supported revisions of MCP and their differences.
//!
//! Up to 2025-11-25 a client begins with `initialize`; since 2026-07-28 each request names its own revision and
//! capabilities. The gateway supports both at the same time: the first message of a client decides.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::rpc::{Fault, code};

/// The revision in which requests are independent of each other.
pub(crate) const MODERN_REVISION: &str = "2026-07-28";
/// The revisions that begin with `initialize`, the newest first.
pub(crate) const HANDSHAKE_REVISIONS: [&str; 4] =
    ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The only revision that has batches.
pub(crate) const BATCH_REVISION: &str = "2025-03-26";

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The rules by which a request is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// The revision that `initialize` negotiated.
    Handshake,
    /// The revision that the request itself names.
    Modern,
}

/// The parameters in which a request describes itself.
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

/// Returns the revision that a request names.
pub(crate) fn named(params: Option<&RawValue>) -> Option<Value> {
    let params: Params = serde_json::from_str(params?.get()).ok()?;
    params.meta?.version
}

/// Returns the rules for a request with these parameters.
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
        Some(MODERN_REVISION) => {}
        Some(version) if HANDSHAKE_REVISIONS.contains(&version) => return Ok(Era::Handshake),
        _ => return Err(unsupported(&version)),
    }
    if !meta.capabilities.is_some_and(|it| it.is_object()) {
        let message = format!("_meta lacks {CAPABILITIES_KEY}");
        return Err(Fault::invalid_params(message));
    }
    Ok(Era::Modern)
}

/// The error of a request in the newest revision that does not name its revision in the message.
pub(crate) fn missing() -> Fault {
    Fault::invalid_params(format!("params._meta lacks {VERSION_KEY}"))
}

/// The error of an unsupported revision; it lists the supported ones.
pub(crate) fn unsupported(requested: &Value) -> Fault {
    let mut fault = Fault::new(code::UNSUPPORTED_VERSION, "unsupported protocol version");
    fault.data = Some(json!({ "supported": all(), "requested": requested }).into());
    fault
}

/// Reports whether a server refused the revision of a request but lists the newest one as supported.
pub(crate) fn is_supported_after_all(fault: &Fault) -> bool {
    let data = fault
        .data
        .as_ref()
        .filter(|_| fault.code == code::UNSUPPORTED_VERSION);
    let supported = data
        .and_then(|data| data.get("supported"))
        .and_then(Value::as_array);
    supported.is_some_and(|supported| supported.iter().any(|version| version == MODERN_REVISION))
}

/// Returns all revisions, the newest first.
pub(crate) fn all() -> Vec<&'static str> {
    std::iter::once(MODERN_REVISION)
        .chain(HANDSHAKE_REVISIONS)
        .collect()
}

/// The revisions that pinion speaks as client and server, newest first.
pub const REVISIONS: [&str; 5] = {
    let [first, second, third, fourth] = HANDSHAKE_REVISIONS;
    [MODERN_REVISION, first, second, third, fourth]
};

/// Returns the revision that `initialize` negotiates.
pub(crate) fn agreed(wanted: &str) -> &'static str {
    let known = HANDSHAKE_REVISIONS.iter().find(|known| **known == wanted);
    known.copied().unwrap_or(HANDSHAKE_REVISIONS[0])
}

/// Returns the `_meta` object of a request that pinion sends in the newest revision.
pub(crate) fn request_meta(implementation: &Implementation<'_>) -> Value {
    json!({ VERSION_KEY: MODERN_REVISION, CAPABILITIES_KEY: {}, CLIENT_KEY: implementation })
}

/// The name and version of a client or server.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Implementation<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
}

/// The name and version that pinion sends to servers.
pub(crate) const PINION: Implementation<'static> = Implementation {
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
        let modern = json!({"_meta": {VERSION_KEY: MODERN_REVISION, CAPABILITIES_KEY: {}}});
        assert_eq!(of(&modern), Ok(Era::Modern));
        let silent = json!({"_meta": {VERSION_KEY: MODERN_REVISION}});
        assert_eq!(of(&silent), Err(code::INVALID_PARAMS));
        for unknown in [json!("1900-01-01"), json!(7)] {
            let unknown = json!({"_meta": {VERSION_KEY: unknown, CAPABILITIES_KEY: {}}});
            assert_eq!(of(&unknown), Err(code::UNSUPPORTED_VERSION));
        }
        assert_eq!(of(&json!({"_meta": 5})), Err(code::INVALID_PARAMS));
    }

    #[test]
    fn an_unknown_revision_is_answered_with_the_newest_one() {
        assert_eq!(agreed("2025-03-26"), "2025-03-26");
        assert_eq!(agreed("2030-01-01"), HANDSHAKE_REVISIONS[0]);
        assert_eq!(agreed(MODERN_REVISION), HANDSHAKE_REVISIONS[0]);
    }
}
