//! Installs clips from their sources and replaces earlier versions.
//!
//! [`Library::stage`] fetches a package into a new directory, checks it, installs its dependencies and runs it once,
//! all before it touches an installed version. [`Library::commit`] puts the package in place. Between the two, the
//! owner stops the process of the replaced version. [`Library::open`] repairs what a crash left unfinished.

mod bindings;
mod copy;
mod dependencies;
mod errors;
mod fetch;
mod records;
mod run;
mod settings;
mod unpack;
mod versions;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bindings::{self as binding_files, Bindings};
use crate::clip::{Clip, ClipConfig, Token};
use crate::codec::DetectedDialect;
use crate::cross_calls::NoCrossCalls;
use crate::data::{DataStore, remove_if_there};
use crate::limits::Limits;
use crate::logs::ClipLog;
use crate::manifest::{Identity, Manifest};
use crate::package::Package;
use crate::process::{Programs, check_program};
use crate::registry::refuse_local_dependencies;
use crate::secret::CallSecret;
use crate::source::Source;
use crate::{ClipError, alias};

pub use records::Record;
pub(crate) use unpack::MAX_ARCHIVE;

/// The most files and directories of one package.
const MAX_ENTRIES: usize = 50_000;
/// The most bytes of one unpacked package.
const MAX_BYTES: u64 = 512 * 1024 * 1024;
const STAGING: &str = ".staging-";
const REPLACED: &str = ".replaced-";

/// A request to install a clip.
#[derive(Debug, Clone, Copy)]
pub struct Install<'a> {
    pub alias: &'a str,
    pub source: &'a Source,
    /// The owner of the installation. Only the same owner may replace it.
    pub owner: &'a str,
    /// The secret that callers must present. If it is empty, the secret of the replaced version stays in force, if
    /// there was one.
    pub call_secret: &'a str,
    /// The token for the registry, if it requires one.
    pub registry_token: Option<&'a Token>,
}

/// A package that is ready to be put in place. Dropping it removes it.
#[derive(Debug)]
pub struct Staged {
    directory: Scratch,
    record: Record,
    /// It replaces an installed version.
    pub replaces: bool,
    /// The registry's reason for not using this version any more; empty if there is none.
    pub deprecated: String,
}

impl Staged {
    /// Returns the record that the clip will have.
    pub fn record(&self) -> &Record {
        &self.record
    }
}

/// The installed clips under one root directory.
#[derive(Debug)]
pub struct Library {
    root: PathBuf,
    data: Arc<DataStore>,
    programs: Programs,
    limits: Limits,
}

impl Library {
    /// Opens the library in `root`, and creates the directory if it is missing.
    pub fn open(root: impl Into<PathBuf>, programs: Programs) -> Result<Self, ClipError> {
        let root = root.into();
        let clips = root.join("clips");
        fs::create_dir_all(&clips).map_err(|error| ClipError::io(clips.display(), &error))?;
        repair(&clips).map_err(|error| ClipError::io(clips.display(), &error))?;
        let data = Arc::new(DataStore::open(root.join("data"))?);
        Ok(Self {
            root,
            data,
            programs,
            limits: Limits::default(),
        })
    }

