//! Every package of a release is made around the binary under test, installed into an empty place, and runs the first
//! command of the README.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Returns the directory with all packages, made once for all tests of this process.
fn packages() -> &'static Path {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        // Without its symbols, as in a release, the binary is packed in seconds.
        let binary = directory.path().join("pinion");
        let stripped = Command::new("strip")
            .arg("-o")
            .arg(&binary)
            .arg(env!("CARGO_BIN_EXE_pinion"))
            .status();
        assert!(stripped.unwrap().success());
        let directory_of_packages = directory.path().join("packages");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let made = Command::new(cargo)
            .args(["run", "--quiet", "--package", "xtask", "--", "packages"])
            .arg(&binary)
            .arg(&directory_of_packages)
            .current_dir(project())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        directory
    });
    static PACKAGES: OnceLock<PathBuf> = OnceLock::new();
    PACKAGES.get_or_init(|| made.path().join("packages"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the only package with this end.
fn package(end: &str) -> PathBuf {
    let found = fs::read_dir(packages())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut found = found.filter(|path| path.to_string_lossy().ends_with(end));
    let package = found
        .next()
        .unwrap_or_else(|| panic!("no package ends with {end}"));
    assert!(found.next().is_none(), "two packages end with {end}");
    package
}

/// Returns the first command of the README that is run and not installed.
fn first_command() -> String {
    let readme = fs::read_to_string(project().join("README.md")).unwrap();
    let (_, section) = readme.split_once("\n## Try it\n").unwrap();
    let (_, block) = section.split_once("\n```\n").unwrap();
    let command = block.lines().next().unwrap().to_owned();
    assert!(command.starts_with("pinion "), "{command}");
    command
}

/// Runs a shell command in an empty directory, with these directories in front of the PATH.
fn run(command: &str, home: &Path, bin: &Path) -> Output {
    let work = home.join("work");
    fs::create_dir_all(&work).unwrap();
    fs::write(work.join("notes.txt"), "").unwrap();
    let path = std::env::var("PATH").unwrap();
    Command::new("sh")
        .args(["-c", command])
        .current_dir(work)
        .env_clear()
        .env("HOME", home)
        .env("PATH", format!("{}:{path}", bin.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs the first command of the README with the program in `bin`.
#[track_caller]
fn tries_it(home: &Path, bin: &Path) {
    assert!(
        bin.join("pinion").exists(),
        "{} has no pinion",
        bin.display()
    );
    let ran = run(&first_command(), home, bin);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(
        text(&ran.stdout).contains("notes.txt"),
        "{}",
        text(&ran.stdout)
    );
}

#[track_caller]
fn fine(command: &mut Command) -> Output {
    let ran = command.stdin(Stdio::null()).output().unwrap();
    assert!(
        ran.status.success(),
        "{command:?}: {}{}",
        text(&ran.stdout),
        text(&ran.stderr)
    );
    ran
}

/// Serves the packages over HTTP until it is dropped.
struct Served {
    child: Child,
    url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(directory: &Path) -> Served {
    let script = "import http.server, functools, sys\n\
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])\n\
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)\n\
        print(server.server_port, flush=True)\nserver.serve_forever()";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .arg(directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut port)
        .unwrap();
    let url = format!("http://127.0.0.1:{}", port.trim());
    Served { child, url }
}

#[test]
#[ignore = "needs the tools of the packages"]
fn every_package_runs_the_first_command_of_the_readme() {
    the_script_installs_the_archive();
    the_debian_package_is_complete();
    the_npm_packages_run_the_binary();
    the_wheel_runs_the_binary();
}

fn the_script_installs_the_archive() {
    let release = tempfile::tempdir().unwrap();
    for path in [
        package(".tar.gz"),
        package("install.sh"),
        package("SHA256SUMS"),
    ] {
        fs::copy(&path, release.path().join(path.file_name().unwrap())).unwrap();
    }
    let served = serve(release.path());
    let install = |home: &Path| {
        let mut command = Command::new("sh");
        command
            .arg(release.path().join("install.sh"))
            .env("HOME", home);
        command
            .env("PINION_INSTALL_URL", &served.url)
            .stdin(Stdio::null());
        command.output().unwrap()
    };
    let home = tempfile::tempdir().unwrap();
    let ran = install(home.path());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(
        text(&ran.stdout).contains("is installed in"),
        "{}",
        text(&ran.stdout)
    );
    tries_it(home.path(), &home.path().join(".local/bin"));
    // A changed archive is not installed.
    let archive = release.path().join(package(".tar.gz").file_name().unwrap());
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&archive, bytes).unwrap();
    let other = tempfile::tempdir().unwrap();
    let ran = install(other.path());
    assert_eq!(ran.status.code(), Some(1));
    assert!(
        text(&ran.stderr).contains("checksum"),
        "{}",
        text(&ran.stderr)
    );
    assert!(!other.path().join(".local").exists());
}

fn the_debian_package_is_complete() {
    let root = tempfile::tempdir().unwrap();
    let admin = root.path().join("var/lib/dpkg");
    for directory in ["info", "updates", "triggers"] {
        fs::create_dir_all(admin.join(directory)).unwrap();
    }
    fs::write(admin.join("status"), "").unwrap();
    let mut install = Command::new("dpkg");
    install.args([
        "--force-depends",
        "--force-not-root",
        "--force-bad-path",
        "--log=/dev/null",
        "--root",
    ]);
    fine(
        install
            .arg(root.path())
            .arg("--install")
            .arg(package(".deb")),
    );
    for file in [
        "usr/share/man/man1/pinion.1.gz",
        "usr/share/man/man1/pinion-hub.1.gz",
        "usr/share/bash-completion/completions/pinion",
        "usr/share/zsh/vendor-completions/_pinion",
        "usr/share/fish/vendor_completions.d/pinion.fish",
        "usr/lib/systemd/system/pinion-hub.service",
        "usr/lib/systemd/system/pinion-fleet@.service",
        "usr/lib/systemd/user/pinion-hub.service",
        "usr/share/doc/pinion/copyright",
        "usr/share/doc/pinion/changelog.Debian.gz",
    ] {
        assert!(root.path().join(file).is_file(), "{file} is missing");
    }
    assert!(!root.path().join("usr/bin/pi").exists());
    let home = tempfile::tempdir().unwrap();
    tries_it(home.path(), &root.path().join("usr/bin"));
    // No bug of Debian asks for the package.
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]);
    lintian.args(["--suppress-tags", "initial-upload-closes-no-bugs"]);
    let checked = lintian.arg(package(".deb")).output().unwrap();
    assert!(
        checked.status.success(),
        "{}{}",
        text(&checked.stdout),
        text(&checked.stderr)
    );
}

fn the_npm_packages_run_the_binary() {
    let version = env!("CARGO_PKG_VERSION");
    let main = package(&format!("/pinion-{version}.tgz"));
    let install = |place: &Path, packages: &[&Path]| {
        fs::write(place.join("package.json"), "{\"private\": true}").unwrap();
        let mut npm = Command::new("npm");
        npm.args([
            "install",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
            "--offline",
        ]);
        fine(npm.args(packages).current_dir(place).env("HOME", place));
    };
    let place = tempfile::tempdir().unwrap();
    let platform = fs::read_dir(packages())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut platform = platform.filter(|path| path.to_string_lossy().contains("/pinion-linux-"));
    let platform = platform.next().unwrap();
    install(place.path(), &[&platform, &main]);
    let bin = place.path().join("node_modules/.bin");
    tries_it(place.path(), &bin);
    let code = run("pinion --model", place.path(), &bin);
    assert_eq!(
        code.status.code(),
        Some(2),
        "the exit code is that of the binary"
    );
    let path = run(
        "cd .. && node -p 'require(\"pinion\").pinionPath()'",
        place.path(),
        &bin,
    );
    assert!(
        text(&path.stdout).trim().ends_with("/bin/pinion"),
        "{}",
        text(&path.stderr)
    );
    // Without the package of the platform it names what is missing.
    fs::remove_dir_all(place.path().join("node_modules/@pinion")).unwrap();
    let missing = run("pinion --version", place.path(), &bin);
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        text(&missing.stderr).contains("the package @pinion/linux-"),
        "{}",
        text(&missing.stderr)
    );
}

fn the_wheel_runs_the_binary() {
    let place = tempfile::tempdir().unwrap();
    let environment = place.path().join("env");
    fine(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment),
    );
    let python = environment.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--disable-pip-version-check",
    ]);
    fine(pip.arg(package(".whl")));
    tries_it(place.path(), &environment.join("bin"));
    let version = fine(Command::new(&python).args(["-m", "pinion", "--version"]));
    assert!(text(&version.stdout).starts_with(env!("CARGO_PKG_VERSION")));
    let found = "import pinion; print(pinion.find_pinion())";
    let found = fine(Command::new(&python).args(["-c", found]));
    assert_eq!(
        text(&found.stdout).trim(),
        environment.join("bin/pinion").to_string_lossy()
    );
}
