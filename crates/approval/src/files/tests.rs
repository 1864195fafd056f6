use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A working directory with files, links and something outside.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("cwd");
        for name in ["src/deep", "secrets", "build"] {
            fs::create_dir_all(cwd.join(name)).unwrap();
        }
        for name in [
            "src/a.rs",
            "src/deep/b.rs",
            "secrets/key",
            ".env",
            "note.txt",
        ] {
            fs::write(cwd.join(name), "x").unwrap();
        }
        fs::create_dir(dir.path().join("outside")).unwrap();
        fs::write(dir.path().join("outside/file"), "x").unwrap();
        symlink("../outside", cwd.join("way")).unwrap();
        symlink("../../outside/file", cwd.join("src/link.rs")).unwrap();
        symlink("../../outside/new", cwd.join("src/nowhere.rs")).unwrap();
        symlink("../secrets/key", cwd.join("src/innocent.rs")).unwrap();
        symlink("loop", cwd.join("loop")).unwrap();
        Self { dir }
    }

    fn cwd(&self) -> PathBuf {
        self.dir.path().join("cwd")
    }

    fn target(&self, path: &str) -> Target {
        Target::find(path, &self.cwd(), false)
    }

    fn tree(&self, path: &str) -> Target {
        Target::find(path, &self.cwd(), true)
    }

    fn permits(&self, pattern: &str, path: &str) -> bool {
        PathPattern::parse(pattern)
            .unwrap()
            .permits(&self.target(path))
    }

    fn forbids(&self, pattern: &str, path: &str) -> Fit {
        PathPattern::parse(pattern)
            .unwrap()
            .forbids(&self.target(path))
    }
}

#[test]
fn resolved_paths_decide_what_is_inside() {
    let place = Place::new();
    let outside = place.dir.path().join("outside/file");
    for (path, inside) in [
        (".", true),
        ("src/a.rs", true),
        ("./src/../src/a.rs", true),
        ("new/dir/file", true),
        ("@src/a.rs", true),
        ("..", false),
        ("../outside/file", false),
        ("src/../../outside/file", false),
        ("../cwd/src/a.rs", true),
        ("../cwd-other/x", false),
        ("way/file", false),
        ("way/new", false),
        ("way/../cwd/x", true),
        ("src/link.rs", false),
        ("src/nowhere.rs", false),
        ("src/innocent.rs", true),
        ("loop", false),
        ("note.txt/x", false),
        ("~/x", false),
        ("/etc/passwd", false),
        (outside.to_str().unwrap(), false),
    ] {
        assert_eq!(place.target(path).is_inside(), inside, "{path}");
    }
    // Links in an absolute path are resolved before `..`.
    let sly = format!("{}/way/../outside/file", place.cwd().display());
    assert!(!place.target(&sly).is_inside());
    let missing = format!("{}/missing/../../outside/file", place.cwd().display());
    assert!(!place.target(&missing).is_inside());
}

#[test]
fn patterns_permit_what_they_name() {
    let place = Place::new();
    let absolute = format!(
        "{}/outside/**",
        place.dir.path().canonicalize().unwrap().display()
    );
    for (pattern, path, expected) in [
        ("src/**", "src/a.rs", true),
        ("src/**", "src/deep/b.rs", true),
        ("src/**", "src", true),
        ("src/**", "src/new/file", true),
        ("src/", "src/a.rs", true),
        ("./src/*.rs", "src/a.rs", true),
        ("src/*.rs", "src/deep/b.rs", false),
        ("src/**", "srcs/a.rs", false),
        ("src/**", "src/../secrets/key", false),
        ("src/**", "secrets/../src/a.rs", true),
        ("src/**", "src/link.rs", false),
        ("src/**", "src/nowhere.rs", false),
        ("src/**", "src/innocent.rs", false),
        ("*.rs", "src/deep/b.rs", true),
        ("*.rs", "/etc/x.rs", false),
        ("**", "anything/at/all", true),
        ("**", ".", true),
        ("**", "../outside/file", false),
        ("**", "way/file", false),
        ("SRC/**", "src/a.rs", false),
        (&absolute, "../outside/file", true),
        (&absolute, "way/file", true),
        (&absolute, "src/a.rs", false),
        ("/**", "/etc/passwd", true),
        ("{src,secrets}/*", "secrets/key", true),
    ] {
        assert_eq!(place.permits(pattern, path), expected, "{pattern} {path}");
    }
}

#[test]
fn patterns_forbid_by_written_and_resolved_path() {
    let place = Place::new();
    for (pattern, path, expected) in [
        (".env*", ".env", Fit::Yes),
        (".env*", ".ENV.local", Fit::Yes),
        (".env*", "src/.env", Fit::Yes),
        (".env*", "/elsewhere/.env", Fit::Yes),
        (".env*", "./src/../.env", Fit::Yes),
        (".env*", "note.txt", Fit::No),
        ("secrets/**", "secrets/key", Fit::Yes),
        ("secrets/**", "secrets", Fit::Yes),
        ("secrets", "secrets/key", Fit::Yes),
        ("secrets/*", "secrets/new/deep", Fit::Yes),
        ("secrets/**", "src/innocent.rs", Fit::Yes),
        ("src/link.rs", "src/link.rs", Fit::Yes),
        ("way/**", "way/file", Fit::Yes),
        ("secrets/**", "src/a.rs", Fit::No),
        ("/etc/**", "/etc/passwd", Fit::Yes),
        ("/etc/**", "../../../../../../../../etc/passwd", Fit::Yes),
        ("/etc/**", "src/a.rs", Fit::No),
        // The parents of the working directory do not count: the model did not choose them.
        ("cwd", "src/a.rs", Fit::No),
        ("secrets/**", "loop", Fit::Maybe),
    ] {
        assert_eq!(place.forbids(pattern, path), expected, "{pattern} {path}");
    }
}

#[test]
fn a_search_reaches_everything_below() {
    let place = Place::new();
    let permits = |pattern: &str, path: &str| {
        PathPattern::parse(pattern)
            .unwrap()
            .permits(&place.tree(path))
    };
    assert!(permits("src/**", "src"));
    assert!(permits("src/**", "src/deep"));
    assert!(!permits("src/*", "src/deep"));
    assert!(permits("src/*", "src/a.rs"));
    assert!(!permits("*.rs", "src"));
    let forbids = |pattern: &str, path: &str| {
        PathPattern::parse(pattern)
            .unwrap()
            .forbids(&place.tree(path))
    };
    assert_eq!(forbids("secrets/**", "secrets"), Fit::Yes);
    assert_eq!(forbids("secrets/**", "."), Fit::Maybe);
    assert_eq!(forbids("secrets/**", "src"), Fit::No);
    assert_eq!(forbids(".env*", "src"), Fit::Maybe);
    assert_eq!(forbids(".env*", "src/a.rs"), Fit::No);
    assert_eq!(forbids("/etc/**", "/"), Fit::Maybe);
}

#[test]
fn invalid_patterns_are_rejected() {
    for pattern in ["../x", "src/../..", "src/[a", "{a"] {
        assert!(PathPattern::parse(pattern).is_err(), "{pattern}");
    }
}
