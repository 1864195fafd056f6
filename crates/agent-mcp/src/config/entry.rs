//! Reads the entry of one server, member by member.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{McpExposure, OauthSettings, ServerConfig, ServerTarget, unknown_member};

/// The default time limit of a call.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest time limit of a call, in seconds: a day.
const MAX_TIMEOUT_SECONDS: f64 = 86_400.0;

const MEMBERS: [&str; 14] = [
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "oauth",
    "auth",
    "timeout",
    "enabled",
    "exposure",
    "toolExposure",
    "description",
];
const OAUTH_MEMBERS: [&str; 8] = [
    "clientId",
    "clientSecret",
    "callbackPort",
    "callbackUrl",
    "scope",
    "clientName",
    "clientRegistration",
    "authServerMetadataUrl",
];

/// An entry of a file.
pub(super) enum Entry {
    Server(Box<ServerConfig>),
    Override(Override),
}

/// Changes to a server of another file.
pub(super) struct Override {
    enabled: Option<bool>,
    exposure: Option<McpExposure>,
    tool_exposure: Option<Vec<(String, McpExposure)>>,
}

impl Override {
    pub fn apply(self, config: &mut ServerConfig) {
        config.enabled = self.enabled.unwrap_or(config.enabled);
        config.exposure = self.exposure.unwrap_or(config.exposure);
        if let Some(tool_exposure) = self.tool_exposure {
            config.tool_exposure = tool_exposure;
        }
    }
}

impl Entry {
    pub fn read(name: &str, entry: &Value) -> Result<Self, String> {
        let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || !name.chars().all(sound) {
            return Err("a name consists of letters, digits, _ and -".into());
        }
        let Value::Object(entry) = entry else {
            return Err("it must be an object".into());
        };
        let members = Members(entry);
        members.check(&MEMBERS)?;
        let change = Override {
            enabled: members.boolean("enabled")?,
            exposure: members
                .text("exposure")?
                .map(McpExposure::named)
                .transpose()?,
            tool_exposure: members.exposures("toolExposure")?,
        };
        let target = match (
            members.text("command")?,
            members.text("url")?,
            members.text("type")?,
        ) {
            (_, _, Some("sse")) => {
                return Err("the transport \"sse\" is not supported; use the server's address for streamable HTTP, \
                     which often ends in /mcp"
                    .into());
            }
            (None, None, None) => return Ok(Self::Override(change)),
            (Some(command), None, None | Some("stdio")) => {
                members.reject(&["url", "headers", "oauth", "auth"], "command")?;
                ServerTarget::Command {
                    command: command.to_owned(),
                    args: members.texts("args")?,
                    env: members.pairs("env")?,
                    cwd: members.text("cwd")?.map(str::to_owned),
                }
            }
            (None, Some(url), None | Some("http" | "streamable-http")) => {
                members.reject(&["args", "env", "cwd"], "url")?;
                if members.0.contains_key("auth") {
                    return Err("\"auth\" is not supported; use \"headers\" or \"oauth\"".into());
                }
                ServerTarget::Http {
                    url: checked_url(url)?,
                    headers: members.pairs("headers")?,
                    oauth: members.oauth()?,
                }
            }
            (_, _, Some(kind)) if !matches!(kind, "stdio" | "http" | "streamable-http") => {
                return Err(format!(
                    "unknown type \"{kind}\"; use stdio, http or streamable-http"
                ));
            }
            _ => {
                return Err(
                    "set either \"command\" or \"url\", and a \"type\" that matches".into(),
                );
            }
        };
        let mut config = ServerConfig {
            target,
            timeout: members.timeout()?,
            enabled: true,
            exposure: McpExposure::default(),
            tool_exposure: Vec::new(),
            description: members.text("description")?.map(str::to_owned),
        };
        change.apply(&mut config);
        Ok(Self::Server(Box::new(config)))
    }
}

fn checked_url(url: &str) -> Result<String, String> {
    match url::Url::parse(url) {
        Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => Ok(url.to_owned()),
        _ => Err(format!(
            "\"url\" must begin with http:// or https://, not \"{url}\""
        )),
    }
}

