//! `mcp.json`: the servers of the user and of a trusted project.
//!
//! ```json
//! {"mcpServers": {
//!   "files": {"command": "npx", "args": ["-y", "some-server", "."], "exposure": "direct"},
//!   "docs": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}}
//! }}
//! ```
//!
//! A server of the project replaces the user's server of the same name. Without `command`, `url` and `type` it only
//! changes `enabled`, `exposure` and `toolExposure` of the user's server. An invalid entry is reported and skipped.

pub(crate) mod edit;
mod entry;
pub(crate) mod new_server;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinion_config::{Dirs, ProjectTrust, read_json_file};
use pinion_text::{fits_wildcard, nearest};
use serde_json::{Map, Value};

use self::entry::Entry;
use crate::names::Spelling;

/// The members of a file. Editors use `$schema`.
const MEMBERS: [&str; 3] = ["mcpServers", "autoEnableCodemode", "$schema"];

/// The servers of a session.
#[derive(Debug, Clone, Default)]
pub struct McpConfig {
    /// The servers in the order of the files, the user's first; disabled ones are included.
    pub servers: Vec<ServerEntry>,
    /// The tool `codemode` becomes active when a server connects whose tools only scripts can call.
    pub enables_codemode: bool,
    /// The errors in the files.
    pub problems: Vec<ConfigProblem>,
    /// The file of the project, which was not read because the project is untrusted.
    pub untrusted: Option<PathBuf>,
}

/// A server as a file configures it.
#[derive(Debug, Clone)]
pub struct ServerEntry {
    pub name: String,
    pub config: ServerConfig,
    /// The file with the entry.
    pub file: PathBuf,
    /// The client of the session gave the server: its values are used as they are, and its name stays in those of its
    /// tools.
    pub of_client: bool,
}

impl ServerEntry {
    /// Creates the entry of a server that the client of a session gave. The model sees its tools from the start.
    pub fn of_client(name: &str, target: ServerTarget) -> Self {
        Self {
            name: name.to_owned(),
            config: ServerConfig {
                target,
                timeout: entry::DEFAULT_TIMEOUT,
                enabled: true,
                exposure: McpExposure::Direct,
                tool_exposure: Vec::new(),
                description: None,
            },
            file: PathBuf::new(),
            of_client: true,
        }
    }

    /// Returns the spelling of the names of its tools.
    pub(crate) fn spelling(&self) -> Spelling {
        if self.of_client {
            Spelling::Dashes
        } else {
            Spelling::Identifiers
        }
    }
}

/// The settings of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    pub target: ServerTarget,
    /// Time limit of a call. The progress that the server reports extends it.
    pub timeout: Duration,
    pub enabled: bool,
    pub exposure: McpExposure,
    /// Exposures of single tools: names, or patterns with `*`.
    pub tool_exposure: Vec<(String, McpExposure)>,
    pub description: Option<String>,
}

/// The program or the URL of a server. Values of `env` and `headers` are not resolved.
#[derive(Clone, PartialEq)]
#[allow(missing_docs)]
pub enum ServerTarget {
    Command {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
        cwd: Option<String>,
    },
    Http {
        url: String,
        headers: Vec<(String, String)>,
        oauth: OauthSettings,
    },
    /// It cannot be used, for this reason.
    Unusable(String),
}

/// The settings of a sign-in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OauthSettings {
    /// The id of a client that is registered at the authorization server.
    pub client_id: Option<String>,
    /// Its secret, not resolved.
    pub client_secret: Option<String>,
    /// The port for the answer of the browser; any free port if absent.
    pub callback_port: Option<u16>,
    /// The redirect URI, which must be on this machine.
    pub callback_url: Option<String>,
    /// The scopes to request, separated by spaces.
    pub scope: Option<String>,
    /// The name under which pinion registers; `pi` if absent.
    pub client_name: Option<String>,
    /// The document that describes the authorization server, in place of discovery.
    pub metadata_url: Option<String>,
}

/// The way in which the model reaches the tools of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum McpExposure {
    /// Scripts of the tool `codemode` call them.
    #[default]
    Codemode,
    /// The tool `tool_search` declares them to the model.
    Deferred,
    /// They are declared to the model.
    Direct,
    /// They cannot be called.
    Hidden,
}

/// An error in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    pub file: PathBuf,
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.message)
    }
}

impl fmt::Debug for ServerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values may be secrets.
        match self {
            Self::Command { command, .. } => f.debug_tuple("Command").field(command).finish(),
            Self::Http { url, .. } => f.debug_tuple("Http").field(url).finish(),
            Self::Unusable(reason) => f.debug_tuple("Unusable").field(reason).finish(),
        }
    }
}

