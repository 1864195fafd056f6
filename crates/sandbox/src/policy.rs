//! The policy of a sandbox as plain data.
//!
//! A policy is complete: its paths are absolute, without links and without patterns, and built-in lists are already merged
//! in. The kernel side reads it and adds nothing to it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The mode of a sandbox, from the widest to the narrowest.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Not confined.
    #[default]
    #[serde(alias = "danger-full-access")]
    Off,
    /// Writes to the workspace, reads everything but hidden places.
    #[serde(alias = "workspace-write")]
    Workspace,
    /// Writes to the private temporary directory only, reads everything but hidden places.
    ReadOnly,
    /// Writes to the workspace, reads listed places only, and has a fresh home directory.
    Strict,
}

impl Mode {
    /// The modes by name; each has one more spelling that other programs use.
    pub const NAMES: [&'static str; 4] = ["off", "read-only", "workspace", "strict"];

    /// Returns the name in flags and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::ReadOnly => "read-only",
            Self::Strict => "strict",
        }
    }

    /// Finds a mode by its name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "off" | "danger-full-access" => Self::Off,
            "workspace" | "workspace-write" => Self::Workspace,
            "read-only" => Self::ReadOnly,
            "strict" => Self::Strict,
            _ => return None,
        })
    }
}

/// The rules for one confined process and everything that it starts.
///
/// A path stands for a file, or for a directory with everything below it. Hidden beats protected, protected beats writable.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// The mode that the policy was made from; never `Off`.
    pub mode: Mode,
    /// Places that may be written: the workspace, its git directories, `write` of the settings. Each should exist; one that
    /// does not is not writable.
    #[serde(default)]
    pub writable: Vec<PathBuf>,
    /// Places that may be read.
    pub reading: Reading,
    /// Places that may be neither read nor written. Entries that do not exist are ignored.
    #[serde(default)]
    pub hidden: Vec<PathBuf>,
    /// Places below hidden ones that may be read all the same.
    #[serde(default)]
    pub shown: Vec<PathBuf>,
    /// Places inside of writable ones that may be read but not written, moved or replaced. An entry that does not exist may
    /// not be created.
    #[serde(default)]
    pub protected: Vec<PathBuf>,
    /// The method that protects places where there is no mount namespace.
    #[serde(default)]
    pub protection: Protection,
    /// A directory of mode 700 for this run: `TMPDIR`, and `/tmp` in a mount namespace. It is writable without being in
    /// `writable`.
    #[serde(default)]
    pub temporary: Option<PathBuf>,
    /// The home directory of `strict`: a fresh directory that is writable without being in `writable`.
    #[serde(default)]
    pub home: Option<PathBuf>,
    /// Addresses that may be reached.
    #[serde(default)]
    pub network: Network,
    /// Limits of the process and everything that it starts.
    #[serde(default)]
    pub limits: Limits,
    /// Names of variables that stay in the environment although they look like secrets.
    #[serde(default)]
    pub environment: Vec<String>,
    /// The answer to an operation that the policy refuses and a person could permit.
    #[serde(default)]
    pub escalation: Escalation,
    /// Mechanisms that the sandbox refuses unless they are listed here.
    #[serde(default)]
    pub allow: Vec<Allowance>,
    /// Requires a mount namespace: the process does not start where there is none. `strict.namespaces` of the settings.
    #[serde(default)]
    pub require_namespaces: bool,
}

/// The places that may be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reading {
    /// Every place but the hidden ones.
    AllButHidden,
    /// These places and the writable ones.
    Only(Vec<PathBuf>),
}

/// The method that protects places where there is no mount namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Protection {
    /// The supervisor performs every write and every change of names.
    #[default]
    Broker,
    /// Protected places are compared before and after the command, and restored.
    Check,
}

/// The addresses that may be reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Network {
    /// The way out of the machine.
    pub mode: NetworkMode,
    /// Hosts that the proxy connects to: `example.org`, `*.example.org`, each with an optional `:port`. None if empty.
    pub hosts: Vec<String>,
    /// Hosts that the proxy refuses even if `hosts` has them.
    pub deny: Vec<String>,
    /// Paths of UNIX sockets that may be connected to.
    pub sockets: Vec<PathBuf>,
    /// Servers on this machine that may be reached over TCP.
    pub loopback: Loopback,
    /// The port of the proxy on 127.0.0.1, once it runs.
    pub proxy: Option<u16>,
}

/// The way out of the machine.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub enum NetworkMode {
    /// Every address and protocol.
    Open,
    /// Hosts of the list, through the proxy.
    Proxy,
    /// Not available.
    #[default]
    None,
}

/// The servers on this machine that may be reached over TCP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Loopback {
    /// Servers that run in the sandbox of the same run.
    #[default]
    Own,
    /// Not one; servers cannot be started either.
    None,
    /// Every server.
    All,
    /// Servers that run in the sandbox, and those on these ports.
    Ports(Vec<u16>),
}

/// Limits of a process and everything that it starts. `None` is unlimited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Resident memory of all processes together, in MiB.
    pub memory_mb: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Size of a file that is written, in MiB.
    pub file_mb: Option<u64>,
    /// Processor time of one process, in seconds.
    pub cpu_seconds: Option<u64>,
    /// Open descriptors of one process.
    pub open_files: Option<u64>,
}

/// The answer to an operation that the policy refuses and a person could permit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Escalation {
    /// The operation fails at once.
    #[default]
    Refuse,
    /// The operation waits for the client's answer.
    Ask,
}

/// A mechanism that the sandbox refuses by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Allowance {
    /// User namespaces, for programs that bring a sandbox of their own.
    #[serde(rename = "userns")]
    UserNamespaces,
}
