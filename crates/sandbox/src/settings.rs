//! The sandbox in settings files and flags.

use serde_json::{Map, Value};

use crate::{Allowance, Loopback, Mode, NetworkMode, Protection};

/// The sandbox in the user's settings, or that of flags. Paths are as they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxSettings {
    /// The mode; `None` leaves it to other settings.
    pub mode: Option<Mode>,
    /// Further places that may be written.
    pub write: Vec<String>,
    /// Further places that may be read in `strict`.
    pub read: Vec<String>,
    /// Further places that are hidden.
    pub hide: Vec<String>,
    /// Places that the built-in list hides and that may be read.
    pub show: Vec<String>,
    /// Further places that are protected.
    pub protect: Vec<String>,
    /// Names of variables that stay although they look like secrets.
    pub env: Vec<String>,
    /// Mechanisms that are permitted.
    pub allow: Vec<Allowance>,
    /// The way out of the machine; `None` means none.
    pub network: Option<NetworkMode>,
    /// UNIX sockets that may be connected to.
    pub sockets: Vec<String>,
    /// Servers of this machine that may be reached.
    pub loopback: Option<Loopback>,
    /// The largest file, in MiB.
    pub file_mb: Option<u64>,
    /// Processor time of a process, in seconds.
    pub cpu_seconds: Option<u64>,
    /// The user or the project chose `read-only`, and the other one another mode: nothing but temporary files is written.
    pub writes_nothing: bool,
}

/// The members that this version does not apply. They are refused, because a rule that is ignored would protect nothing.
const MISSING: &[&str] = &["tools", "escalation", "strict"];

impl SandboxSettings {
    /// Reads the member `sandbox` of the user's settings.
    ///
    /// # Errors
    ///
    /// Fails for every mistake, because a rule that is ignored would protect nothing. The text is for the user.
    pub fn read(value: &Value) -> Result<Self, String> {
        let members = value.as_object().ok_or("sandbox must be an object")?;
        let mut settings = Self::default();
        for (name, value) in present(members) {
            match name {
                "mode" => settings.mode = Some(mode(value)?),
                "write" => settings.write = texts("write", value)?,
                "read" => settings.read = texts("read", value)?,
                "hide" => settings.hide = texts("hide", value)?,
                "show" => settings.show = texts("show", value)?,
                "protect" => settings.protect = texts("protect", value)?,
                "env" => settings.env = texts("env", value)?,
                "allow" => settings.allow = allowances(value)?,
                "network" => settings.read_network(value)?,
                "limits" => settings.read_limits(value)?,
                "protection" => protection(value)?,
                name if MISSING.contains(&name) => {
                    return Err(format!(
                        "sandbox.{name} is not available in this version; remove it"
                    ));
                }
                name => return Err(format!("sandbox has no member \"{name}\"")),
            }
        }
        Ok(settings)
    }

    fn read_network(&mut self, value: &Value) -> Result<(), String> {
        let members = value
            .as_object()
            .ok_or("sandbox.network must be an object")?;
        for (name, value) in present(members) {
            match name {
                "mode" => {
                    let text = value.as_str().unwrap_or_default();
                    self.network = Some(network_mode(text)?);
                }
                "hosts" => {
                    if !texts("network.hosts", value)?.is_empty() {
                        return Err(no_proxy());
                    }
                }
                "sockets" => self.sockets = texts("network.sockets", value)?,
                "loopback" => self.loopback = Some(loopback(value)?),
                name => return Err(format!("sandbox.network has no member \"{name}\"")),
            }
        }
        Ok(())
    }

    fn read_limits(&mut self, value: &Value) -> Result<(), String> {
        let members = value
            .as_object()
            .ok_or("sandbox.limits must be an object")?;
        for (name, value) in present(members) {
            let count = value
                .as_u64()
                .ok_or_else(|| format!("sandbox.limits.{name} must be a number"));
            match name {
                // 0 is no limit.
                "fileMb" => self.file_mb = Some(count?).filter(|&count| count > 0),
                "cpuSeconds" => self.cpu_seconds = Some(count?).filter(|&count| count > 0),
                "memoryMb" | "processes" => {
                    return Err(format!(
                        "sandbox.limits.{name} is not available in this version; remove it"
                    ));
                }
                name => return Err(format!("sandbox.limits has no member \"{name}\"")),
            }
        }
        Ok(())
    }

    /// Applies the member `sandbox` of a project's settings, which may only narrow, and calls `warn` about everything else
    /// in it. A mistake in it is passed over: no project can prevent the start of pinion.
    pub fn narrow(&mut self, value: &Value, warn: impl Fn(&str)) {
        let Some(members) = value.as_object() else {
            warn("sandbox must be an object; it is ignored");
            return;
        };
        let mut passed_over = Vec::new();
        for (name, value) in present(members) {
            match (name, texts(name, value)) {
                ("mode", _) => match mode(value) {
                    Ok(theirs) => {
                        let ours = self.mode.unwrap_or_default();
                        self.writes_nothing |= ours.max(theirs) == Mode::Strict
                            && (ours == Mode::ReadOnly || theirs == Mode::ReadOnly);
                        self.mode = Some(ours.max(theirs));
                    }
                    Err(_) => passed_over.push("sandbox.mode"),
                },
                ("hide", Ok(places)) => self.hide.extend(places),
                ("protect", Ok(places)) => self.protect.extend(places),
                ("network", _) if value.get("mode").and_then(Value::as_str) == Some("none") => {
                    self.network = Some(NetworkMode::None);
                }
                _ => passed_over.push(name_of_setting(name)),
            }
        }
        if !passed_over.is_empty() {
            let names = passed_over.join(", ");
            warn(&format!(
                "a project can only narrow the sandbox, so these settings are ignored: {names}"
            ));
        }
    }
}

