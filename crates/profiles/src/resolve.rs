//! The settings of a run: defaults, the command file, the environment, the command line, and the
//! profile, in this order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pinion_yaml::Node;
use serde_json::Value;

use crate::check::{self, Findings, Unknown};
use crate::config::Config;
use crate::error::{Notice, ProfileError};
use crate::keys::{Key, SettingKind, options};
use crate::library::{Library, Selected};
use crate::locations::{HostContext, Layer, git_root};
use crate::settings::InferenceSettings;
use crate::slug::Slug;
use crate::tree::Tree;

/// The requested settings of a run.
#[derive(Clone, Default)]
pub struct ProfileRequest {
    /// `--profile`.
    pub profile: Option<String>,
    /// `--profile-registries`.
    pub registries: Option<Vec<String>>,
    /// `--config-file`.
    pub config_file: Option<PathBuf>,
    /// `factories` of the command file.
    pub factories: Option<Factories>,
    /// The given options, by name without dashes, as text or as parsed values.
    pub options: BTreeMap<String, Value>,
}

/// Prints the names of options only, because their values may be keys.
impl std::fmt::Debug for ProfileRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProfileRequest")
            .field("profile", &self.profile)
            .field("registries", &self.registries)
            .field("config_file", &self.config_file)
            .field("options", &self.options.keys())
            .finish_non_exhaustive()
    }
}

/// Settings in a command file.
#[derive(Clone)]
pub struct Factories {
    /// The value of `factories`.
    pub settings: Value,
    /// The command file, if there is one. An untrusted project must not choose the server of
    /// requests.
    pub file: Option<PathBuf>,
}

/// Prints the file only, because its settings may hold keys.
impl std::fmt::Debug for Factories {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Factories")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// The settings of a run and their sources.
#[derive(Debug)]
pub struct Resolved {
    pub settings: InferenceSettings,
    /// The profile that was applied.
    pub profile: Option<Selected>,
    /// The layers, lowest first; the first is the defaults.
    pub layers: Vec<Layer>,
    /// The settings of all layers except the defaults.
    pub given: Tree,
    /// Notices for stderr.
    pub notices: Vec<Notice>,
    pub config: Config,
    pub library: Library,
}

/// Returns the settings for a request.
pub fn resolve(host: &HostContext<'_>, asked: &ProfileRequest) -> Result<Resolved, ProfileError> {
    let mut config = Config::load(host, asked.config_file.as_deref())?;
    let named_registries = asked.registries.clone().or_else(|| {
        let text = host.variable("PINOCCHIO_PROFILE_REGISTRIES")?;
        Some(split_list(&text))
    });
    let mut library = Library::open(&config, named_registries.as_deref(), host)?;
    let name = chosen(host, asked, &config)?;
    let profile = library.select(name.as_ref())?;

    let mut notices = std::mem::take(&mut config.notices);
    notices.append(&mut library.notices);
    let mut layers = vec![Layer {
        name: "defaults".to_owned(),
        settings: defaults()?,
    }];
    let mut add = |name: &str, settings: Tree| {
        if !settings.is_empty() {
            layers.push(Layer {
                name: name.to_owned(),
                settings,
            });
        }
    };
    if let Some(factories) = &asked.factories {
        add("factories", of_factories(factories, host, &mut notices)?);
    }
    add("environment", of_environment(host)?);
    add("command line", of_options(&asked.options)?);
    if let Some(profile) = &profile {
        let name = format!("profile {}/{}", profile.registry, profile.slug);
        add(&name, profile.settings.clone());
    }
    let mut given = Tree::default();
    for layer in &layers[1..] {
        given.overlay(&layer.settings);
    }
    let mut all = layers[0].settings.clone();
    all.overlay(&given);
    let settings = InferenceSettings::from_tree(all).map_err(|message| ProfileError::Setting {
        origin: "inference settings".to_owned(),
        message,
    })?;
    Ok(Resolved {
        settings,
        profile,
        layers,
        given,
        notices,
        config,
        library,
    })
}

impl Resolved {
    /// Reports whether a layer other than the defaults sets this, even to its default value.
    pub fn is_given(&self, path: &[&str]) -> bool {
        self.given.get(path).is_some()
    }

