//! The breakers of a run: its own, or those it has in common with all runs of the machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::commons::Commons;
use super::kept::Kept;
use super::process::Process;
use crate::{BreakerRules, Breakers};

/// Where a run finds its breakers.
#[derive(Debug)]
pub(crate) struct Board {
    breakers: Breakers,
    rules: BreakerRules,
    commons: Option<Commons>,
    us: Process,
    /// Models that other processes were trying when the file was last seen.
    tried_by_others: Vec<String>,
    warned_of_damage: bool,
}

impl Board {
    /// Breakers under these rules; in a file that is named, those of everybody.
    pub fn new(rules: BreakerRules, file: Option<PathBuf>) -> Self {
        Self {
            breakers: Breakers::new(rules),
            rules,
            commons: file.map(Commons::new),
            us: Process::current(),
            tried_by_others: Vec::new(),
            warned_of_damage: false,
        }
    }

    /// Whether others may change them at any time.
    pub fn is_shared(&self) -> bool {
        self.commons.is_some()
    }

    /// Does something to the breakers; others see it whole or not at all. Gives what somebody should be warned of, too.
    pub fn act<T>(
        &mut self,
        now: Duration,
        act: impl FnOnce(&mut Breakers) -> T,
    ) -> (T, Option<String>) {
        let mut warning = None;
        let mut visit = None;
        match self.commons.as_ref().map(|commons| commons.visit(now)) {
            Some(Ok(found)) => {
                let kept = found.models.iter();
                let breakers = kept.map(|(model, kept)| (model.clone(), kept.breaker(self.rules)));
                self.breakers.replace(breakers.collect());
                let others = |kept: &Kept| kept.prober().is_some_and(|prober| prober != self.us);
                let tried = found.models.iter().filter(|(_, kept)| others(kept));
                self.tried_by_others = tried.map(|(model, _)| model.clone()).collect();
                visit = Some(found);
            }
            Some(Err(trouble)) => warning = Some(self.part(&trouble)),
            None => {}
        }
        let done = act(&mut self.breakers);
        if let Some(mut visit) = visit {
            if let Some(damage) = visit.warning.take()
                && !self.warned_of_damage
            {
                self.warned_of_damage = true;
                warning = Some(damage);
            }
            let models: BTreeMap<String, Kept> = self
                .breakers
                .iter()
                .map(|(model, breaker)| {
                    let kept = Kept::of(breaker, visit.prober(model, self.us));
                    (model.to_owned(), kept)
                })
                .collect();
            if let Err(trouble) = visit.leave(models, now) {
                warning = Some(self.part(&trouble));
            }
        }
        (done, warning)
    }

    /// From now on the run is alone, with what it knows.
    fn part(&mut self, trouble: &str) -> String {
        self.commons = None;
        for model in std::mem::take(&mut self.tried_by_others) {
            // How it goes for them will not be heard here.
            self.breakers.of(&model).give_up_probe();
        }
        format!("breakers are not shared with other runs any more: {trouble}")
    }
}
