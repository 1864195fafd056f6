//! Saves in the background.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use pinion_session::{EntryId, SaveListener, SaveProgress, Store};

use crate::support::*;

/// Returns a listener and what it hears.
fn listener() -> (SaveListener, Receiver<()>) {
    let (sender, ended) = sync_channel(1000);
    let listener = move || {
        // The test may have ended.
        let _ = sender.send(());
    };
    (Arc::new(listener), ended)
}

/// Saves `id` and waits for it. Returns the error's code if that fails.
fn saved(store: &mut Store, id: &EntryId) -> Result<(), &'static str> {
    let (listener, ended) = listener();
    loop {
        match store.save_in_background(id, &listener) {
            SaveProgress::Saved => return Ok(()),
            SaveProgress::Failed(error) => return Err(error.code()),
            SaveProgress::Running => ended.recv().unwrap(),
        }
    }
}

/// Returns the number of threads of this process that run saves.
fn save_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .filter(|name| name.trim() == "session-save")
        .count()
}

#[test]
fn a_store_without_work_has_no_thread() {
    let home = tempfile::tempdir().unwrap();
    let mut store = new_session(home.path());
    for text in ["one", "two"] {
        let id = store.push(user(text)).unwrap();
        assert_eq!(saved(&mut store, &id), Ok(()));
        assert!(save_threads() > 0);
        let end = Instant::now() + Duration::from_secs(30);
        while save_threads() > 0 {
            assert!(Instant::now() < end, "the thread does not end");
            // The thread ends by itself after a second.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    assert_eq!(store.pending(), 0);
}

#[test]
fn entries_pushed_during_a_save_are_written_by_the_next_one() {
    let home = tempfile::tempdir().unwrap();
    let mut store = new_session(home.path());
    let path = store.file().unwrap().to_owned();
    let (listener, ended) = listener();
    let first = store.push(user("one")).unwrap();
    assert!(!path.exists(), "a push writes nothing");
    let progress = store.save_in_background(&first, &listener);
    assert!(matches!(progress, SaveProgress::Running), "{progress:?}");
    let last = (0..20)
        .map(|n| store.push(user(&n.to_string())).unwrap())
        .last()
        .unwrap();
    ended.recv().unwrap();
    // Asking for the first entry does not start the save of the others.
    let progress = store.save_in_background(&first, &listener);
    assert!(matches!(progress, SaveProgress::Saved), "{progress:?}");
    assert_eq!((lines(&path).len(), store.pending()), (2, 20));
    assert_eq!(store.running_save(), None);
    assert_eq!(saved(&mut store, &last), Ok(()));
    assert_eq!((lines(&path).len(), store.pending()), (22, 0));
    let before: Vec<_> = store.entries().map(|entry| entry.id().clone()).collect();
    drop(store);
    let after = Store::open(&path, home.path()).unwrap().store;
    assert!(after.entries().map(|entry| entry.id()).eq(before.iter()));
}

#[test]
fn a_failed_save_is_reported_for_its_entries_and_tried_again() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("sessions");
    let mut store = new_session(&directory);
    // A file in place of the directory.
    fs::remove_dir(&directory).unwrap();
    fs::write(&directory, "").unwrap();
    let first = store.push(user("one")).unwrap();
    assert_eq!(saved(&mut store, &first), Err("session_not_saved"));
    assert_eq!(saved(&mut store, &first), Err("session_not_saved"));
    assert_eq!(store.pending(), 1);
    fs::remove_file(&directory).unwrap();
    let second = store.push(user("two")).unwrap();
    assert_eq!(saved(&mut store, &second), Ok(()));
    assert_eq!(saved(&mut store, &first), Ok(()));
    assert_eq!(lines(store.file().unwrap()).len(), 3);
}

#[test]
fn a_removed_file_is_written_again_in_the_background() {
    let home = tempfile::tempdir().unwrap();
    let mut store = two_turns(home.path());
    let path = store.file().unwrap().to_owned();
    fs::remove_file(&path).unwrap();
    let id = store.push(user("still here")).unwrap();
    assert_eq!(saved(&mut store, &id), Ok(()));
    assert_eq!(lines(&path).len(), 6);
    assert_eq!(store.take_notices()[0].code, "session_file_removed");
}

#[test]
fn a_caller_that_may_block_waits_for_the_running_save() {
    let home = tempfile::tempdir().unwrap();
    let mut store = new_session(home.path());
    let (listener, _ended) = listener();
    let id = store.push(user("one")).unwrap();
    store.save_in_background(&id, &listener);
    let wait = store.save_wait().unwrap();
    assert!(wait.wait(Duration::from_secs(60)));
    store.append(user("two")).unwrap();
    assert_eq!(lines(store.file().unwrap()).len(), 3);
    // A session in memory has nothing to save.
    let mut store = new_session(home.path());
    let id = store
        .push(pinion_session::NewEntry::ModelChange {
            provider: "p".into(),
            model_id: "m".into(),
        })
        .unwrap();
    let progress = store.save_in_background(&id, &listener);
    assert!(matches!(progress, SaveProgress::Saved), "{progress:?}");
}

/// Prints the time of an append, on the caller's thread and in the background.
#[test]
#[ignore = "a measurement"]
fn time_of_an_append() {
    const COUNT: u32 = 20_000;
    let home = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let mut store = new_session(home.path());
        let start = Instant::now();
        for _ in 0..COUNT {
            store.append(answer("a short answer")).unwrap();
        }
        let blocking = start.elapsed() / COUNT;
        let mut store = new_session(home.path());
        let (listener, ended) = listener();
        let start = Instant::now();
        for _ in 0..COUNT {
            let id = store.push(answer("a short answer")).unwrap();
            while let SaveProgress::Running = store.save_in_background(&id, &listener) {
                ended.recv().unwrap();
            }
        }
        let background = start.elapsed() / COUNT;
        println!("round {round}: blocking {blocking:?}, in the background {background:?}");
    }
}