    /// Returns the last layer that set this.
    pub fn origin(&self, path: &[&str]) -> Option<&str> {
        let layer = self
            .layers
            .iter()
            .rev()
            .find(|layer| layer.settings.get(path).is_some());
        layer.map(|layer| layer.name.as_str())
    }
}

/// Returns `--profile`, else the environment's profile, else the documents'.
fn chosen(
    host: &HostContext<'_>,
    asked: &ProfileRequest,
    config: &Config,
) -> Result<Option<Slug>, ProfileError> {
    let flag = asked.profile.clone().filter(|name| !name.trim().is_empty());
    let (origin, text) = match flag {
        Some(text) => ("--profile", text),
        None => match host.variable("PINOCCHIO_PROFILE") {
            Some(text) => ("PINOCCHIO_PROFILE", text),
            None => return Ok(config.active.clone()),
        },
    };
    match Slug::new(&text) {
        Some(slug) => Ok(Some(slug)),
        None => Err(ProfileError::Slug {
            origin: origin.to_owned(),
            what: "profile",
            text,
        }),
    }
}

fn defaults() -> Result<Tree, ProfileError> {
    let mut tree = Tree::default();
    for key in options() {
        if let Some(default) = key.default {
            tree.set(key.path, from_text("default", key, default)?);
        }
    }
    Ok(tree)
}

fn of_factories(
    factories: &Factories,
    host: &HostContext<'_>,
    notices: &mut Vec<Notice>,
) -> Result<Tree, ProfileError> {
    let origin = match &factories.file {
        Some(file) => format!("{}: factories", file.display()),
        None => "factories".to_owned(),
    };
    let mut findings = Findings::default();
    let mut value = factories.settings.clone();
    if let Some(file) = &factories.file
        && !may_direct(file, host)
        && let Some(members) = value.as_object_mut()
    {
        let mut removed = members.shift_remove("api").is_some();
        if let Some(client) = members.get_mut("client").and_then(Value::as_object_mut) {
            removed |= client.shift_remove("proxy_url").is_some();
        }
        if removed {
            notices.push(Notice::new(
                "untrusted_factories",
                format!(
                    "{}: this project is not trusted, so the keys and addresses under `factories` are ignored; look at the file, then run `pinion trust` here to accept them",
                    file.display()
                ),
            ));
        }
    }
    let tree = check::settings(&Node::from_value(&value), Unknown::Kept, &mut findings);
    for remark in findings.remarks {
        let words = format!("{origin}: {remark}; it has no effect");
        notices.push(Notice::new("unknown_setting", words));
    }
    match findings.problems.into_iter().next() {
        None => Ok(tree),
        Some(problem) => Err(ProfileError::Setting {
            origin,
            message: problem.message,
        }),
    }
}

/// Reports whether a command file may choose the server of requests: it is the user's own, or
/// belongs to a trusted project.
fn may_direct(file: &Path, host: &HostContext<'_>) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let file = real(&host.cwd.join(file));
    let own = [
        host.home.join(".pinocchio"),
        host.user_config().join("pinocchio"),
        host.system.join("pinocchio"),
    ];
    if own
        .iter()
        .any(|directory| file.starts_with(real(directory)))
    {
        return true;
    }
    let root = git_root(host.cwd).unwrap_or_else(|| host.cwd.to_owned());
    let directory = file.parent().unwrap_or(&file);
    let in_project = file.starts_with(real(&root));
    // A file elsewhere may belong to another, foreign repository.
    let foreign = git_root(directory).is_some();
    (!in_project && !foreign) || (host.trusts)(directory)
}

fn of_environment(host: &HostContext<'_>) -> Result<Tree, ProfileError> {
    let mut tree = Tree::default();
    for key in options() {
        let Some(variable) = key.variable() else {
            continue;
        };
        if let Some(text) = host.variable(&variable) {
            tree.set(key.path, from_text(&variable, key, &text)?);
        }
    }
    Ok(tree)
}

fn of_options(given: &BTreeMap<String, Value>) -> Result<Tree, ProfileError> {
    let mut tree = Tree::default();
    for key in options() {
        let Some((name, value)) = key.option.and_then(|name| given.get_key_value(name)) else {
            continue;
        };
        let origin = format!("--{name}");
        let value = match value {
            Value::String(text) => from_text(&origin, key, text)?,
            value => from_value(&origin, key, value)?,
        };
        if !value.is_null() {
            tree.set(key.path, value);
        }
    }
    Ok(tree)
}

/// Parses a value from a shell: commas separate list items, and `=` or `:` pairs.
fn from_text(origin: &str, key: &Key, text: &str) -> Result<Value, ProfileError> {
    match key.kind {
        SettingKind::Texts => Ok(Value::from(split_list(text))),
        SettingKind::Integers => {
            let pair = |pair: &String| {
                let (name, number) = pair.split_once(['=', ':'])?;
                Some((name.trim().to_owned(), Value::from(number.trim())))
            };
            let pairs: Option<_> = split_list(text).iter().map(pair).collect();
            let pairs = pairs.ok_or_else(|| ProfileError::Setting {
                origin: origin.to_owned(),
                message: "write NUMBER=BIAS, several separated by commas".to_owned(),
            })?;
            from_value(origin, key, &Value::Object(pairs))
        }
        _ => from_value(origin, key, &Value::from(text)),
    }
}

fn from_value(origin: &str, key: &Key, value: &Value) -> Result<Value, ProfileError> {
    let checked = check::coerce("it", key.kind, &Node::from_value(value));
    checked.map_err(|problem| ProfileError::Setting {
        origin: origin.to_owned(),
        message: problem.message,
    })
}

/// Splits at commas; the whole may be in brackets.
fn split_list(text: &str) -> Vec<String> {
    let text = text.trim();
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    inner
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect()
}
