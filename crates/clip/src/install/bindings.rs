//! What fills the slots of installed clips.

use std::path::Path;

use super::{Library, records};
use crate::ClipError;
use crate::bindings::{self, Binding, Bindings};
use crate::package::Package;

impl Library {
    /// What fills the slots of an installed clip.
    pub fn bindings(&self, alias: &str) -> Result<Bindings, ClipError> {
        bindings::read(&self.package(alias)?)
    }

    /// Fills a slot of an installed clip. A running process has to be told: [`Clip::renew`](crate::Clip::renew).
    pub fn set_binding(&self, alias: &str, slot: &str, binding: Binding) -> Result<(), ClipError> {
        let (slot, binding) = bindings::checked(slot, binding)?;
        self.change_bindings(alias, |bindings| {
            bindings.insert(slot, binding);
        })
    }

    /// Empties a slot of an installed clip. One that is empty stays so.
    pub fn remove_binding(&self, alias: &str, slot: &str) -> Result<(), ClipError> {
        self.change_bindings(alias, |bindings| {
            bindings.remove(slot.trim());
        })
    }

    fn change_bindings(
        &self,
        alias: &str,
        change: impl FnOnce(&mut Bindings),
    ) -> Result<(), ClipError> {
        let _lock = records::lock(&self.root)?;
        let package = self.package(alias)?;
        let mut bindings = bindings::read(&package)?;
        change(&mut bindings);
        bindings::write(&package, &bindings)
    }

    fn package(&self, alias: &str) -> Result<Package, ClipError> {
        let records = self.records()?;
        let record = records
            .get(alias)
            .ok_or_else(|| ClipError::no_clip(alias))?;
        Package::read(Path::new(&record.path))
    }
}

/// What the user has bound stays bound, whatever the new version brings along.
pub(super) fn keep_bindings(from: &Path, to: &Path) -> Result<(), ClipError> {
    let Ok(earlier) = Package::read(from) else {
        return Ok(());
    };
    bindings::write(&Package::read(to)?, &bindings::read(&earlier)?)
}
