//! A PostgreSQL server for one test: files in a temporary directory, a loopback port, stopped with
//! the test. If tests run as root, the server runs as the user `postgres`, because it refuses to
//! run as root.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The password of the only user.
const PASSWORD: &str = "p'ss";

/// A server that stops when this value is dropped.
pub struct Server {
    home: tempfile::TempDir,
    port: u16,
    process: Child,
    settings: Vec<String>,
}

/// A self-signed certificate for 127.0.0.1.
const CERTIFICATE: &str = "[req]
prompt = no
distinguished_name = name
x509_extensions = server
[name]
CN = 127.0.0.1
[server]
basicConstraints = critical, CA:FALSE
subjectAltName = IP:127.0.0.1
";

impl Server {
    /// Creates a new cluster and starts it.
    pub fn start() -> Self {
        Self::start_with(|_| Vec::new())
    }

    /// Starts a server with encrypted connections; its certificate is `server.crt` in its home.
    pub fn start_encrypted() -> Self {
        Self::start_with(|home| {
            let file = |name: &str| home.join(name).display().to_string();
            fs::write(file("req.cnf"), CERTIFICATE).unwrap();
            let made = unprivileged(Path::new("openssl"))
                .args([
                    "req", "-x509", "-nodes", "-days", "2", "-newkey", "rsa:2048",
                ])
                .args(["-config", &file("req.cnf"), "-keyout", &file("server.key")])
                .args(["-out", &file("server.crt")])
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert!(made.success(), "openssl failed");
            vec![
                "ssl=on".to_owned(),
                format!("ssl_cert_file={}", file("server.crt")),
                format!("ssl_key_file={}", file("server.key")),
            ]
        })
    }

    fn start_with(settings: impl FnOnce(&Path) -> Vec<String>) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let settings = settings(home.path());
        let secret = home.path().join("password");
        fs::write(&secret, PASSWORD).unwrap();
        let made = unprivileged(&program("initdb"))
            .args([
                "--username=pinion",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
            ])
            .args(["--no-sync", "--locale=C.UTF-8"])
            .arg(format!("--pwfile={}", secret.display()))
            .arg(home.path().join("data"))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success(), "initdb failed");
        let port = free_port();
        let process = run(home.path(), port, &settings);
        let server = Self {
            home,
            port,
            process,
            settings,
        };
        server.await_ready();
        server
    }

    /// Stops the server as an operator would, and starts it again.
    pub fn restart(&mut self) {
        self.stop();
        self.process = run(self.home.path(), self.port, &self.settings);
    }

    /// Returns the certificate of an encrypting server.
    pub fn certificate(&self) -> String {
        self.home.path().join("server.crt").display().to_string()
    }

    /// Creates a database and returns its DSN.
    pub fn database(&self, name: &str) -> String {
        self.ask("postgres", &format!("CREATE DATABASE {name}"));
        format!(
            "postgres://pinion:{}@127.0.0.1:{}/{name}",
            PASSWORD.replace('\'', "%27"),
            self.port
        )
    }

    /// Returns the output of the server's own client.
    pub fn ask(&self, database: &str, sql: &str) -> String {
        let answer = self.client(database).args(["-c", sql]).output().unwrap();
        assert!(
            answer.status.success(),
            "{sql}: {}",
            String::from_utf8_lossy(&answer.stderr)
        );
        String::from_utf8(answer.stdout).unwrap().trim().to_owned()
    }

    fn client(&self, database: &str) -> Command {
        let mut client = Command::new(program("psql"));
        client
            .args(["-X", "-A", "-t", "-q", "-h", "127.0.0.1", "-U", "pinion"])
            .args(["-p", &self.port.to_string(), "-d", database])
            .env("PGPASSWORD", PASSWORD);
        client
    }

    fn await_ready(&self) {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            let mut asked = self.client("postgres");
            asked
                .args(["-c", "SELECT 1"])
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if asked.status().unwrap().success() {
                return;
            }
            assert!(Instant::now() < patience, "the server does not answer");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops the process of the server. Its id is in the server's own file, because the child may
    /// be the program that changed users.
    fn stop(&mut self) {
        let file = self.home.path().join("data/postmaster.pid");
        let id = fs::read_to_string(file).unwrap_or_default();
        if let Some(id) = id.lines().next() {
            let _ = Command::new("kill").args(["-INT", id.trim()]).status();
        }
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(home: &Path, port: u16, settings: &[String]) -> Child {
    let log = fs::File::create(home.join("log")).unwrap();
    unprivileged(&program("postgres"))
        .arg("-D")
        .arg(home.join("data"))
        .args(["-h", "127.0.0.1", "-F", "-c", "unix_socket_directories="])
        .args(["-p", &port.to_string()])
        .args(settings.iter().flat_map(|setting| ["-c", setting]))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// Creates a command that does not run as root.
fn unprivileged(program: &Path) -> Command {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid=postgres",
            "--regid=postgres",
            "--clear-groups",
            "--",
        ])
        .arg(program)
        .current_dir("/");
    command
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Returns a program of the newest installed server.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<PathBuf> = versions
        .map(|version| version.path().join("bin").join(name))
        .collect();
    found.retain(|path| path.exists());
    found.sort();
    found.pop().unwrap_or_else(|| PathBuf::from(name))
}
