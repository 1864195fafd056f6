//! The bindings of installed clips.

use std::path::Path;

use super::{Library, records};
use crate::ClipError;
use crate::bindings::{self, Binding, Bindings};
use crate::package::Package;

impl Library {
    /// Returns the bindings of an installed clip.
    pub fn bindings(&self, alias: &str) -> Result<Bindings, ClipError> {
        bindings::read(&self.package(alias)?)
    }

    /// Binds a slot of an installed clip. A running process does not see the change until
    /// [`Clip::renew`](crate::Clip::renew) is called.
    pub fn set_binding(&self, alias: &str, slot: &str, binding: Binding) -> Result<(), ClipError> {
        let (slot, binding) = bindings::checked(slot, binding)?;
        self.change_bindings(alias, |bindings| {
            bindings.insert(slot, binding);
        })
    }

    /// Removes the binding of a slot of an installed clip, if there is one.
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

/// Copies the bindings of the earlier version, because the user's choice overrides that of the new package.
pub(super) fn keep_bindings(from: &Path, to: &Path) -> Result<(), ClipError> {
    let Ok(earlier) = Package::read(from) else {
        return Ok(());
    };
    bindings::write(&Package::read(to)?, &bindings::read(&earlier)?)
}
