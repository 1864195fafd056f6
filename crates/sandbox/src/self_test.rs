//! The self-test: a confined process tries what its policy forbids.

use std::fs::{self, File};
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Loopback, NetworkMode, Policy, system};

/// The exit code of a test in which nothing succeeded that is forbidden. Not 0, which a program that ignores the arguments
/// would return.
const PASSED: i32 = 42;
const INVALID: i32 = 100;

/// Attempts that must fail, by the exit code that reports a success.
const ATTEMPTS: &[(i32, &str)] = &[
    (101, "a file outside was written"),
    (102, "the mode of a file outside was changed"),
    (103, "a hidden place was read"),
    (104, "a protected place was written"),
    (105, "a server was connected to"),
    (106, "a datagram socket was made"),
    (107, "a process outside was signalled"),
    (108, "the temporary directory could not be written"),
];

/// The things that a confined process tries.
#[derive(Debug, Serialize, Deserialize)]
pub struct SelfTest {
    /// A file that the user may write and the policy does not permit.
    outside: Option<PathBuf>,
    hidden: Option<PathBuf>,
    protected: Option<PathBuf>,
    temporary: Option<PathBuf>,
    /// The port of a server on 127.0.0.1 that the policy does not permit.
    port: Option<u16>,
    datagrams: bool,
}

/// Removes the file of a test when it is dropped.
#[derive(Debug)]
pub struct TestFiles(Option<PathBuf>);

impl Drop for TestFiles {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_file(path);
        }
    }
}

impl SelfTest {
    /// Prepares the test of a policy. `port` belongs to a server outside.
    ///
    /// # Errors
    ///
    /// Fails if the file outside cannot be made.
    pub fn prepare(policy: &Policy, port: Option<u16>) -> io::Result<(Self, TestFiles)> {
        let is_writable = |place: &Path| {
            let mut all = policy.writable.iter().chain(&policy.temporary);
            all.any(|writable| place.starts_with(writable))
        };
        let directories = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
        let place = directories
            .into_iter()
            .filter_map(|directory| directory.canonicalize().ok())
            .find(|directory| !is_writable(directory));
        let outside = match place {
            Some(directory) => {
                let name = format!(".pinion-sandbox-test-{}", std::process::id());
                let path = directory.join(name);
                // A file of an earlier test that was killed, never one of another user.
                let _ = fs::remove_file(&path);
                File::options().write(true).create_new(true).open(&path)?;
                Some(path)
            }
            None => None,
        };
        let network = &policy.network;
        let is_open = network.mode == NetworkMode::Open;
        let may_connect = is_open || network.loopback == Loopback::All;
        let test = Self {
            outside: outside.clone(),
            hidden: policy.hidden.iter().find_map(|place| readable_file(place)),
            protected: policy.protected.first().cloned(),
            temporary: policy.temporary.clone(),
            port: port.filter(|_| !may_connect),
            datagrams: !is_open,
        };
        Ok((test, TestFiles(outside)))
    }

    /// Runs a test and returns its exit code. Called in a confined process.
    pub fn run(text: &str) -> i32 {
        match serde_json::from_str::<Self>(text) {
            Ok(test) => test.attempt(),
            Err(_) => INVALID,
        }
    }

    fn attempt(&self) -> i32 {
        if let Some(path) = &self.outside {
            if File::options().write(true).open(path).is_ok() {
                return 101;
            }
            if fs::set_permissions(path, fs::Permissions::from_mode(0o640)).is_ok() {
                return 102;
            }
        }
        if let Some(path) = &self.hidden
            && File::open(path).is_ok()
        {
            return 103;
        }
        if let Some(path) = &self.protected {
            let inside = path.join(".pinion-sandbox-test");
            for place in [path, &inside] {
                if File::options()
                    .append(true)
                    .create(true)
                    .open(place)
                    .is_ok()
                {
                    return 104;
                }
            }
        }
        if let Some(port) = self.port
            && TcpStream::connect(("127.0.0.1", port)).is_ok()
        {
            return 105;
        }
        if self.datagrams && UdpSocket::bind("127.0.0.1:0").is_ok() {
            return 106;
        }
        if system::may_signal(std::os::unix::process::parent_id()) {
            return 107;
        }
        if let Some(directory) = &self.temporary {
            let path = directory.join(".pinion-sandbox-test");
            if fs::write(&path, "").is_err() || fs::remove_file(&path).is_err() {
                return 108;
            }
        }
        PASSED
    }

    /// Judges the exit code of a test.
    ///
    /// # Errors
    ///
    /// Fails with the attempt that succeeded, in words.
    pub fn judge(code: i32) -> Result<(), String> {
        if code == PASSED {
            return Ok(());
        }
        let known = ATTEMPTS.iter().find(|(known, _)| *known == code);
        Err(match known {
            Some((_, problem)) => (*problem).to_owned(),
            None => format!("it ended with exit code {code}"),
        })
    }
}

/// Returns a file that the user can read: the place itself, or a file in it.
fn readable_file(place: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let inside = entries.map(|entry| entry.path());
    std::iter::once(place.to_owned())
        .chain(inside)
        .filter(|path| path.is_file())
        .find(|path| File::open(path).is_ok())
}
