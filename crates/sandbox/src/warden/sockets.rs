//! Connects, binds and opens sockets for connections on behalf of a caller.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use super::caller::Caller;
use super::walk::{Entry, Found, Last, own_path, start, walk};
use super::{Answer, Answered, Refusal, Warden};
use crate::judge::Change;
use crate::mutation::is_disabled;
use crate::system::{self, Errno};
use crate::text::{c_text, shown};
use crate::{Denial, Loopback, NetworkMode};

/// The longest address that the kernel takes.
const MAX_ADDRESS: u32 = 128;
/// The time that a connection may take before another thread waits for it.
const SHORT_WAIT: libc::timeval = libc::timeval {
    tv_sec: 0,
    tv_usec: 20_000,
};
/// The longest time that a connection may take in all.
const LONG_WAIT: Duration = Duration::from_secs(120);
const POLL_MILLISECONDS: i32 = 100;
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Sockets that programs try as a matter of habit, so that a record would say nothing.
const HABITS: &[&[u8]] = &[
    b"/run/nscd/socket",
    b"/var/run/nscd/socket",
    b"/run/systemd/resolve/io.systemd.Resolve",
    b"/run/systemd/notify",
    b"/run/systemd/journal/dev-log",
    b"/dev/log",
];

/// Explains a socket that the filter does not permit.
pub(super) fn refused_socket(family: i32, kind: i32) -> Refusal {
    let family = match family {
        libc::AF_UNIX => "unix".to_owned(),
        libc::AF_INET => "inet".to_owned(),
        libc::AF_INET6 => "inet6".to_owned(),
        libc::AF_NETLINK => "netlink".to_owned(),
        libc::AF_PACKET => "packet".to_owned(),
        libc::AF_VSOCK => "vsock".to_owned(),
        libc::AF_ALG => "alg".to_owned(),
        libc::AF_BLUETOOTH => "bluetooth".to_owned(),
        libc::AF_TIPC => "tipc".to_owned(),
        libc::AF_CAN => "can".to_owned(),
        libc::AF_XDP => "xdp".to_owned(),
        43 => "smc".to_owned(),
        other => other.to_string(),
    };
    let kind = match kind & 0xf {
        libc::SOCK_STREAM => "stream".to_owned(),
        libc::SOCK_DGRAM => "dgram".to_owned(),
        libc::SOCK_RAW => "raw".to_owned(),
        libc::SOCK_SEQPACKET => "seqpacket".to_owned(),
        other => other.to_string(),
    };
    Refusal::Policy(Denial::Socket { family, kind }, libc::EACCES)
}

/// An address of a caller, copied once.
enum Address {
    /// The end of a connection of datagrams.
    None,
    Internet(SocketAddr),
    /// A path in the file system.
    Path(Vec<u8>),
    /// A name outside of the file system; an empty one is chosen by the kernel.
    Abstract(Vec<u8>),
    Other(i32),
}

