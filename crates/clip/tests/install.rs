//! Tests of installing, replacing and removing clips, and of hostile archives.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot be set up should fail"
)]

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use common::archive::{Item, archive};
use common::{SHELL, TestClip, ask, write_program};
use pinion_clip::bindings::Binding;
use pinion_clip::install::{Install, Library, Purge};
use pinion_clip::logs::ClipLog;
use pinion_clip::source::Source;
use pinion_clip::{Clip, ClipError, Code, Limits, NoCrossCalls, Programs};
use serde_json::json;
use tar::EntryType;
use tempfile::TempDir;

struct Workshop {
    root: TempDir,
    library: Library,
}

fn workshop() -> Workshop {
    drop(TestClip::new());
    let root = tempfile::tempdir().unwrap();
    let limits = Limits {
        registration: Duration::from_secs(5),
        shutdown_time: Duration::from_millis(500),
        ..Limits::default()
    };
    let library = Library::open(root.path().join("home"), Programs::default()).unwrap();
    Workshop {
        root,
        library: library.with_limits(limits),
    }
}

impl Workshop {
    /// Creates a package that answers every call with its version.
    fn package(&self, version: &str) -> PathBuf {
        let directory = self.root.path().join(format!("package-{version}"));
        fs::create_dir_all(directory.join("lib")).unwrap();
        let clip_json =
            json!({"name": "@lab/todo", "version": version, "runtime": "exec", "main": "run.sh"});
        fs::write(directory.join("clip.json"), clip_json.to_string()).unwrap();
        let script =
            format!("#!/bin/bash\n{SHELL}\nregister\nwhile next; do result '\"{version}\"'; done");
        write_program(&directory.join("run.sh"), &script);
        fs::write(directory.join("lib/part"), version).unwrap();
        directory
    }

    fn clip(&self, alias: &str) -> Clip {
        let record = &self.library.records().unwrap()[alias];
        let config = self.library.config(record).unwrap();
        let log = Arc::new(ClipLog::at(self.library.log_file(alias)));
        Clip::new(config, log, Arc::new(NoCrossCalls))
    }

    fn leftovers(&self) -> Vec<String> {
        let clips = fs::read_dir(self.root.path().join("home/clips")).unwrap();
        let names = clips.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with('.')).collect()
    }

    async fn install(&self, source: &Source, owner: &str) -> Result<(), ClipError> {
        let install = Install {
            alias: "todo",
            source,
            owner,
            call_secret: "",
            registry_token: None,
        };
        let staged = self.library.stage(&install).await?;
        self.library.commit(staged).map(drop)
    }
}

fn local(path: &Path) -> Source {
    Source::Local {
        name: "todo".into(),
        path: path.to_owned(),
    }
}

#[tokio::test]
async fn a_directory_is_installed_upgraded_and_removed() {
    let shop = workshop();
    let first = shop.package("1.0.0");
    fs::create_dir_all(first.join(".git/objects")).unwrap();
    fs::create_dir_all(first.join("node_modules/x")).unwrap();
    symlink("lib/part", first.join("link")).unwrap();
    shop.install(&local(&first), "").await.unwrap();
    let place = shop.library.directory("todo");
    assert!(!place.join(".git").exists() && !place.join("node_modules").exists());
    assert_eq!(fs::read_to_string(place.join("link")).unwrap(), "1.0.0");
    let record = shop.library.records().unwrap().remove("todo").unwrap();
    assert_eq!(
        (record.package.as_str(), record.version.as_str()),
        ("local/todo", "1.0.0")
    );
    assert_eq!(record.manifest.commands[0].name, "a");
    let clip = shop.clip("todo");
    assert_eq!(ask(&clip, "a", &json!({})).await.unwrap(), "1.0.0");
    shop.library.data().write("todo", "kept", b"data").unwrap();

    let bind = |slot: &str, alias: &str| {
        let binding = Binding {
            alias: alias.into(),
            ..Binding::default()
        };
        shop.library.set_binding("todo", slot, binding)
    };
    bind("store", "db").unwrap();
    bind("mail", "post").unwrap();
    shop.library.remove_binding("todo", "mail").unwrap();
    assert_eq!(bind(" ", "x").unwrap_err().code, Code::InvalidArgument);
    assert_eq!(
        shop.library.bindings("ghost").unwrap_err().code,
        Code::NotFound
    );

    let foreign = shop.install(&local(&first), "@other").await;
    assert_eq!(foreign.unwrap_err().code, Code::AlreadyExists);

    let second = shop.package("2.0.0");
    clip.retire().await;
    shop.install(&local(&second), "").await.unwrap();
    let clip = shop.clip("todo");
    assert_eq!(ask(&clip, "a", &json!({})).await.unwrap(), "2.0.0");
    assert_eq!(shop.library.data().read("todo", "kept").unwrap(), b"data");
    let bindings = shop.library.bindings("todo").unwrap();
    assert_eq!(bindings.keys().collect::<Vec<_>>(), ["store"]);
    assert_eq!(bindings["store"].alias, "db");
    shop.library.remove_binding("todo", "store").unwrap();
    assert!(
        !shop
            .library
            .directory("todo")
            .join("bindings.json")
            .exists()
    );
    assert_eq!(shop.leftovers(), [""; 0]);

    clip.retire().await;
    shop.library.remove("todo", Purge::Nothing).unwrap();
    assert!(!place.exists() && shop.library.records().unwrap().is_empty());
    assert_eq!(shop.library.data().read("todo", "kept").unwrap(), b"data");
    shop.install(&local(&second), "@other").await.unwrap();
    shop.library.remove("todo", Purge::Data).unwrap();
    assert!(shop.library.data().read("todo", "kept").is_err());
    assert_eq!(
        shop.library.remove("todo", Purge::Data).unwrap_err().code,
        Code::NotFound
    );
}