    /// Replaces the limits for the clips of this library.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub fn data(&self) -> &Arc<DataStore> {
        &self.data
    }

    /// Returns the path of a clip's log.
    pub fn log_file(&self, alias: &str) -> PathBuf {
        self.root.join("logs").join(format!("{alias}.log"))
    }

    /// Returns the directory of an installed clip.
    pub fn directory(&self, alias: &str) -> PathBuf {
        self.root.join("clips").join(alias)
    }

    /// The records of all installed clips, by alias.
    pub fn records(&self) -> Result<BTreeMap<String, Record>, ClipError> {
        records::read(&self.root)
    }

    /// Changes or removes records under a lock that excludes other processes.
    pub fn update(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Record>),
    ) -> Result<(), ClipError> {
        records::update(&self.root, change)
    }

    /// Returns the configuration of an installed clip. The caller sets the token, the address of the hub and the
    /// limits.
    pub fn config(&self, record: &Record) -> Result<ClipConfig, ClipError> {
        let package = Package::read(Path::new(&record.path))?;
        let mut config = ClipConfig::new(
            record.name.clone(),
            package,
            self.data.directory(&record.name)?,
        );
        config.package_name.clone_from(&record.package);
        config.version.clone_from(&record.version);
        config.manifest = Some(record.manifest.clone());
        config.detected_dialect = record.ipc;
        config.secret = record.secret;
        config.programs = self.programs.clone();
        config.limits = self.limits.clone();
        Ok(config)
    }

    /// Fetches a package, checks it and runs it once.
    pub async fn stage(&self, install: &Install<'_>) -> Result<Staged, ClipError> {
        let name = install.alias;
        if !alias::is_alias(name) {
            return Err(ClipError::invalid(format!("\"{name}\" is not an alias")));
        }
        let earlier = self.records()?.remove(name);
        if earlier
            .as_ref()
            .is_some_and(|record| record.owner != install.owner)
        {
            return Err(alias::taken(name));
        }
        let earlier = earlier.as_ref();
        let directory = Scratch::new(self.directory(&format!("{STAGING}{name}")))?;
        let fetched = fetch::fetch(
            install.source,
            install.registry_token,
            &self.programs,
            &directory.path,
        )
        .await?;
        let source = &fetched.source;
        if !matches!(source, Source::Local { .. }) {
            // The user decides about bindings, not the package.
            binding_files::write(&Package::read(&directory.path)?, &Bindings::new())?;
        }
        let package = Package::read(&directory.path)?;
        if package.is_edge {
            let record = self.record(install, source, earlier, &package, &package.manifest, None);
            return Ok(Staged {
                directory,
                record,
                replaces: earlier.is_some(),
                deprecated: fetched.deprecated,
            });
        }
        let from_source = |error| errors::with_source(error, &directory.path, install.source);
        package.entry().map_err(from_source)?;
        dependencies::install(&package, &self.programs).await?;
        let (manifest, detected_dialect) = self
            .try_out(install.alias, &package, &directory.path)
            .await
            .map_err(from_source)?;
        if matches!(source, Source::Registry { .. }) {
            refuse_local_dependencies(&manifest)?;
        }
        let record = self.record(
            install,
            source,
            earlier,
            &package,
            &manifest,
            detected_dialect,
        );
        Ok(Staged {
            directory,
            record,
            replaces: earlier.is_some(),
            deprecated: fetched.deprecated,
        })
    }

    /// Runs a clip once, without access to other clips and data, and returns its manifest and dialect.
    async fn try_out(
        &self,
        alias: &str,
        package: &Package,
        directory: &Path,
    ) -> Result<(Manifest, Option<DetectedDialect>), ClipError> {
        let mut place = directory.as_os_str().to_owned();
        place.push("-data");
        let data = Scratch::new(PathBuf::from(place))?;
        let mut config = ClipConfig::new(alias, package.clone(), &data.path);
        config.programs = self.programs.clone();
        config.limits = self.limits.clone();
        let log = Arc::new(ClipLog::in_memory());
        let clip = Clip::new(config, log.clone(), Arc::new(NoCrossCalls));
        let manifest = clip
            .inspect()
            .await
            .map_err(|error| errors::trial_failed(error, &log, package, &self.programs))?;
        let detected_dialect = clip.detected_dialect();
        clip.retire().await;
        Ok((manifest.as_ref().clone(), detected_dialect))
    }

    fn record(
        &self,
        install: &Install<'_>,
        source: &Source,
        earlier: Option<&Record>,
        package: &Package,
        manifest: &Manifest,
        detected_dialect: Option<DetectedDialect>,
    ) -> Record {
        let identity = Identity {
            alias: install.alias,
            package: &source.package(),
            version: source.version().unwrap_or_default(),
        };
        let manifest = Manifest::assemble(identity, &package.manifest, Some(manifest));
        Record {
            name: install.alias.to_owned(),
            package: manifest.package.clone(),
            version: manifest.version.clone(),
            source: source.to_string(),
            path: self.directory(install.alias).to_string_lossy().into_owned(),
            secret: CallSecret::of(install.call_secret)
                .or_else(|| earlier.and_then(|record| record.secret)),
            owner: install.owner.to_owned(),
            ipc: detected_dialect,
            manifest,
            ..Record::default()
        }
    }

    /// Puts a staged package in its place. The process of the replaced version must have ended.
    pub fn commit(&self, staged: Staged) -> Result<Record, ClipError> {
        let Staged {
            mut directory,
            record,
            replaces: staged_over_another,
            ..
        } = staged;
        let place = self.directory(&record.name);
        let replaced = self.directory(&format!("{REPLACED}{}", record.name));
        if staged_over_another {
            bindings::keep_bindings(&place, &directory.path)?;
        }
        let io_error = |error: io::Error| ClipError::io(place.display(), &error);
        let replaces = remove_if_there(&replaced)
            .and_then(|()| pinion_files::set_aside(&place, &replaced))
            .map_err(io_error)?;
        let recorded = pinion_files::rename_new(&directory.path, &place)
            .map_err(io_error)
            .and_then(|()| {
                directory.keep();
                let recorded = self.update(|records| {
                    records.insert(record.name.clone(), record.clone());
                });
                recorded.inspect_err(|_| {
                    let _ = remove_if_there(&place);
                })
            });
        if let Err(error) = recorded {
            // The earlier version returns to its place.
            if replaces {
                let _ = pinion_files::rename_new(&replaced, &place);
            }
            return Err(error);
        }
        let _ = remove_if_there(&replaced);
        Ok(record)
    }

    /// Removes a clip: its record, its directory, and with `purge` its data and logs. Its process must have ended.
    pub fn remove(&self, alias: &str, purge: Purge) -> Result<Record, ClipError> {
        let mut removed = None;
        self.update(|records| removed = records.remove(alias))?;
        let record = removed.ok_or_else(|| ClipError::no_clip(alias))?;
        let place = self.directory(alias);
        remove_if_there(&place).map_err(|error| ClipError::io(place.display(), &error))?;
        if purge == Purge::Data {
            self.data.purge(alias)?;
            let log = self.log_file(alias);
            let mut rotated = log.clone().into_os_string();
            rotated.push(".1");
            let _ = remove_if_there(&log);
            let _ = remove_if_there(Path::new(&rotated));
        }
        Ok(record)
    }
}