impl McpExposure {
    const NAMES: [(&'static str, Self); 5] = [
        ("codemode", Self::Codemode),
        ("deferred", Self::Deferred),
        ("direct", Self::Direct),
        ("hidden", Self::Hidden),
        ("codemode-deferred", Self::Codemode),
    ];

    /// Finds an exposure by its name in `mcp.json`. The error names the nearest one.
    pub fn named(name: &str) -> Result<Self, String> {
        let known = Self::NAMES.iter().find(|(known, _)| *known == name);
        let names = || Self::NAMES.iter().map(|(name, _)| *name).take(4);
        known.map(|(_, exposure)| *exposure).ok_or_else(|| {
            let hint = match nearest(name, names()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("use {}", names().collect::<Vec<_>>().join(", ")),
            };
            format!("unknown exposure \"{name}\"; {hint}")
        })
    }

    /// Returns the name in `mcp.json`.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, exposure)| *exposure == self);
        found.map_or("codemode", |(name, _)| name)
    }
}

impl ServerConfig {
    /// Reads the entry of one server. The error names the member.
    pub fn read(name: &str, entry: &Value) -> Result<Self, String> {
        match Entry::read(name, entry)? {
            Entry::Server(config) => Ok(*config),
            Entry::Override(_) => {
                Err("set either \"command\" with a program or \"url\" with an address".to_owned())
            }
        }
    }

    /// Returns the exposure of one tool.
    pub fn exposure_of(&self, tool: &str) -> McpExposure {
        let exact = self.tool_exposure.iter().find(|(name, _)| name == tool);
        let fitting = || {
            self.tool_exposure
                .iter()
                .find(|(pattern, _)| fits_wildcard(pattern, tool))
        };
        exact
            .or_else(fitting)
            .map_or(self.exposure, |(_, exposure)| *exposure)
    }

    /// Reports whether some tools may be declared to the model from the start.
    pub(crate) fn may_declare(&self) -> bool {
        let exposures = self.tool_exposure.iter().map(|(_, exposure)| *exposure);
        std::iter::once(self.exposure)
            .chain(exposures)
            .any(|exposure| exposure == McpExposure::Direct)
    }
}

/// Returns the files that exist: the user's, then the project's. Reads neither.
pub fn configured_files(dirs: &Dirs) -> Vec<PathBuf> {
    let files = [user_file(dirs), project_file(dirs)];
    files
        .into_iter()
        .filter(|file| file.symlink_metadata().is_ok())
        .collect()
}

fn user_file(dirs: &Dirs) -> PathBuf {
    dirs.agent_dir.join("mcp.json")
}

fn project_file(dirs: &Dirs) -> PathBuf {
    dirs.project_dir.join("mcp.json")
}

/// Returns the sentence about a file that is not read.
pub fn untrusted_notice(file: &Path) -> String {
    format!(
        "{}: not read, because the project is untrusted; run `pinion trust` to use its MCP servers",
        file.display()
    )
}

impl McpConfig {
    /// Finds a server: with `file`, only if that file configures it. The error suggests the nearest name.
    pub fn find(&self, name: &str, file: Option<&Path>) -> Result<&ServerEntry, String> {
        let fits =
            |entry: &&ServerEntry| entry.name == name && file.is_none_or(|file| entry.file == file);
        self.servers.iter().find(fits).ok_or_else(|| {
            let names = self.servers.iter().map(|entry| entry.name.as_str());
            let hint = match nearest(name, names) {
                Some(near) => format!("Did you mean {near}?"),
                None => "`pinion mcp list` shows the servers there are.".to_owned(),
            };
            format!("there is no MCP server {name:?}. {hint}")
        })
    }

    /// Reads the user's file and, if the project is trusted, the project's. Blocks on the files.
    pub fn load(dirs: &Dirs, trust: ProjectTrust) -> Self {
        let mut config = Self {
            enables_codemode: true,
            ..Self::default()
        };
        config.add_file(&user_file(dirs));
        let project = project_file(dirs);
        if project == user_file(dirs) {
            return config;
        }
        match trust {
            ProjectTrust::Trusted => config.add_file(&project),
            ProjectTrust::Untrusted => {
                config.untrusted = Some(project).filter(|file| file.symlink_metadata().is_ok());
            }
        }
        config
    }

    fn add_file(&mut self, file: &Path) {
        let mut notices = Vec::new();
        let object = read_json_file(file, &mut notices);
        for notice in notices {
            self.problem(file, notice.message);
        }
        self.add(file, &object);
    }

    fn problem(&mut self, file: &Path, message: String) {
        self.problems.push(ConfigProblem {
            file: file.to_owned(),
            message,
        });
    }

    fn add(&mut self, file: &Path, object: &Map<String, Value>) {
        for (name, value) in object {
            match (name.as_str(), value) {
                ("mcpServers", Value::Object(servers)) => {
                    for (name, entry) in servers {
                        if let Err(message) = self.add_server(file, name, entry) {
                            self.problem(file, format!("server \"{name}\": {message}"));
                        }
                    }
                }
                ("autoEnableCodemode", Value::Bool(on)) => self.enables_codemode = *on,
                ("$schema", _) => {}
                ("mcpServers", _) => self.problem(file, "mcpServers must be an object".into()),
                ("autoEnableCodemode", _) => {
                    self.problem(file, "autoEnableCodemode must be true or false".into());
                }
                _ => self.problem(file, unknown_member(name, &MEMBERS)),
            }
        }
    }

