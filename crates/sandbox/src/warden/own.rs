//! Things that were made in a sandbox and may be used there again.
//!
//! Sockets and terminals are kept open, only to be named: the numbers of those that have gone are given to others.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::system::{self, FileFacts};

/// The most TCP sockets; later ones count as foreign.
const MAX_SERVERS: usize = 65_536;
/// The most named sockets and terminals of each kind; later ones count as foreign.
const MAX_KEPT: usize = 512;

/// Sockets and terminals that were made in this sandbox.
#[derive(Debug, Default)]
pub(crate) struct OwnThings(Mutex<Things>);

/// Files by device and inode.
type Kept = HashMap<(u64, u64), OwnedFd>;

#[derive(Debug, Default)]
struct Things {
    /// Inodes of TCP sockets that were bound.
    servers: HashSet<u64>,
    /// UNIX sockets with a name.
    names: Kept,
    terminals: Kept,
}

impl OwnThings {
    fn things(&self) -> MutexGuard<'_, Things> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add_server(&self, inode: u64) {
        let mut things = self.things();
        if things.servers.len() < MAX_SERVERS {
            things.servers.insert(inode);
        }
    }

    pub fn add_socket(&self, socket: OwnedFd) {
        keep(&mut self.things().names, socket);
    }

    pub fn add_terminal(&self, terminal: OwnedFd) {
        keep(&mut self.things().terminals, terminal);
    }

    pub fn has_socket(&self, facts: &FileFacts) -> bool {
        is_kept(&self.things().names, facts)
    }

    pub fn has_terminal(&self, facts: &FileFacts) -> bool {
        is_kept(&self.things().terminals, facts)
    }

    /// Reports whether a socket of this sandbox listens on a port of this machine. The kernel's table is read each time: a
    /// port that was free meanwhile may belong to another program now.
    pub fn serves(&self, port: u16) -> bool {
        let things = self.things();
        if things.servers.is_empty() {
            return false;
        }
        let mut found = false;
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            let Ok(text) = fs::read_to_string(table) else {
                continue;
            };
            for inode in listeners(&text, port) {
                if !things.servers.contains(&inode) {
                    return false;
                }
                found = true;
            }
        }
        found
    }
}

/// Reports whether a file is still in use somewhere.
fn lives(file: &OwnedFd) -> bool {
    system::facts(file).is_ok_and(|facts| facts.links > 0)
}

fn keep(kept: &mut Kept, file: OwnedFd) {
    let Ok(facts) = system::facts(&file) else {
        return;
    };
    if kept.len() >= MAX_KEPT {
        kept.retain(|_, file| lives(file));
    }
    if kept.len() < MAX_KEPT {
        kept.insert((facts.device, facts.inode), file);
    }
}

fn is_kept(kept: &Kept, facts: &FileFacts) -> bool {
    kept.get(&(facts.device, facts.inode)).is_some_and(lives)
}

/// Returns the inodes of the sockets that listen on `port` in the kernel's table of connections.
fn listeners(table: &str, port: u16) -> impl Iterator<Item = u64> {
    const LISTENS: &str = "0A";
    table.lines().skip(1).filter_map(move |line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let matches = u16::from_str_radix(local, 16) == Ok(port) && *fields.get(3)? == LISTENS;
        matches.then(|| fields.get(9)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn only_a_port_that_all_listeners_of_the_sandbox_hold_is_its_own() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0\n\
             1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 7 1 0 100 0\n";
        assert_eq!(listeners(table, 8080).collect::<Vec<_>>(), [4242]);
        assert_eq!(listeners(table, 8081).count(), 0);
        let own = OwnThings::default();
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        assert!(!own.serves(port));
        own.add_server(1);
        assert!(!own.serves(port), "another program listens there");
        let link = fs::read_link(format!("/proc/self/fd/{}", server.as_raw_fd())).unwrap();
        let link = link.to_string_lossy().into_owned();
        let inode = link.trim_start_matches("socket:[").trim_end_matches(']');
        own.add_server(inode.parse().unwrap());
        assert!(own.serves(port));
    }

    #[test]
    fn a_removed_file_is_not_its_own_any_more() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        fs::write(&path, "").unwrap();
        let file = OwnedFd::from(fs::File::open(&path).unwrap());
        let facts = system::facts(&file).unwrap();
        let own = OwnThings::default();
        assert!(!own.has_socket(&facts));
        own.add_socket(file);
        assert!(own.has_socket(&facts));
        fs::remove_file(&path).unwrap();
        assert!(!own.has_socket(&facts));
    }
}