#[tokio::test]
async fn a_version_that_does_not_run_replaces_nothing() {
    let shop = workshop();
    shop.install(&local(&shop.package("1.0.0")), "")
        .await
        .unwrap();
    let broken = shop.package("2.0.0");
    write_program(
        &broken.join("run.sh"),
        "#!/bin/bash\necho 'cannot find the sun' >&2\nexit 3",
    );
    let error = shop.install(&local(&broken), "").await.unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains("cannot find the sun"), "{error}");
    assert_eq!(
        ask(&shop.clip("todo"), "a", &json!({})).await.unwrap(),
        "1.0.0"
    );
    assert_eq!(shop.leftovers(), [""; 0]);
    let nothing = shop.install(&local(Path::new("/nonexistent")), "").await;
    assert_eq!(nothing.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_secret_is_stored_as_its_hash_and_survives_an_upgrade() {
    let shop = workshop();
    let first = shop.package("1.0.0");
    let source = local(&first);
    let install = |secret: &'static str| Install {
        alias: "todo",
        source: &source,
        owner: "",
        call_secret: secret,
        registry_token: None,
    };
    for (secret, opens) in [("", None), ("sesame", Some("sesame")), ("", Some("sesame"))] {
        let staged = shop.library.stage(&install(secret)).await.unwrap();
        let record = shop.library.commit(staged).unwrap();
        assert_eq!(record.is_token_protected(), opens.is_some());
        let clip = shop.clip("todo");
        assert_eq!(clip.is_token_protected(), opens.is_some());
        assert!(clip.check_secret(opens).is_ok());
        assert_eq!(clip.check_secret(Some("wrong")).is_ok(), opens.is_none());
    }
    let config = fs::read_to_string(shop.root.path().join("home/config.json")).unwrap();
    assert!(config.contains("token_sha256") && !config.contains("sesame"));
}

#[tokio::test]
async fn leftovers_of_a_crash_are_repaired() {
    let shop = workshop();
    shop.install(&local(&shop.package("1.0.0")), "")
        .await
        .unwrap();
    let clips = shop.root.path().join("home/clips");
    fs::rename(clips.join("todo"), clips.join(".replaced-todo")).unwrap();
    fs::create_dir(clips.join(".staging-todo")).unwrap();
    drop(Library::open(shop.root.path().join("home"), Programs::default()).unwrap());
    assert_eq!(shop.leftovers(), [""; 0]);
    assert_eq!(
        ask(&shop.clip("todo"), "a", &json!({})).await.unwrap(),
        "1.0.0"
    );
}