fn name_of_setting(name: &str) -> &'static str {
    match name {
        "write" => "sandbox.write",
        "read" => "sandbox.read",
        "show" => "sandbox.show",
        "network" => "sandbox.network",
        "limits" => "sandbox.limits",
        "tools" => "sandbox.tools",
        "allow" => "sandbox.allow",
        "env" => "sandbox.env",
        _ => "sandbox (other members)",
    }
}

fn present(members: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    let members = members.iter().filter(|(_, value)| !value.is_null());
    members.map(|(name, value)| (name.as_str(), value))
}

fn mode(value: &Value) -> Result<Mode, String> {
    let mode = value.as_str().and_then(Mode::named);
    mode.ok_or_else(|| format!("sandbox.mode must be {}", alternatives(&Mode::NAMES)))
}

/// Reads a mode of the network.
///
/// # Errors
///
/// Fails for an unknown word, and for `proxy`, which this version does not have.
pub fn network_mode(text: &str) -> Result<NetworkMode, String> {
    match text {
        "none" => Ok(NetworkMode::None),
        "open" => Ok(NetworkMode::Open),
        "proxy" => Err(no_proxy()),
        _ => Err("sandbox.network.mode must be none or open".into()),
    }
}

fn no_proxy() -> String {
    "a list of hosts (network mode proxy) is not available in this version; use none or open".into()
}

fn loopback(value: &Value) -> Result<Loopback, String> {
    let wrong = || "sandbox.network.loopback must be own, none, all or a list of ports".to_owned();
    if let Some(ports) = value.as_array() {
        let port = |port: &Value| port.as_u64().and_then(|port| u16::try_from(port).ok());
        let ports: Option<Vec<u16>> = ports.iter().map(port).collect();
        return ports.map(Loopback::Ports).ok_or_else(wrong);
    }
    match value.as_str() {
        Some("own") => Ok(Loopback::Own),
        Some("none") => Ok(Loopback::None),
        Some("all") => Ok(Loopback::All),
        _ => Err(wrong()),
    }
}

fn protection(value: &Value) -> Result<(), String> {
    match serde_json::from_value(value.clone()) {
        Ok(Protection::Broker) => Ok(()),
        _ => Err("sandbox.protection must be broker in this version".into()),
    }
}

fn allowances(value: &Value) -> Result<Vec<Allowance>, String> {
    let wrong = |_| "sandbox.allow must be a list; its only word is \"userns\"".to_owned();
    serde_json::from_value(value.clone()).map_err(wrong)
}

fn texts(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let wrong = || format!("sandbox.{name} must be a list of strings");
    let items = value.as_array().ok_or_else(wrong)?;
    let text = |item: &Value| item.as_str().map(str::to_owned).ok_or_else(wrong);
    items.iter().map(text).collect()
}

/// Joins words: `off, read-only, workspace or strict`.
pub(crate) fn alternatives(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::cell::RefCell;

    #[test]
    fn mistakes_are_errors() {
        for (value, problem) in [
            (json!("workspace"), "must be an object"),
            (
                json!({"mode": "workspcae"}),
                "off, read-only, workspace or strict",
            ),
            (json!({"wirte": []}), "no member \"wirte\""),
            (json!({"write": "x"}), "list of strings"),
            (json!({"network": {"mode": "proxy"}}), "not available"),
            (
                json!({"network": {"hosts": ["example.org"]}}),
                "not available",
            ),
            (json!({"network": {"loopback": [70000]}}), "list of ports"),
            (json!({"limits": {"memoryMb": 5}}), "not available"),
            (json!({"tools": {}}), "not available"),
            (json!({"protection": "check"}), "must be broker"),
        ] {
            let error = SandboxSettings::read(&value).unwrap_err();
            assert!(error.contains(problem), "{value}: {error}");
        }
        let read = SandboxSettings::read(&json!({
            "mode": "workspace-write", "write": ["~/x"], "allow": ["userns"], "env": null,
            "network": {"mode": "open", "hosts": [], "loopback": [5432]}, "limits": {"fileMb": 5, "cpuSeconds": 0},
        }));
        let read = read.unwrap();
        assert_eq!(read.mode, Some(Mode::Workspace));
        assert_eq!(read.loopback, Some(Loopback::Ports(vec![5432])));
        assert_eq!((read.file_mb, read.cpu_seconds), (Some(5), None));
    }

    #[test]
    fn a_project_only_narrows() {
        let warned = RefCell::new(Vec::new());
        let mut settings = SandboxSettings {
            mode: Some(Mode::Workspace),
            network: Some(NetworkMode::Open),
            ..SandboxSettings::default()
        };
        let project = json!({
            "mode": "off", "write": ["/"], "show": ["~/.ssh"], "tools": {}, "hide": ["secret"],
            "network": {"mode": "open", "hosts": ["example.org"]},
        });
        settings.narrow(&project, |text| warned.borrow_mut().push(text.to_owned()));
        assert_eq!(settings.mode, Some(Mode::Workspace));
        assert_eq!(settings.network, Some(NetworkMode::Open));
        assert_eq!(settings.hide, ["secret"]);
        assert!(settings.write.is_empty() && settings.show.is_empty());
        assert_eq!(warned.borrow().len(), 1);
        settings.narrow(
            &json!({"mode": "strict", "network": {"mode": "none"}}),
            |_| {},
        );
        assert_eq!(settings.mode, Some(Mode::Strict));
        assert_eq!(settings.network, Some(NetworkMode::None));
    }
}