impl Address {
    fn parse(bytes: &[u8]) -> Result<Self, Errno> {
        let family = bytes.get(..2).ok_or(libc::EINVAL)?;
        let family = i32::from(u16::from_ne_bytes([family[0], family[1]]));
        let port = || {
            let bytes = bytes.get(2..4)?;
            Some(u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        let address = match family {
            libc::AF_UNSPEC => Some(Self::None),
            libc::AF_INET => bytes.get(..16).and_then(|bytes| {
                let octets: [u8; 4] = bytes[4..8].try_into().ok()?;
                let ip = IpAddr::V4(Ipv4Addr::from(octets));
                Some(Self::Internet(SocketAddr::new(ip, port()?)))
            }),
            libc::AF_INET6 => bytes.get(..24).and_then(|bytes| {
                let octets: [u8; 16] = bytes[8..24].try_into().ok()?;
                let ip = IpAddr::V6(Ipv6Addr::from(octets));
                Some(Self::Internet(SocketAddr::new(ip, port()?)))
            }),
            libc::AF_UNIX => Some(match &bytes[2..] {
                [] => Self::Abstract(Vec::new()),
                [0, name @ ..] => Self::Abstract(name.to_vec()),
                path => {
                    let end = path.iter().position(|&byte| byte == 0);
                    Self::Path(path[..end.unwrap_or(path.len())].to_vec())
                }
            }),
            other => Some(Self::Other(other)),
        };
        address.ok_or(libc::EINVAL)
    }
}

/// Returns an address in the kernel's form.
fn encoded(address: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(28);
    let family = match address {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    bytes.extend((family as u16).to_ne_bytes());
    bytes.extend(address.port().to_be_bytes());
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes.extend(ip.octets());
            bytes.extend([0; 8]);
        }
        IpAddr::V6(ip) => {
            bytes.extend([0; 4]);
            bytes.extend(ip.octets());
            bytes.extend([0; 4]);
        }
    }
    bytes
}

/// Returns the address of a UNIX socket in the kernel's form.
fn encoded_path(path: &[u8]) -> Result<Vec<u8>, Errno> {
    if path.len() > 107 {
        return Err(libc::ENAMETOOLONG);
    }
    let mut bytes = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    bytes.extend_from_slice(path);
    bytes.push(0);
    Ok(bytes)
}

impl Warden {
    fn copy_address(caller: &Caller<'_>, address: u64, length: u32) -> Result<Vec<u8>, Errno> {
        if length > MAX_ADDRESS {
            return Err(libc::EINVAL);
        }
        let bytes = caller.bytes(address, length as usize)?;
        caller.check()?;
        Ok(bytes)
    }

    pub(super) fn connect(
        &self,
        caller: &Caller<'_>,
        number: i32,
        address: u64,
        length: u32,
    ) -> Answered {
        let bytes = Self::copy_address(caller, address, length)?;
        let socket = caller.descriptor(number)?;
        match Address::parse(&bytes)? {
            Address::None => Ok(caller.act(|| system::connect(&socket, &bytes))?.into()),
            Address::Internet(to) => {
                self.permit_connection(to)?;
                let bytes = if bytes.len() > 28 {
                    bytes[..28].to_vec()
                } else {
                    bytes
                };
                self.finish_connection(caller, socket, bytes)
            }
            Address::Path(path) => {
                let base = start(caller, libc::AT_FDCWD, &path)?;
                let found = caller.act(|| walk(caller, base, &path, Last::Follow))?;
                let Found::Entry(Entry {
                    full,
                    present: Some(node),
                    ..
                }) = found
                else {
                    return Err(libc::ENOENT.into());
                };
                if node.facts.kind() != libc::S_IFSOCK {
                    return Err(libc::ECONNREFUSED.into());
                }
                let is_listed =
                    self.rules.network.sockets.iter().any(|place| {
                        std::os::unix::ffi::OsStrExt::as_bytes(place.as_os_str()) == full
                    });
                let facts = node.facts;
                if !is_listed && !is_disabled("unix") && !self.rules.own.has_socket(&facts) {
                    return Err(self.refused_unix(&full));
                }
                let path = own_path(&node.file)?;
                let bytes = encoded_path(path.as_bytes())?;
                // The descriptor must live until another thread has connected.
                self.finish_connection_to(caller, socket, bytes, Some(node.file))
            }
            Address::Abstract(name) => Err(refused_name(&name)),
            Address::Other(_) => Err(libc::EAFNOSUPPORT.into()),
        }
    }

    fn refused_unix(&self, full: &[u8]) -> Refusal {
        if HABITS.contains(&full) {
            return libc::EACCES.into();
        }
        let denial = Denial::Unix {
            path: Some(self.rules.judge.shown(full)),
            name: None,
        };
        Refusal::Policy(denial, libc::EACCES)
    }

    /// Permits a connection over TCP, or one of datagrams where the network is open.
    fn permit_connection(&self, to: SocketAddr) -> Result<(), Refusal> {
        let network = &self.rules.network;
        let is_proxy = network.proxy == Some(to.port())
            && to.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST)
            && network.mode == NetworkMode::Proxy;
        if network.mode == NetworkMode::Open || is_proxy || is_disabled("connect") {
            return Ok(());
        }
        let is_permitted = is_loopback(to.ip())
            && match &network.loopback {
                Loopback::None => false,
                Loopback::All => true,
                Loopback::Own => self.rules.own.serves(to.port()),
                Loopback::Ports(ports) => {
                    ports.contains(&to.port()) || self.rules.own.serves(to.port())
                }
            };
        if is_permitted {
            return Ok(());
        }
        let denial = Denial::Connect {
            address: to.ip().to_string(),
            port: to.port(),
            protocol: None,
        };
        Err(Refusal::Policy(denial, libc::EACCES))
    }

