//! The schedules of users, in one small file: `schedules.json`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pinion_clip::files;
use pinion_status::{Code, Failure};
use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;

/// The most schedules of all users together.
const MAX_SCHEDULES: usize = 1000;

/// The content of the file.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(default)]
struct StoredSchedules {
    schedules: Vec<Schedule>,
    /// Paused schedules that clips declare.
    paused: BTreeSet<String>,
}

/// The stored schedules of users.
#[derive(Debug)]
pub(crate) struct ScheduleStore {
    path: PathBuf,
    schedules: Mutex<StoredSchedules>,
}

impl ScheduleStore {
    /// Opens the store in `directory`. A file that cannot be parsed is left unchanged and is an
    /// error.
    pub fn open(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join("schedules.json");
        let schedules = match files::read_if_present(&path) {
            Ok(Some(bytes)) => serde_json::from_slice(&bytes).map_err(|error| {
                let path = path.display();
                let message = format!(
                    "{path} cannot be read: {error}. Repair it or move it to another directory."
                );
                Failure::new(Code::DataLoss, message)
            })?,
            Ok(None) => StoredSchedules::default(),
            Err(error) => return Err(Failure::io(path.display(), &error)),
        };
        Ok(Self {
            path,
            schedules: Mutex::new(schedules),
        })
    }

    /// Returns all schedules in the order they were added.
    pub fn all(&self) -> Vec<Schedule> {
        self.schedules().schedules.clone()
    }

    /// Reports whether a schedule that a clip declares is paused.
    pub fn is_paused(&self, id: &str) -> bool {
        self.schedules().paused.contains(id)
    }

    /// Adds a schedule; fails if its id is in use.
    pub fn add(&self, schedule: Schedule) -> Result<(), Failure> {
        self.change(|schedules| {
            if schedules
                .schedules
                .iter()
                .any(|other| other.id == schedule.id)
            {
                let message = format!(
                    "there is a schedule \"{}\" already; remove it or choose another id",
                    schedule.id
                );
                return Err(Failure::new(Code::AlreadyExists, message));
            }
            if schedules.schedules.len() >= MAX_SCHEDULES {
                let message =
                    format!("there are {MAX_SCHEDULES} schedules already; remove one first");
                return Err(Failure::new(Code::ResourceExhausted, message));
            }
            schedules.schedules.push(schedule);
            Ok(())
        })
    }

    pub fn remove(&self, id: &str) -> Result<(), Failure> {
        self.change(|schedules| {
            schedules.schedules.retain(|schedule| schedule.id != id);
            Ok(())
        })
    }

    /// Pauses or resumes a schedule.
    pub fn enable(&self, schedule: &Schedule, enabled: bool) -> Result<(), Failure> {
        self.change(|schedules| {
            if schedule.is_declared() {
                if enabled {
                    schedules.paused.remove(&schedule.id)
                } else {
                    schedules.paused.insert(schedule.id.clone())
                };
            }
            let mut kept = schedules.schedules.iter_mut();
            if let Some(kept) = kept.find(|kept| kept.id == schedule.id) {
                kept.enabled = enabled;
            }
            Ok(())
        })
    }

    /// Changes the schedules, in the file first.
    fn change(
        &self,
        change: impl FnOnce(&mut StoredSchedules) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut schedules = self.schedules();
        let mut changed = schedules.clone();
        change(&mut changed)?;
        files::replace(&self.path, &changed)
            .map_err(|error| Failure::io(self.path.display(), &error))?;
        *schedules = changed;
        Ok(())
    }

    fn schedules(&self) -> std::sync::MutexGuard<'_, StoredSchedules> {
        self.schedules
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
