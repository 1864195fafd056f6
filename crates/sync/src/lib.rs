//! A lock that stays usable after a panic, and values that are stored once.
//!
//! Panics of tools, providers and connections are caught where they happen, and the rest of the program continues. A
//! mutex that one of them held is poisoned then; every holder leaves its value valid at each step, so the others use it.

mod interner;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use interner::Interner;

/// Locks the mutex, also if another thread panicked while it held the lock.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_leaves_the_lock_usable() {
        let mutex = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _held = mutex.lock();
                panic!("while the lock is held");
            });
            holder.join().is_err()
        });
        assert!(panicked && mutex.is_poisoned());
        *lock(&mutex) += 1;
        assert_eq!(*lock(&mutex), 2);
    }
}
