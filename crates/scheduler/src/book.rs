//! What users have scheduled, in one small file: `schedules.json`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pinion_clip::files;
use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;

/// How many schedules users may have, together.
const MOST: usize = 1000;

/// All that is kept.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(default)]
struct Pages {
    schedules: Vec<Schedule>,
    /// Schedules declared by clips that somebody paused.
    paused: BTreeSet<String>,
}

/// The schedules of users.
#[derive(Debug)]
pub(crate) struct Book {
    path: PathBuf,
    pages: Mutex<Pages>,
}

impl Book {
    /// Those kept in `directory`. A file that cannot be read is left alone and said.
    pub fn open(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join("schedules.json");
        let pages = match files::read_if_present(&path) {
            Ok(Some(bytes)) => serde_json::from_slice(&bytes).map_err(|error| {
                let path = path.display();
                let message = format!("{path} cannot be read: {error}. Repair or move it away.");
                Failure::new(Code::DataLoss, message)
            })?,
            Ok(None) => Pages::default(),
            Err(error) => return Err(Failure::io(path.display(), &error)),
        };
        Ok(Self {
            path,
            pages: Mutex::new(pages),
        })
    }

    /// All of them, in the order they were added.
    pub fn all(&self) -> Vec<Schedule> {
        self.pages().schedules.clone()
    }

    /// Whether a schedule that a clip declares was paused.
    pub fn is_paused(&self, id: &str) -> bool {
        self.pages().paused.contains(id)
    }

    /// Adds one, unless its id is taken.
    pub fn add(&self, schedule: Schedule) -> Result<(), Failure> {
        self.change(|pages| {
            if pages.schedules.iter().any(|other| other.id == schedule.id) {
                let message = format!(
                    "there is a schedule \"{}\" already; remove it or choose another id",
                    schedule.id
                );
                return Err(Failure::new(Code::AlreadyExists, message));
            }
            if pages.schedules.len() >= MOST {
                let message = format!("there are {MOST} schedules already; remove one first");
                return Err(Failure::new(Code::ResourceExhausted, message));
            }
            pages.schedules.push(schedule);
            Ok(())
        })
    }

    /// Takes one out.
    pub fn remove(&self, id: &str) -> Result<(), Failure> {
        self.change(|pages| {
            pages.schedules.retain(|schedule| schedule.id != id);
            Ok(())
        })
    }

    /// Pauses or resumes one.
    pub fn enable(&self, schedule: &Schedule, enabled: bool) -> Result<(), Failure> {
        self.change(|pages| {
            if schedule.is_declared() {
                match enabled {
                    true => pages.paused.remove(&schedule.id),
                    false => pages.paused.insert(schedule.id.clone()),
                };
            }
            let mut kept = pages.schedules.iter_mut();
            if let Some(kept) = kept.find(|kept| kept.id == schedule.id) {
                kept.enabled = enabled;
            }
            Ok(())
        })
    }

    /// Changes what is kept, in the file first.
    fn change(
        &self,
        change: impl FnOnce(&mut Pages) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut pages = self.pages();
        let mut changed = pages.clone();
        change(&mut changed)?;
        files::replace(&self.path, &changed)
            .map_err(|error| Failure::io(self.path.display(), &error))?;
        *pages = changed;
        Ok(())
    }

    fn pages(&self) -> std::sync::MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
