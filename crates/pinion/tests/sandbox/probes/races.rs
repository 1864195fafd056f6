//! Programs that change a path, a directory or an address while the warden looks at it.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Instant;

use super::{Places, must_work};
use crate::calls::{HERE, call};

/// Attempts of one race. The first version of the warden that only inspected lost within 2600.
const ATTEMPTS: usize = 20_000;
/// Attempts of a race on directories, each of which takes several calls.
const SLOW_ATTEMPTS: usize = 300;

/// A path of a fixed length whose bytes another thread exchanges.
struct Flipped {
    bytes: Vec<AtomicU8>,
    stop: AtomicBool,
}

impl Flipped {
    fn new(length: usize) -> Self {
        Self {
            bytes: (0..=length).map(|_| AtomicU8::new(0)).collect(),
            stop: AtomicBool::new(false),
        }
    }

    fn set(&self, text: &str) {
        for (at, byte) in self.bytes.iter().enumerate() {
            byte.store(*text.as_bytes().get(at).unwrap_or(&0), Ordering::Relaxed);
        }
    }

    fn address(&self) -> usize {
        self.bytes.as_ptr() as usize
    }

    /// Runs `attempt` while another thread exchanges the texts.
    fn race(&self, texts: [&str; 2], count: usize, mut attempt: impl FnMut(usize)) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !self.stop.load(Ordering::Relaxed) {
                    texts.iter().for_each(|text| self.set(text));
                }
            });
            (0..count).for_each(|_| attempt(self.address()));
            self.stop.store(true, Ordering::Relaxed);
        });
    }
}

pub fn flipping_paths(places: &Places) -> Result<(), String> {
    let outside = places.outside.join("dir/x").display().to_string();
    // The same length, so that a mixture of both is a name as well.
    let good = format!("./{}", "g".repeat(outside.len() - 2));
    let protected = format!("./.git/hooks/{}", "p".repeat(outside.len().max(16) - 13));
    let flags = (libc::O_WRONLY | libc::O_CREAT) as usize;
    for bad in [&outside, &protected] {
        let length = good.len().max(bad.len());
        Flipped::new(length).race([&good, bad], ATTEMPTS, |path| {
            if let Ok(file) = call(libc::SYS_openat, [HERE, path, flags, 0o644, 0, 0]) {
                let _ = call(libc::SYS_close, [file as usize, 0, 0, 0, 0, 0]);
            }
        });
        let source = "source\0";
        must_work("source", fs::write("source", ""))?;
        Flipped::new(length).race([&good, bad], ATTEMPTS / 4, |path| {
            let source = source.as_ptr() as usize;
            let _ = call(libc::SYS_symlinkat, [source, HERE, path, 0, 0, 0]);
            let _ = call(libc::SYS_linkat, [HERE, source, HERE, path, 0, 0]);
            let _ = call(libc::SYS_mkdirat, [HERE, path, 0o755, 0, 0, 0]);
            let _ = call(libc::SYS_unlinkat, [HERE, path, 0, 0, 0, 0]);
        });
    }
    // The outcome is judged from outside too; here, that nothing appeared.
    let hooks = must_work("hooks", fs::read_dir(".git/hooks"))?.count();
    let outside = must_work("outside", fs::read_dir(places.outside.join("dir")))?.count();
    match hooks + outside {
        0 => Ok(()),
        count => Err(format!("{count} files were made by a race")),
    }
}

pub fn flipping_directories(places: &Places) -> Result<(), String> {
    must_work("a directory", fs::create_dir("real"))?;
    let stop = AtomicBool::new(false);
    let targets = [places.outside.join("dir"), ".git/hooks".into()];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for target in &targets {
                    let _ = fs::rename("real", "kept");
                    let _ = symlink(target, "real");
                    let _ = fs::remove_file("real");
                    let _ = fs::rename("kept", "real");
                }
            }
        });
        for _ in 0..SLOW_ATTEMPTS {
            let _ = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open("real/x");
            let _ = fs::create_dir("real/d");
            let _ = fs::rename("file", "real/file");
            let _ = fs::rename("real/file", "file");
            let _ = fs::rename("kept/file", "file");
        }
        stop.store(true, Ordering::Relaxed);
    });
    let hooks = must_work("hooks", fs::read_dir(".git/hooks"))?.count();
    let outside = must_work("outside", fs::read_dir(places.outside.join("dir")))?.count();
    match hooks + outside {
        0 => Ok(()),
        count => Err(format!("{count} files were made by a race")),
    }
}

/// Flips an address between a server of the sandbox and one outside, whose port is in a file.
pub fn flipping_addresses(_: &Places) -> Result<(), String> {
    let own = must_work("a server", std::net::TcpListener::bind("127.0.0.1:0"))?;
    let own = must_work("its address", own.local_addr())?.port();
    let foreign: u16 = fs::read_to_string("port")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(9);
    let address = |port: u16| {
        let mut bytes = vec![2, 0];
        bytes.extend(port.to_be_bytes());
        bytes.extend([127, 0, 0, 1]);
        bytes
    };
    let bytes: Vec<AtomicU8> = (0..16).map(|_| AtomicU8::new(0)).collect();
    let stop = AtomicBool::new(false);
    let mut reached = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for port in [own, foreign] {
                    for (to, byte) in bytes.iter().zip(address(port)) {
                        to.store(byte, Ordering::Relaxed);
                    }
                }
            }
        });
        for _ in 0..SLOW_ATTEMPTS {
            let kind = (libc::SOCK_STREAM | libc::SOCK_NONBLOCK) as usize;
            let Ok(socket) = call(libc::SYS_socket, [2, kind, 0, 0, 0, 0]) else {
                continue;
            };
            let to = bytes.as_ptr() as usize;
            let _ = call(libc::SYS_connect, [socket as usize, to, 16, 0, 0, 0]);
            let mut peer = [0_u8; 16];
            let mut length = 16_u32;
            let (peer_at, size) = (peer.as_mut_ptr() as usize, &raw mut length as usize);
            let known = call(
                libc::SYS_getpeername,
                [socket as usize, peer_at, size, 0, 0, 0],
            );
            if known.is_ok() && u16::from_be_bytes([peer[2], peer[3]]) == foreign {
                reached += 1;
            }
            let _ = call(libc::SYS_close, [socket as usize, 0, 0, 0, 0, 0]);
        }
        stop.store(true, Ordering::Relaxed);
    });
    match reached {
        0 => Ok(()),
        count => Err(format!("the server outside was reached {count} times")),
    }
}

/// A pipe without a reader keeps its opener waiting, and no other call of the command.
pub fn waiting_calls(_: &Places) -> Result<(), String> {
    let pipe = "pipe\0";
    let mode = (libc::S_IFIFO | 0o600) as usize;
    call(
        libc::SYS_mknodat,
        [HERE, pipe.as_ptr() as usize, mode, 0, 0, 0],
    )
    .map_err(|error| format!("mkfifo: {error}"))?;
    let writer = std::thread::spawn(|| {
        let mut pipe = OpenOptions::new().write(true).open("pipe")?;
        pipe.write_all(b"through")
    });
    let begun = Instant::now();
    for number in 0..100 {
        must_work("another file", File::create(format!("f{number}")))?;
    }
    if begun.elapsed().as_secs() > 20 {
        return Err("other calls waited".into());
    }
    let read = must_work("reading", fs::read_to_string("pipe"))?;
    let written = writer.join().map_err(|_| "the writer panicked")?;
    must_work("writing", written)?;
    match read == "through" {
        true => Ok(()),
        false => Err(format!("read {read:?}")),
    }
}
