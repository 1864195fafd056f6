//! A mount that serves files from memory and later stops answering, like a network mount that loses its network.
//!
//! It speaks as much of the kernel's FUSE protocol as reading and appending to existing files needs.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Files in memory below a mount point, until the value is dropped.
#[derive(Debug)]
pub struct StallingMount {
    path: PathBuf,
    stalled: Arc<AtomicBool>,
    dropped: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl StallingMount {
    /// Mounts over `path` and serves one file. The error is why that is not possible here. Requires the right to mount.
    pub fn mount(path: &Path, file: &str, content: Vec<u8>) -> Result<Self, String> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| format!("/dev/fuse: {error}"))?;
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        mount(
            Some("stalling"),
            path,
            Some("fuse"),
            MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
            Some(options.as_str()),
        )
        .map_err(|error| format!("mount: {error}"))?;
        let (stalled, dropped) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let server = Server {
            device,
            names: HashMap::from([(file.to_owned(), FIRST_FILE)]),
            files: HashMap::from([(FIRST_FILE, content)]),
        };
        let flags = (Arc::clone(&stalled), Arc::clone(&dropped));
        let server = std::thread::spawn(move || server.serve(&flags.0, &flags.1));
        Ok(Self {
            path: path.to_owned(),
            stalled,
            dropped,
            server: Some(server),
        })
    }

    /// Reads and answers no request from now on. A process that waits for one can still be killed.
    pub fn stall(&self) {
        self.stalled.store(true, Ordering::SeqCst);
    }
}

impl Drop for StallingMount {
    fn drop(&mut self) {
        let _ = umount2(&self.path, MntFlags::MNT_DETACH);
        self.dropped.store(true, Ordering::SeqCst);
        // The server closes its end, so the kernel fails the requests that wait.
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

const ROOT: u64 = 1;
const FIRST_FILE: u64 = 2;
/// Size of the head of a request in bytes.
const HEAD: usize = 40;
/// Size of the largest request in bytes: a write of 1 MiB and its head.
const LARGEST: usize = (1 << 20) + 4096;
/// Reads and writes always reach the server (`FOPEN_DIRECT_IO`), and closing a file does not (`FOPEN_NOFLUSH`): the kernel
/// cannot end a process that waits for a flush.
const OPEN_FLAGS: u32 = 1 | 1 << 5;
/// Milliseconds between two looks at the flags.
const POLL_INTERVAL: u16 = 20;

struct Server {
    device: File,
    names: HashMap<String, u64>,
    files: HashMap<u64, Vec<u8>>,
}

impl Server {
    fn serve(mut self, stalled: &AtomicBool, dropped: &AtomicBool) {
        let mut request = vec![0; LARGEST];
        while !dropped.load(Ordering::SeqCst) {
            // The kernel ends a process that waits only for requests that the server has not read.
            let events = if stalled.load(Ordering::SeqCst) {
                PollFlags::empty()
            } else {
                PollFlags::POLLIN
            };
            let mut ready = [PollFd::new(self.device.as_fd(), events)];
            let found = poll(&mut ready, PollTimeout::from(POLL_INTERVAL)).unwrap_or(0);
            if found == 0 || events.is_empty() {
                continue;
            }
            let Ok(length) = self.device.read(&mut request) else {
                return;
            };
            if length >= HEAD {
                self.answer(&request[..length]);
            }
        }
    }

    fn answer(&mut self, request: &[u8]) {
        let (opcode, unique, node) = (u32_at(request, 4), u64_at(request, 8), u64_at(request, 16));
        let body = &request[HEAD..];
        let answer = match opcode {
            // FORGET, INTERRUPT and BATCH_FORGET have no answer.
            2 | 36 | 42 => return,
            1 => self.lookup(body),
            3 | 4 => Ok([vec![0; 16], self.attributes(node)].concat()),
            14 | 27 => Ok([&[0; 8][..], &OPEN_FLAGS.to_le_bytes(), &[0; 4]].concat()),
            15 => Ok(self.read(node, body)),
            16 => Ok(self.write(node, body)),
            17 => Ok(vec![0; 80]),
            // RELEASE, FSYNC, READDIR of nothing, RELEASEDIR, FSYNCDIR, ACCESS
            18 | 20 | 28 | 29 | 30 | 34 => Ok(Vec::new()),
            26 => Ok(init()),
            _ => Err(Errno::ENOSYS),
        };
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(error) => (-(error as i32), Vec::new()),
        };
        let length = (16 + body.len()) as u32;
        let mut out = length.to_le_bytes().to_vec();
        out.extend_from_slice(&i32::to_le_bytes(error));
        out.extend_from_slice(&unique.to_le_bytes());
        out.extend_from_slice(&body);
        // The program that asked may have been killed.
        let _ = self.device.write_all(&out);
    }

    fn lookup(&self, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let name = String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or(name));
        let node = *self.names.get(&*name).ok_or(Errno::ENOENT)?;
        // Neither the name nor the attributes are valid for any time.
        Ok([&node.to_le_bytes()[..], &[0; 32], &self.attributes(node)].concat())
    }

    fn attributes(&self, node: u64) -> Vec<u8> {
        let (size, mode) = match self.files.get(&node) {
            Some(content) => (content.len() as u64, 0o100_666_u32),
            None => (0, 0o040_777),
        };
        let mut out = [node, size, size / 512, 0, 0, 0]
            .map(u64::to_le_bytes)
            .concat();
        let words = [0, 0, 0, mode, 1 + u32::from(node == ROOT), 0, 0, 0, 4096, 0];
        out.extend(words.map(u32::to_le_bytes).concat());
        out
    }

    fn read(&self, node: u64, body: &[u8]) -> Vec<u8> {
        let content = self.files.get(&node).map_or(&[][..], |content| content);
        let start = (u64_at(body, 8) as usize).min(content.len());
        let end = (start + u32_at(body, 16) as usize).min(content.len());
        content[start..end].to_vec()
    }

    fn write(&mut self, node: u64, body: &[u8]) -> Vec<u8> {
        let (offset, length) = (u64_at(body, 8) as usize, u32_at(body, 16) as usize);
        let content = self.files.entry(node).or_default();
        content.resize(content.len().max(offset + length), 0);
        content[offset..offset + length].copy_from_slice(&body[40..40 + length]);
        [(length as u32).to_le_bytes(), [0; 4]].concat()
    }
}

fn init() -> Vec<u8> {
    /// Major and minor version, read-ahead, flags, queues, largest write, granularity of times.
    const WORDS: [u32; 7] = [7, 31, 0, 0, 0, 1 << 20, 1];
    let mut out = WORDS.map(u32::to_le_bytes).concat();
    out.resize(64, 0);
    out
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default())
}