/// The data to remove together with a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// Only the program is removed; the data stays for the next installation under this alias.
    Nothing,
    /// Data and logs are removed too.
    Data,
}

/// A directory that is removed when it is dropped, unless [`Scratch::keep`] was called.
#[derive(Debug)]
struct Scratch {
    path: PathBuf,
    kept: bool,
}

impl Scratch {
    fn new(path: PathBuf) -> Result<Self, ClipError> {
        let made = remove_if_there(&path).and_then(|()| fs::create_dir(&path));
        made.map_err(|error| ClipError::io(path.display(), &error))?;
        Ok(Self { path, kept: false })
    }

    fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.kept {
            let _ = remove_if_there(&self.path);
        }
    }
}

/// Repairs what a crash left: restores a replaced version that has no successor, and removes staged packages.
fn repair(clips: &Path) -> io::Result<()> {
    for entry in fs::read_dir(clips)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with(STAGING) {
            remove_if_there(&entry.path())?;
        } else if let Some(alias) = name.strip_prefix(REPLACED) {
            let place = clips.join(alias);
            // Only directories were made by this program; anything else belongs to the user.
            let is_directory = |path: &Path| fs::symlink_metadata(path).map(|found| found.is_dir());
            match (is_directory(&entry.path())?, is_directory(&place)) {
                (true, Ok(true)) => remove_if_there(&entry.path())?,
                (true, Err(_)) => pinion_files::rename_new(&entry.path(), &place)?,
                (true, Ok(false)) | (false, _) => {}
            }
        }
    }
    Ok(())
}

/// Returns the number of clips installed in the hub's directory `root`, and the reasons why some of them could not be
/// started. Changes nothing.
pub fn unstartable(root: &Path, programs: &Programs) -> Result<(usize, Vec<ClipError>), ClipError> {
    let records = records::read(root)?;
    let mut problems = Vec::new();
    for (alias, record) in &records {
        let checked = Package::read(Path::new(&record.path)).and_then(|package| {
            let mut config = ClipConfig::new(alias.clone(), package, root.join("data").join(alias));
            config.programs = programs.clone();
            check_program(&config)
        });
        problems.extend(checked.err());
    }
    Ok((records.len(), problems))
}