    fn finish_connection(
        &self,
        caller: &Caller<'_>,
        socket: OwnedFd,
        address: Vec<u8>,
    ) -> Answered {
        self.finish_connection_to(caller, socket, address, None)
    }

    /// Connects the caller's own socket. One that does not answer at once is waited for on another thread, so that other
    /// calls of the command are served meanwhile.
    fn finish_connection_to(
        &self,
        caller: &Caller<'_>,
        socket: OwnedFd,
        address: Vec<u8>,
        held: Option<OwnedFd>,
    ) -> Answered {
        let waits = system::status_flags(&socket)? & libc::O_NONBLOCK == 0;
        if !waits {
            return Ok(caller.act(|| system::connect(&socket, &address))?.into());
        }
        let before = system::limit_sending(&socket, SHORT_WAIT)?;
        let connected = caller.act(|| system::connect(&socket, &address));
        system::limit_sending(&socket, before)?;
        match connected {
            Ok(()) => Ok(Answer::Value(0)),
            Err(error @ (libc::EINPROGRESS | libc::EAGAIN)) => {
                let id = caller.id;
                self.later(id, move |listener| {
                    let _held = held;
                    let deadline = Instant::now() + LONG_WAIT;
                    while system::still_waits(listener, id) && Instant::now() < deadline {
                        if error == libc::EINPROGRESS {
                            if system::wait_writable(&socket, POLL_MILLISECONDS) {
                                let level = libc::SOL_SOCKET;
                                return match system::socket_option(&socket, level, libc::SO_ERROR)?
                                {
                                    0 => Ok(Answer::Value(0)),
                                    error => Err(error),
                                };
                            }
                        } else {
                            // The queue of a UNIX socket is full; retrying is the only way to notice a free place.
                            let before = system::limit_sending(&socket, SHORT_WAIT)?;
                            let connected = system::connect(&socket, &address);
                            system::limit_sending(&socket, before)?;
                            match connected {
                                Err(libc::EAGAIN) => std::thread::sleep(RETRY_PAUSE),
                                connected => return connected.map(Answer::from),
                            }
                        }
                    }
                    Err(libc::ETIMEDOUT)
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn bind(
        &self,
        caller: &Caller<'_>,
        number: i32,
        address: u64,
        length: u32,
    ) -> Answered {
        let bytes = Self::copy_address(caller, address, length)?;
        let socket = caller.descriptor(number)?;
        match Address::parse(&bytes)? {
            Address::Internet(asked) => {
                let address = self.server_address(&socket, asked)?;
                caller.act(|| system::bind(&socket, &encoded(address)))?;
                self.rules.own.add_server(system::facts(&socket)?.inode);
                Ok(Answer::Value(0))
            }
            Address::Path(path) => self.bind_path(caller, &socket, &path),
            Address::Abstract(name) => Err(refused_name(&name)),
            // Netlink sockets of the permitted protocol.
            Address::Other(libc::AF_NETLINK) => {
                Ok(caller.act(|| system::bind(&socket, &bytes))?.into())
            }
            Address::None | Address::Other(_) => Err(libc::EAFNOSUPPORT.into()),
        }
    }

    /// Returns the address that a server really gets: one that is meant to be reached from everywhere is reached from this
    /// machine.
    fn server_address(&self, socket: &OwnedFd, asked: SocketAddr) -> Result<SocketAddr, Refusal> {
        let network = &self.rules.network;
        if network.mode == NetworkMode::Open || is_disabled("bind") {
            return Ok(asked);
        }
        let refused = || {
            let denial = Denial::Bind {
                address: asked.ip().to_string(),
                port: asked.port(),
                protocol: None,
            };
            Refusal::Policy(denial, libc::EACCES)
        };
        if network.loopback == Loopback::None {
            return Err(refused());
        }
        let ip = match asked.ip() {
            ip if is_loopback(ip) => ip,
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => loopback_for(socket)?,
            _ => return Err(refused()),
        };
        Ok(SocketAddr::new(ip, asked.port()))
    }

    fn bind_path(&self, caller: &Caller<'_>, socket: &OwnedFd, path: &[u8]) -> Answered {
        let base = start(caller, libc::AT_FDCWD, path)?;
        caller.apply_mask()?;
        caller.act(|| {
            let entry = match walk(caller, base, path, Last::Keep)? {
                Found::Entry(entry) if entry.present.is_none() => entry,
                _ => return Err(libc::EADDRINUSE.into()),
            };
            self.permit(Change::Create, &entry.full, &entry.parent)?;
            // The kernel resolves a relative name in the directory of this thread.
            system::enter(entry.parent.as_raw_fd())?;
            let mut name = b"./".to_vec();
            name.extend_from_slice(&entry.name);
            let bound = encoded_path(&name).and_then(|address| system::bind(socket, &address));
            let left = c_root();
            bound?;
            left?;
            let name = c_text(&entry.name).ok_or(libc::EINVAL)?;
            let flags = libc::O_PATH | libc::O_NOFOLLOW;
            let made = system::open_at(entry.parent.as_raw_fd(), &name, flags, 0)?;
            self.rules.own.add_socket(made);
            Ok(Answer::Value(0))
        })
    }

    pub(super) fn listen(&self, caller: &Caller<'_>, number: i32, backlog: i32) -> Answered {
        let socket = caller.descriptor(number)?;
        let local = system::local_address(&socket)?;
        if let Address::Internet(local) = Address::parse(&local)?
            && self.rules.network.mode != NetworkMode::Open
        {
            if local.port() == 0 {
                // The kernel would choose a port of every address.
                let address = self.server_address(&socket, local)?;
                caller.act(|| system::bind(&socket, &encoded(address)))?;
            } else if !is_loopback(local.ip()) && !is_disabled("bind") {
                return Err(libc::EACCES.into());
            }
            self.rules.own.add_server(system::facts(&socket)?.inode);
        }
        Ok(caller.act(|| system::listen(&socket, backlog))?.into())
    }
}

/// Leaves the directory that a socket was bound in.
fn c_root() -> Result<(), Errno> {
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    let top = system::open_at(libc::AT_FDCWD, c"/", flags, 0)?;
    system::enter(top.as_raw_fd())
}

/// A socket for both families serves 127.0.0.1, where most clients look first.
fn loopback_for(socket: &OwnedFd) -> Result<IpAddr, Errno> {
    let only = system::socket_option(socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY)?;
    Ok(IpAddr::V6(if only != 0 {
        Ipv6Addr::LOCALHOST
    } else {
        Ipv4Addr::LOCALHOST.to_ipv6_mapped()
    }))
}

fn is_loopback(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => {
            ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback())
        }
    }
}

fn refused_name(name: &[u8]) -> Refusal {
    let denial = Denial::Unix {
        path: None,
        name: Some(shown(name)),
    };
    Refusal::Policy(denial, libc::EACCES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        for text in ["127.0.0.1:80", "[::1]:443", "[2001:db8::1]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            let Ok(Address::Internet(read)) = Address::parse(&encoded(address)) else {
                panic!("{text}")
            };
            assert_eq!(read, address);
        }
        assert!(Address::parse(&[2]).is_err());
        assert!(Address::parse(&[2, 0, 0, 80, 127]).is_err());
        assert!(matches!(
            Address::parse(b"\x01\x00\x00x11"),
            Ok(Address::Abstract(name)) if name == b"x11"
        ));
        assert!(matches!(
            Address::parse(b"\x01\x00/run/x\x00rest"),
            Ok(Address::Path(path)) if path == b"/run/x"
        ));
    }

    #[test]
    fn only_loopback_is_loopback() {
        for (text, expected) in [
            ("127.0.0.1", true),
            ("127.255.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("::ffff:10.0.0.1", false),
            ("169.254.169.254", false),
        ] {
            assert_eq!(is_loopback(text.parse().unwrap()), expected, "{text}");
        }
    }
}
