//! A machine with a user, a repository and an environment.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pinion_llm::{Environment, Registry, RegistryOptions};
use pinion_profiles::{
    Chosen, HostContext, ProfileError, ProfileRequest, Resolved, Unnamed, engine, resolve,
};
use serde_json::{Value, json};
use tempfile::TempDir;

pub struct World {
    held: TempDir,
    pub cwd: PathBuf,
    pub variables: BTreeMap<String, String>,
    pub trusted: Vec<PathBuf>,
    /// The directories whose trust was checked.
    pub asked_about: RefCell<Vec<PathBuf>>,
}

impl World {
    /// `home`, `etc` and `repo/sub`, where `repo` is a git repository and `sub` the working directory.
    pub fn new() -> Self {
        let held = tempfile::tempdir().unwrap();
        let cwd = held.path().join("repo/sub");
        fs::create_dir_all(&cwd).unwrap();
        fs::create_dir_all(held.path().join("repo/.git")).unwrap();
        fs::create_dir_all(held.path().join("home")).unwrap();
        Self {
            held,
            cwd,
            variables: BTreeMap::new(),
            trusted: Vec::new(),
            asked_about: RefCell::default(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.held.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn variable(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    pub fn trust(&mut self, name: &str) {
        let path = self.path(name);
        self.trusted.push(path);
    }

    pub fn with<T>(&self, act: impl FnOnce(&HostContext<'_>) -> T) -> T {
        let home = self.path("home");
        let system = self.path("etc");
        let environment = |name: &str| self.variables.get(name).cloned();
        let trusts = |directory: &Path| {
            self.asked_about.borrow_mut().push(directory.to_owned());
            self.trusted
                .iter()
                .any(|trusted| directory.starts_with(trusted))
        };
        act(&HostContext {
            home: &home,
            cwd: &self.cwd,
            environment: &environment,
            trusts: &trusts,
            system: &system,
        })
    }

    pub fn resolve(&self, asked: &ProfileRequest) -> Result<Resolved, ProfileError> {
        self.with(|host| resolve(host, asked))
    }

    /// Returns the settings without command-line options.
    pub fn settings(&self) -> Value {
        self.resolve(&ProfileRequest::default())
            .unwrap()
            .settings
            .masked()
    }

    /// Returns the error without command-line options.
    pub fn error_text(&self) -> String {
        self.error_for(&ProfileRequest::default())
    }

    pub fn error_for(&self, asked: &ProfileRequest) -> String {
        let error = self.resolve(asked).unwrap_err();
        let root = self.held.path().display().to_string();
        format!("{} {}", error.code(), error).replace(&root, "")
    }

    pub fn registry(&self) -> Registry {
        let variables = self.variables.clone();
        let options = RegistryOptions {
            include_offline: true,
            environment: Environment::Fixed(variables),
        };
        Registry::load(&self.path("agent"), options).0
    }

    pub fn engine(&self, asked: &ProfileRequest) -> Result<Chosen, ProfileError> {
        let demo = Unnamed {
            demo: true,
            saved: None,
        };
        self.engine_if_unnamed(asked, demo)
    }

    pub fn engine_if_unnamed(
        &self,
        asked: &ProfileRequest,
        unnamed: Unnamed<'_>,
    ) -> Result<Chosen, ProfileError> {
        let resolved = self.resolve(asked)?;
        let registry = self.registry();
        self.with(|host| engine(&resolved, &registry, host, unnamed, noon()))
    }
}

/// Noon of June 1, 2026.
pub fn noon() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_780_315_200)
}

pub fn profile(name: &str) -> ProfileRequest {
    ProfileRequest {
        profile: Some(name.to_owned()),
        ..ProfileRequest::default()
    }
}

pub fn options(pairs: &[(&str, Value)]) -> ProfileRequest {
    ProfileRequest {
        options: pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        ..ProfileRequest::default()
    }
}

/// Returns a document that only sets the engine of profile `p`.
pub fn engine_document(engine: &str) -> String {
    json!({"profiles": {"p": {"inference_settings": {"chat": {"engine": engine}}}}}).to_string()
}