/// The members of an object.
struct Members<'a>(&'a Map<String, Value>);

impl<'a> Members<'a> {
    fn check(&self, known: &[&str]) -> Result<(), String> {
        let unknown = self.0.keys().find(|name| !known.contains(&name.as_str()));
        unknown.map_or(Ok(()), |name| Err(unknown_member(name, known)))
    }

    fn reject(&self, names: &[&str], with: &str) -> Result<(), String> {
        let odd = names.iter().find(|name| self.0.contains_key(**name));
        odd.map_or(Ok(()), |name| {
            Err(format!(
                "\"{name}\" does not apply to a server with \"{with}\""
            ))
        })
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(format!("\"{name}\" must be a text that is not empty")),
        }
    }

    fn boolean(&self, name: &str) -> Result<Option<bool>, String> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(format!("\"{name}\" must be true or false")),
        }
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let wrong = || format!("\"{name}\" must be a list of texts");
        match self.0.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => values
                .iter()
                .map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    fn pairs(&self, name: &str) -> Result<Vec<(String, String)>, String> {
        let wrong = || format!("\"{name}\" must be an object whose values are texts");
        match self.0.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Object(members)) => members
                .iter()
                .map(|(name, value)| {
                    let value = value.as_str().ok_or_else(wrong)?;
                    Ok((name.clone(), value.to_owned()))
                })
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    fn exposures(&self, name: &str) -> Result<Option<Vec<(String, McpExposure)>>, String> {
        if !self.0.contains_key(name) {
            return Ok(None);
        }
        let pairs = self.pairs(name)?.into_iter();
        pairs
            .map(|(tool, exposure)| Ok((tool, McpExposure::named(&exposure)?)))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    fn timeout(&self) -> Result<Duration, String> {
        match self.0.get("timeout") {
            None => Ok(DEFAULT_TIMEOUT),
            Some(value) => value
                .as_f64()
                .filter(|seconds| *seconds > 0.0 && *seconds <= MAX_TIMEOUT_SECONDS)
                .map(Duration::from_secs_f64)
                .ok_or_else(|| "\"timeout\" must be a number of seconds up to 86400".into()),
        }
    }

    fn oauth(&self) -> Result<OauthSettings, String> {
        let members = match self.0.get("oauth") {
            None => return Ok(OauthSettings::default()),
            Some(Value::Object(members)) => Members(members),
            Some(_) => return Err("\"oauth\" must be an object".into()),
        };
        members.check(&OAUTH_MEMBERS)?;
        match members.text("clientRegistration")? {
            None | Some("auto" | "dcr") => {}
            Some("cimd") => {
                return Err("\"clientRegistration\" cannot be cimd: pinion has no client metadata document; use dcr"
                    .into());
            }
            Some(other) => {
                return Err(format!(
                    "unknown clientRegistration \"{other}\"; use auto or dcr"
                ));
            }
        }
        let port = match members.0.get("callbackPort") {
            None => None,
            Some(port) => Some(
                port.as_u64()
                    .and_then(|port| u16::try_from(port).ok())
                    .filter(|port| *port > 0)
                    .ok_or("\"callbackPort\" must be a port number")?,
            ),
        };
        let owned = |name| Ok::<_, String>(members.text(name)?.map(str::to_owned));
        Ok(OauthSettings {
            client_id: owned("clientId")?,
            client_secret: owned("clientSecret")?,
            callback_port: port,
            callback_url: members
                .text("callbackUrl")?
                .map(checked_callback)
                .transpose()?,
            scope: owned("scope")?,
            client_name: owned("clientName")?,
            metadata_url: members
                .text("authServerMetadataUrl")?
                .map(checked_url)
                .transpose()?,
        })
    }
}

fn checked_callback(url: &str) -> Result<String, String> {
    let parsed = url::Url::parse(url).ok();
    let is_here = parsed.is_some_and(|url| {
        url.scheme() == "http"
            && matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
    });
    if is_here {
        Ok(url.to_owned())
    } else {
        Err("\"callbackUrl\" must be an http address on localhost, 127.0.0.1 or [::1]".into())
    }
}