#[tokio::test]
async fn only_files_and_directories_are_replaced_by_a_clip() {
    let shop = workshop();
    let source = local(&shop.package("1.0.0"));
    let place = shop.library.directory("todo");
    fs::create_dir(shop.root.path().join("elsewhere")).unwrap();
    nix::unistd::mkfifo(&place, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let refused = shop.install(&source, "").await.unwrap_err();
    assert!(refused.message.contains("is a FIFO"), "{refused}");
    let kind = fs::symlink_metadata(&place).unwrap().file_type();
    assert!(kind.is_fifo() && shop.leftovers().is_empty());
    fs::remove_file(&place).unwrap();

    symlink("nowhere", &place).unwrap();
    shop.install(&source, "").await.unwrap_err();
    assert_eq!(fs::read_link(&place).unwrap(), Path::new("nowhere"));
    assert!(shop.library.records().unwrap().is_empty());
    fs::remove_file(&place).unwrap();

    fs::write(&place, "a file").unwrap();
    shop.install(&source, "").await.unwrap();
    assert_eq!(
        ask(&shop.clip("todo"), "a", &json!({})).await.unwrap(),
        "1.0.0"
    );
}

#[test]
fn leftovers_of_a_crash_do_not_replace_files_of_the_user() {
    let shop = workshop();
    let clips = shop.root.path().join("home/clips");
    fs::create_dir(clips.join(".replaced-todo")).unwrap();
    symlink("nowhere", clips.join("todo")).unwrap();
    nix::unistd::mkfifo(
        &clips.join(".replaced-other"),
        nix::sys::stat::Mode::S_IRWXU,
    )
    .unwrap();
    drop(Library::open(shop.root.path().join("home"), Programs::default()).unwrap());
    assert!(clips.join("todo").is_symlink());
    assert!(fs::symlink_metadata(clips.join("other")).is_err());
}

const CLIP_JSON: &str =
    r#"{"name":"@lab/packed","version":"3.0.0","runtime":"exec","main":"run.sh"}"#;

#[tokio::test]
async fn an_archive_is_installed() {
    let shop = workshop();
    let script = format!("#!/bin/bash\n{SHELL}\nregister\nwhile next; do result 3; done");
    let bytes = archive(&[
        Item::File("package/clip.json", CLIP_JSON),
        Item::File("./package/run.sh", &script),
        Item::Link("package/bin/start", "../run.sh"),
    ]);
    let path = shop.root.path().join("packed.tgz");
    fs::write(&path, &bytes).unwrap();
    shop.install(&local(&path), "").await.unwrap();
    assert_eq!(ask(&shop.clip("todo"), "a", &json!({})).await.unwrap(), 3);
    let installed = shop.library.directory("todo").join("run.sh");
    assert_eq!(
        fs::metadata(installed).unwrap().permissions().mode() & 0o7777,
        0o755
    );
    let record = &shop.library.records().unwrap()["todo"];
    assert_eq!(record.source, format!("local/todo:{}", path.display()));
    let renewed = shop.library.newer(record, None, None).await;
    assert_eq!(renewed.unwrap_err().code, Code::FailedPrecondition);
}

#[tokio::test]
async fn hostile_archives_leave_nothing_behind() {
    let shop = workshop();
    let outside = shop.root.path().join("outside");
    let absolute = outside.to_str().unwrap();
    let hostile: Vec<Vec<Item<'_>>> = vec![
        vec![Item::File("../outside", "x")],
        vec![Item::File("package/../../../outside", "x")],
        vec![Item::File(absolute, "x")],
        vec![Item::Link("package/l", absolute)],
        vec![Item::Link("package/l", "../../outside")],
        vec![Item::Link("package/l", "/etc/passwd")],
        vec![Item::Link("package/l", "nothing")],
        vec![Item::Link("package/l", "l")],
        vec![
            Item::Link("package/d", ".."),
            Item::File("package/d/outside", "x"),
        ],
        vec![
            Item::Link("package/a/l", ".."),
            Item::Link("package/m", "a/l/../../outside"),
        ],
        vec![Item::Other("package/hard", EntryType::Link)],
        vec![Item::Other("package/pipe", EntryType::Fifo)],
        vec![Item::Other("package/device", EntryType::Char)],
        vec![Item::File("package/f", "x"), Item::File("package/f/g", "x")],
        (0..50_001)
            .map(|_| Item::File("package/bomb", ""))
            .collect(),
    ];
    let path = shop.root.path().join("hostile.tgz");
    for items in hostile {
        let mut items = items;
        items.insert(0, Item::File("package/clip.json", CLIP_JSON));
        fs::write(&path, archive(&items)).unwrap();
        let refused = shop.install(&local(&path), "").await;
        let code = refused.unwrap_err().code;
        assert!(
            matches!(code, Code::InvalidArgument | Code::ResourceExhausted),
            "{code}"
        );
        assert!(!outside.exists());
        assert_eq!(shop.leftovers(), [""; 0]);
    }
    for bytes in [
        &b""[..],
        b"not an archive",
        &archive(&[Item::File("a", "b")])[..20],
    ] {
        fs::File::create(&path).unwrap().write_all(bytes).unwrap();
        let refused = shop.install(&local(&path), "").await;
        assert!(refused.is_err());
    }
    assert!(shop.library.records().unwrap().is_empty());
}

#[tokio::test]
async fn errors_of_an_installation_name_its_source() {
    let shop = workshop();
    let place = shop.root.path().join("package");
    fs::create_dir_all(&place).unwrap();
    let refused = shop.install(&local(&place), "").await.unwrap_err();
    let expected = format!("{} has no program", place.display());
    assert!(refused.message.starts_with(&expected), "{refused}");

    fs::write(
        place.join("clip.json"),
        r#"{"runtime":"python","main":"a.py"}"#,
    )
    .unwrap();
    fs::write(
        place.join("a.py"),
        "import sys\nprint('no milk\\nno tea', file=sys.stderr)\nsys.exit(3)\n",
    )
    .unwrap();
    let refused = shop.install(&local(&place), "").await.unwrap_err();
    let message = &*refused.message;
    assert!(
        message.ends_with("exit code 3\nno milk\nno tea"),
        "{message}"
    );
    assert!(!message.contains(".staging-"), "{message}");
}
