//! Denials as data: the members of `details.sandbox`.

use serde::{Deserialize, Serialize};

use crate::Mode;

/// The mechanisms that confine a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Level {
    /// Landlock and a supervised seccomp filter.
    #[serde(rename = "L")]
    Landlock,
    /// The same in a mount namespace.
    #[serde(rename = "N")]
    Namespace,
    /// Landlock and fixed answers, because an outer sandbox already supervises this process.
    #[serde(rename = "inherited")]
    Inherited,
}

/// The denials of one call: the member `sandbox` of its details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    /// The mode in force.
    pub mode: Mode,
    /// The level in force.
    pub level: Level,
    /// The denials, each different one once; at most 64.
    pub denied: Vec<Record>,
    /// The number of denials that did not fit.
    #[serde(default)]
    pub more: u64,
}

/// The most denials that a sentence names.
const MAX_NAMED: usize = 8;

impl SandboxReport {
    /// Describes the denials in one line, for people and models.
    pub fn sentence(&self) -> String {
        let named = self.denied.iter().take(MAX_NAMED);
        let mut parts: Vec<String> = named.map(|record| record.denial.described()).collect();
        let more = self.denied.len().saturating_sub(MAX_NAMED) as u64 + self.more;
        if more > 0 {
            parts.push(format!("{more} more"));
        }
        format!("[The sandbox refused: {}.]", parts.join("; "))
    }
}

/// A denial, and the number of times that it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The operation.
    #[serde(flatten)]
    pub denial: Denial,
    /// The number of equal denials.
    pub count: u64,
    /// The name of the program that tried it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The permission to ask for, such as `write:/etc/hosts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
}

/// An operation that the sandbox refused. Paths are absolute; the user's home is written `~`, and bytes that are not text are
/// escaped.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Denial {
    /// Opening a file for writing.
    Write {
        /// The file.
        path: String,
    },
    /// Creating a file, directory, link or other node.
    Create {
        /// The new name.
        path: String,
    },
    /// Removing a file or directory.
    Remove {
        /// The name.
        path: String,
    },
    /// Renaming or linking.
    Rename {
        /// The present name.
        path: String,
        /// The new name.
        to: String,
    },
    /// Changing mode, owner, times or extended attributes.
    Attributes {
        /// The file.
        path: String,
    },
    /// Reading a file.
    Read {
        /// The file.
        path: String,
    },
    /// Changing a protected place.
    Protected {
        /// The place.
        path: String,
        /// The result. `None` means refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
    },
    /// Connecting to an address.
    Connect {
        /// The address, without port.
        address: String,
        /// The port.
        port: u16,
        /// The protocol if it is not TCP.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protocol: Option<String>,
    },
    /// Serving on an address.
    Bind {
        /// The address, without port.
        address: String,
        /// The port.
        port: u16,
        /// The protocol if it is not TCP.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protocol: Option<String>,
    },
    /// Connecting to a host through the proxy.
    Host {
        /// The name, or the address if it is listed as such.
        host: String,
        /// The port.
        port: u16,
    },
    /// Creating a socket.
    Socket {
        /// The address family, such as `inet`.
        family: String,
        /// The type, such as `dgram`.
        kind: String,
    },
    /// Connecting to a UNIX socket.
    Unix {
        /// The path of the socket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// The name of an abstract socket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// A system call that the sandbox does not permit.
    Syscall {
        /// The name of the call.
        name: String,
    },
    /// A limit that was reached.
    Limit {
        /// The name of the limit in the settings.
        limit: String,
        /// Its value.
        value: u64,
    },
}

/// The result of a change of a protected place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The call failed.
    Refused,
    /// The change was undone after the command.
    Restored,
    /// The new file was moved away after the command.
    Quarantined,
}

impl Denial {
    /// Describes the denial in a few words.
    pub fn described(&self) -> String {
        match self {
            Self::Write { path } => format!("write {path}"),
            Self::Create { path } => format!("create {path}"),
            Self::Remove { path } => format!("remove {path}"),
            Self::Rename { path, to } => format!("rename {path} to {to}"),
            Self::Attributes { path } => format!("change attributes of {path}"),
            Self::Read { path } => format!("read {path}"),
            Self::Protected { path, .. } => format!("change the protected {path}"),
            Self::Connect { address, port, .. } => format!("connect to {}", joined(address, *port)),
            Self::Bind { address, port, .. } => format!("serve on {}", joined(address, *port)),
            Self::Host { host, port } => format!("connect to {}", joined(host, *port)),
            Self::Socket { family, kind } => format!("socket {family} {kind}"),
            Self::Unix {
                path: Some(path), ..
            } => format!("connect to the socket {path}"),
            Self::Unix { name, .. } => {
                format!(
                    "use the abstract socket {}",
                    name.as_deref().unwrap_or_default()
                )
            }
            Self::Syscall { name } => format!("system call {name}"),
            Self::Limit { limit, value } => format!("limit {limit} of {value}"),
        }
    }

    /// The permission to ask for; `None` if the operation cannot be permitted.
    pub fn ask(&self) -> Option<String> {
        Some(match self {
            Self::Write { path }
            | Self::Create { path }
            | Self::Remove { path }
            | Self::Attributes { path }
            | Self::Protected { path, .. } => format!("write:{path}"),
            Self::Rename { to, .. } => format!("write:{to}"),
            Self::Read { path } => format!("read:{path}"),
            Self::Connect { address, port, .. } => format!("connect:{}", joined(address, *port)),
            Self::Bind { address, port, .. } => format!("bind:{}", joined(address, *port)),
            Self::Host { host, port } => format!("host:{}", joined(host, *port)),
            Self::Unix {
                path: Some(path), ..
            } => format!("socket:{path}"),
            Self::Unix { .. } | Self::Socket { .. } | Self::Syscall { .. } | Self::Limit { .. } => {
                return None;
            }
        })
    }
}

fn joined(address: &str, port: u16) -> String {
    if address.contains(':') {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(denial: Denial) -> String {
        let ask = denial.ask();
        let record = Record {
            denial,
            count: 1,
            program: Some("curl".into()),
            ask,
        };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
        text
    }

    #[test]
    fn records_have_the_documented_form() {
        let write = Denial::Write {
            path: "/etc/hosts".into(),
        };
        assert_eq!(
            record(write),
            r#"{"op":"write","path":"/etc/hosts","count":1,"program":"curl","ask":"write:/etc/hosts"}"#
        );
        let connect = Denial::Connect {
            address: "2001:db8::1".into(),
            port: 443,
            protocol: None,
        };
        assert_eq!(
            record(connect),
            r#"{"op":"connect","address":"2001:db8::1","port":443,"count":1,"program":"curl","ask":"connect:[2001:db8::1]:443"}"#
        );
        let socket = Denial::Socket {
            family: "inet".into(),
            kind: "dgram".into(),
        };
        assert_eq!(
            record(socket),
            r#"{"op":"socket","family":"inet","kind":"dgram","count":1,"program":"curl"}"#
        );
    }
}
