//! The breakers of a run: its own, or those that all runs of the machine share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::process::ProcessIdentity;
use super::shared_file::SharedFile;
use super::stored::StoredBreaker;
use crate::{BreakerRules, Breakers};

/// The breakers of a run.
#[derive(Debug)]
pub(crate) struct RunBreakers {
    breakers: Breakers,
    rules: BreakerRules,
    shared_file: Option<SharedFile>,
    this_process: ProcessIdentity,
    /// Models that other processes were probing when the file was last read.
    probed_by_others: Vec<String>,
    warned_of_damage: bool,
}

impl RunBreakers {
    /// Creates breakers with these rules; with a `file`, the breakers in it are shared with all other runs.
    pub fn new(rules: BreakerRules, file: Option<PathBuf>) -> Self {
        Self {
            breakers: Breakers::new(rules),
            rules,
            shared_file: file.map(SharedFile::new),
            this_process: ProcessIdentity::current(),
            probed_by_others: Vec::new(),
            warned_of_damage: false,
        }
    }

    /// Reports whether other processes may change the breakers.
    pub fn is_shared(&self) -> bool {
        self.shared_file.is_some()
    }

    /// Changes the breakers in one transaction, and returns a warning if they could not be shared.
    pub fn update<T>(
        &mut self,
        now: Duration,
        update: impl FnOnce(&mut Breakers) -> T,
    ) -> (T, Option<String>) {
        let mut warning = None;
        let mut locked = None;
        match self
            .shared_file
            .as_ref()
            .map(|shared_file| shared_file.open(now))
        {
            Some(Ok(found)) => {
                let stored = found.models.iter();
                let breakers =
                    stored.map(|(model, stored)| (model.clone(), stored.breaker(self.rules)));
                self.breakers.replace(breakers.collect());
                let others = |stored: &StoredBreaker| {
                    stored
                        .prober()
                        .is_some_and(|prober| prober != self.this_process)
                };
                let probed = found.models.iter().filter(|(_, stored)| others(stored));
                self.probed_by_others = probed.map(|(model, _)| model.clone()).collect();
                locked = Some(found);
            }
            Some(Err(problem)) => warning = Some(self.stop_sharing(&problem)),
            None => {}
        }
        let done = update(&mut self.breakers);
        if let Some(mut locked) = locked {
            if let Some(damage) = locked.warning.take()
                && !self.warned_of_damage
            {
                self.warned_of_damage = true;
                warning = Some(damage);
            }
            let models: BTreeMap<String, StoredBreaker> = self
                .breakers
                .iter()
                .map(|(model, breaker)| {
                    let stored =
                        StoredBreaker::of(breaker, locked.prober(model, self.this_process));
                    (model.to_owned(), stored)
                })
                .collect();
            if let Err(problem) = locked.save(models, now) {
                warning = Some(self.stop_sharing(&problem));
            }
        }
        (done, warning)
    }

    /// Continues with the last known breakers, without sharing them, and returns a warning about it.
    fn stop_sharing(&mut self, problem: &str) -> String {
        self.shared_file = None;
        for model in std::mem::take(&mut self.probed_by_others) {
            // The result of another process's probe will not arrive any more.
            self.breakers.of(&model).release_probe();
        }
        format!("this run no longer shares its breakers with other runs: {problem}")
    }
}
