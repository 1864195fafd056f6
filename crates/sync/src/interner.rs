//! Equal values that are stored once.

use std::sync::{Arc, Mutex, Weak};

use crate::lock;

/// Stores equal values once, for as long as a user of the value exists.
#[derive(Debug)]
pub struct Interner<T: ?Sized>(Mutex<Vec<Weak<T>>>);

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: ?Sized + PartialEq> Interner<T> {
    /// Returns the stored value that equals `new`, or stores `new` and returns it.
    pub fn the(&self, new: Arc<T>) -> Arc<T> {
        let mut known = lock(&self.0);
        known.retain(|one| one.strong_count() > 0);
        let same = known
            .iter()
            .filter_map(Weak::upgrade)
            .find(|one| *one == new);
        same.unwrap_or_else(|| {
            known.push(Arc::downgrade(&new));
            new
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_until_their_last_user_is_gone() {
        let interner = Interner::<str>::default();
        let first = interner.the("a".into());
        assert!(Arc::ptr_eq(&first, &interner.the("a".into())));
        assert!(!Arc::ptr_eq(&first, &interner.the("b".into())));
        drop(first);
        assert_eq!(Arc::strong_count(&interner.the("a".into())), 1);
    }
}
