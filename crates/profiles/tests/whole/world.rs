//! A machine with a user, a repository and an environment.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pinion_llm::{Environment, Registry, RegistryOptions};
use pinion_profiles::{
    Asked, Chosen, ProfileError, Resolved, Surroundings, Unnamed, engine, resolve,
};
use serde_json::{Value, json};
use tempfile::TempDir;

pub struct World {
    held: TempDir,
    pub cwd: PathBuf,
    pub variables: BTreeMap<String, String>,
    pub trusted: Vec<PathBuf>,
    /// Directories whose trust was asked about.
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

    pub fn with<T>(&self, act: impl FnOnce(&Surroundings<'_>) -> T) -> T {
        let home = self.path("home");
        let system = self.path("etc");
        let environment = |name: &str| self.variables.get(name).cloned();
        let trusts = |directory: &Path| {
            self.asked_about.borrow_mut().push(directory.to_owned());
            self.trusted
                .iter()
                .any(|trusted| directory.starts_with(trusted))
        };
        act(&Surroundings {
            home: &home,
            cwd: &self.cwd,
            environment: &environment,
            trusts: &trusts,
            system: &system,
        })
    }

    pub fn resolve(&self, asked: &Asked) -> Result<Resolved, ProfileError> {
        self.with(|surroundings| resolve(surroundings, asked))
    }

    /// The settings when nothing is asked for on the command line.
    pub fn settings(&self) -> Value {
        self.resolve(&Asked::default()).unwrap().settings.masked()
    }

    /// The words of the error when nothing is asked for.
    pub fn told(&self) -> String {
        self.told_for(&Asked::default())
    }

    pub fn told_for(&self, asked: &Asked) -> String {
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

    pub fn engine(&self, asked: &Asked) -> Result<Chosen, ProfileError> {
        let demo = Unnamed {
            demo: true,
            saved: None,
        };
        self.engine_if_unnamed(asked, demo)
    }

    pub fn engine_if_unnamed(
        &self,
        asked: &Asked,
        unnamed: Unnamed<'_>,
    ) -> Result<Chosen, ProfileError> {
        let resolved = self.resolve(asked)?;
        let registry = self.registry();
        self.with(|surroundings| engine(&resolved, &registry, surroundings, unnamed, noon()))
    }
}

/// The first of June 2026, at noon.
pub fn noon() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_780_315_200)
}

pub fn profile(name: &str) -> Asked {
    Asked {
        profile: Some(name.to_owned()),
        ..Asked::default()
    }
}

pub fn options(pairs: &[(&str, Value)]) -> Asked {
    Asked {
        options: pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        ..Asked::default()
    }
}

/// A document that says only which engine profile `p` has.
pub fn engine_document(engine: &str) -> String {
    json!({"profiles": {"p": {"inference_settings": {"chat": {"engine": engine}}}}}).to_string()
}
