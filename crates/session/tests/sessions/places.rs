//! Paths that lead to something other than a session of a usual size.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::support::*;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;
use pinion_session::{NewSession, Store, all_text, export, find, find_id, list, most_recent};

/// Files of every type that is not a regular file, and links to them. A device only if this user may create one.
fn special_files(directory: &Path) -> Vec<PathBuf> {
    let fifo = directory.join("fifo.jsonl");
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let socket = directory.join("socket.jsonl");
    drop(UnixListener::bind(&socket).unwrap());
    let folder = directory.join("folder.jsonl");
    fs::create_dir(&folder).unwrap();
    let mut strange = vec![fifo, socket, folder];
    let device = directory.join("null.jsonl");
    if mknod(&device, SFlag::S_IFCHR, Mode::S_IRWXU, makedev(1, 3)).is_ok() {
        strange.push(device);
    }
    for (at, path) in strange.clone().iter().enumerate() {
        let link = directory.join(format!("link-{at}.jsonl"));
        symlink(path, &link).unwrap();
        strange.push(link);
    }
    strange
}

/// The names in a directory with their types, in order.
fn names(directory: &Path) -> Vec<(PathBuf, fs::FileType)> {
    let files = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let mut names: Vec<_> = files
        .map(|file| (file.path(), file.file_type().unwrap()))
        .collect();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    names
}

#[test]
fn files_that_are_not_regular_are_rejected_and_not_changed() {
    let home = tempfile::tempdir().unwrap();
    let strange = special_files(home.path());
    let before = names(home.path());
    let mut store = two_turns(&home.path().join("sessions"));
    fs::rename(
        home.path().join("sessions"),
        home.path().with_extension("s"),
    )
    .unwrap();
    for path in &strange {
        for error in [
            Store::open(path, Path::new("/")).unwrap_err(),
            Store::open_read_only(path, Path::new("/")).unwrap_err(),
            Store::copy_of(path, NewSession::default()).unwrap_err(),
            export::to_file(&store, Some(path), home.path(), export::Extras::default())
                .unwrap_err(),
        ] {
            assert_eq!(error.code(), "session_io", "{}: {error}", path.display());
        }
        let mut later = Store::at_path(path, Path::new("/"));
        let error = later.append(answer("x")).unwrap_err();
        assert_eq!(error.code(), "session_not_saved", "{}", path.display());
    }
    assert_eq!(names(home.path()), before);
    store.append(user("still there")).unwrap();
    fs::remove_dir_all(home.path().with_extension("s")).unwrap();
}

#[test]
fn a_search_ignores_special_and_huge_files() {
    let home = tempfile::tempdir().unwrap();
    let session = two_turns(home.path());
    let file = session.file().unwrap().to_owned();
    let id = session.id().to_owned();
    drop(session);
    special_files(home.path());
    let sparse = home.path().join("sparse.jsonl");
    fs::File::create(&sparse).unwrap().set_len(8 << 30).unwrap();
    assert_eq!(most_recent(home.path()), Some(file.clone()));
    assert_eq!(find_id(home.path(), &id), Some(file.clone()));
    let found = find(home.path(), home.path(), &id[..6]).unwrap();
    assert_eq!(found.into_path(), file);
    let listed: Vec<_> = list(home.path())
        .into_iter()
        .map(|info| info.path)
        .collect();
    assert_eq!(listed, [file]);
    assert!(all_text(&sparse).is_err());
    assert!(
        fs::metadata(home.path().join("fifo.jsonl"))
            .unwrap()
            .file_type()
            .is_fifo()
    );
}

#[test]
fn a_huge_file_is_an_error_with_its_size_and_the_limit() {
    let home = tempfile::tempdir().unwrap();
    let sparse = home.path().join("sparse.jsonl");
    fs::File::create(&sparse).unwrap().set_len(8 << 30).unwrap();
    // The header is valid, the rest is not.
    let grown = two_turns(home.path()).file().unwrap().to_owned();
    let file = fs::OpenOptions::new().write(true).open(&grown).unwrap();
    file.set_len(8 << 30).unwrap();
    for path in [&sparse, &grown] {
        for error in [
            Store::open(path, Path::new("/")).unwrap_err(),
            Store::open_read_only(path, Path::new("/")).unwrap_err(),
        ] {
            assert_eq!(error.code(), "session_too_large");
            let words = error.to_string();
            assert!(
                words.contains("8192 MiB") && words.contains("512 MiB"),
                "{words}"
            );
        }
        assert_eq!(fs::metadata(path).unwrap().len(), 8 << 30);
    }
    let listed = list(home.path());
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].path, listed[0].message_count), (&grown, 0));
}

#[test]
fn a_link_to_an_old_session_stays_a_link() {
    let home = tempfile::tempdir().unwrap();
    let (real, link) = (
        home.path().join("real.jsonl"),
        home.path().join("link.jsonl"),
    );
    let text = concat!(
        r#"{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w"}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"one","timestamp":1}}"#,
        "\n",
    );
    fs::write(&real, text).unwrap();
    symlink("real.jsonl", &link).unwrap();
    let mut opened = Store::open(&link, Path::new("/")).unwrap();
    opened.store.append(user("two")).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let migrated = fs::read_to_string(&real).unwrap();
    assert!(
        migrated.contains(r#""version":3"#) && migrated.contains("two"),
        "{migrated}"
    );
}