    fn add_server(&mut self, file: &Path, name: &str, entry: &Value) -> Result<(), String> {
        let entry = Entry::read(name, entry)?;
        let is_same =
            |known: &&mut ServerEntry| known.name.replace('-', "_") == name.replace('-', "_");
        let known = self.servers.iter_mut().find(is_same);
        if let Some(known) = &known
            && known.name != name
        {
            return Err(format!(
                "its tools would have the names of the server \"{}\"; rename one of them",
                known.name
            ));
        }
        match (entry, known) {
            (Entry::Override(change), Some(known)) => change.apply(&mut known.config),
            (Entry::Override(_), None) => {
                return Err(
                    "set either \"command\" with a program or \"url\" with an address".into(),
                );
            }
            (Entry::Server(config), Some(known)) => {
                known.config = *config;
                file.clone_into(&mut known.file);
            }
            (Entry::Server(config), None) => self.servers.push(ServerEntry {
                name: name.to_owned(),
                config: *config,
                file: file.to_owned(),
                of_client: false,
            }),
        }
        Ok(())
    }
}

/// Returns the message for an unknown member.
fn unknown_member(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown member \"{name}\"; did you mean \"{near}\"?"),
        None => format!("unknown member \"{name}\"; use {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(files: &[Value]) -> McpConfig {
        let mut config = McpConfig::default();
        for (number, file) in files.iter().enumerate() {
            let path = PathBuf::from(format!("/{number}.json"));
            config.add(&path, file.as_object().unwrap());
        }
        config
    }

    #[test]
    fn a_project_replaces_or_changes_the_users_servers() {
        let user = json!({"mcpServers": {
            "a": {"command": "x", "env": {"K": "${K}"}},
            "b": {"url": "https://b.example/mcp", "timeout": 5},
        }});
        let project = json!({"autoEnableCodemode": false, "mcpServers": {
            "a": {"enabled": false, "exposure": "direct"},
            "b": {"command": "y", "exposure": "codemode-deferred"},
        }});
        let config = read(&[user, project]);
        assert_eq!(config.problems, []);
        assert!(!config.enables_codemode);
        let [a, b] = &config.servers[..] else {
            panic!("{config:?}");
        };
        assert!(!a.config.enabled && a.config.exposure == McpExposure::Direct);
        assert_eq!(a.file, Path::new("/0.json"));
        assert!(
            matches!(&b.config.target, ServerTarget::Command { command, .. } if command == "y")
        );
        assert_eq!(b.config.exposure, McpExposure::Codemode);
        assert_eq!(b.config.timeout, Duration::from_secs(60));
        assert_eq!(b.file, Path::new("/1.json"));
        assert!(!format!("{config:?}").contains("${K}"));
    }

    #[test]
    fn unknown_words_name_the_nearest_one_and_leave_other_servers_alone() {
        let file = json!({"mcpServer": {}, "mcpServers": {
            "good": {"command": "x"},
            "a": {"comand": "x"},
            "b": {"command": "x", "exposure": "direkt"},
            "c": {"command": "x", "url": "https://c.example"},
            "d": {"url": "ftp://d.example"},
            "e e": {"command": "x"},
            "f": {"url": "https://f.example", "type": "sse"},
            "g": {"command": "x", "timeout": "1"},
            "h": {"url": "https://h.example", "oauth": {"clientID": "x"}},
            "i": {},
            "good_": {"command": "x"}, "good-": {"command": "x"},
        }});
        let config = read(&[file]);
        let messages: Vec<_> = config.problems.iter().map(ToString::to_string).collect();
        for words in [
            "\"mcpServer\"; did you mean \"mcpServers\"?",
            "\"a\": unknown member \"comand\"; did you mean \"command\"?",
            "\"b\": unknown exposure \"direkt\"; did you mean \"direct\"?",
            "\"c\": set either",
            "\"d\": ",
            "\"e e\": ",
            "\"f\": the transport \"sse\"",
            "\"g\": \"timeout\" must be",
            "\"clientID\"; did you mean \"clientId\"?",
            "\"i\": set either",
            "the server \"good_\"",
        ] {
            assert!(
                messages.iter().any(|message| message.contains(words)),
                "{words}: {messages:#?}"
            );
        }
        let names: Vec<_> = config.servers.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["good", "good_"]);
    }

    #[test]
    fn exact_names_override_patterns_and_the_first_pattern_wins() {
        let entry = json!({"command": "x", "exposure": "deferred", "toolExposure": {
            "get_*": "codemode", "*": "hidden", "get_all": "direct",
        }});
        let config = ServerConfig::read("x", &entry).unwrap();
        assert_eq!(config.exposure_of("get_all"), McpExposure::Direct);
        assert_eq!(config.exposure_of("get_one"), McpExposure::Codemode);
        assert_eq!(config.exposure_of("put"), McpExposure::Hidden);
        assert!(config.may_declare());
    }
}
