//! Hosts that do not answer.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, getsockname, listen, socket,
};

/// A port that accepts no connection and whose queue is full: a connection to it is neither made nor refused.
#[derive(Debug)]
pub struct DeafPort {
    number: u16,
    _socket: OwnedFd,
    _queue: Vec<TcpStream>,
}

impl DeafPort {
    /// Opens a port on the loopback interface.
    pub fn open() -> Self {
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None).expect("a socket");
        bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).expect("bind on loopback");
        listen(&socket, Backlog::new(1).expect("a backlog")).expect("listen");
        let name: SockaddrIn = getsockname(socket.as_raw_fd()).expect("a bound socket has a name");
        let number = name.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, number));
        // The queue accepts a few connections; the first that hangs shows that it is full.
        let mut queue = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
            queue.push(stream);
        }
        Self {
            number,
            _socket: socket,
            _queue: queue,
        }
    }

    pub fn number(&self) -> u16 {
        self.number
    }
}
