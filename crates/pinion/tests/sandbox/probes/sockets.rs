//! The network and sockets of other programs.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener, UnixStream};
use std::time::Duration;

use super::{Places, must_fail, must_work};
use crate::calls::{at, call, refused, text};

pub fn datagrams(_: &Places) -> Result<(), String> {
    must_fail("UDP", UdpSocket::bind("127.0.0.1:0"))?;
    must_fail("UDP of IPv6", UdpSocket::bind("[::1]:0"))?;
    must_fail("UNIX datagrams", UnixDatagram::unbound())?;
    must_fail("a pair of them", UnixDatagram::pair())
}

pub fn odd_sockets(_: &Places) -> Result<(), String> {
    let (stream, datagram, raw) = (1, 2, 3);
    for (what, family, kind, protocol) in [
        ("raw", 2, raw, 1),
        ("ping", 2, datagram, 1),
        ("MPTCP", 2, stream, 262),
        ("SCTP", 2, stream, 132),
        ("SMC", 43, stream, 0),
        ("UDP-Lite", 2, datagram, 136),
        ("packet", 17, raw, 0x300),
        ("packet by its old name", 2, 10, 0x300),
        ("XDP", 44, raw, 0),
        ("vsock", 40, stream, 0),
        ("ALG", 38, 5, 0),
        ("Bluetooth", 31, raw, 1),
        ("TIPC", 30, stream, 0),
        ("CAN", 29, raw, 1),
        ("netlink audit", 16, raw, 9),
        ("netlink of the kernel", 16, raw, 15),
        ("netlink generic", 16, raw, 16),
    ] {
        refused(
            what,
            libc::SYS_socket,
            [family, kind, protocol, 0, 0, 0],
            libc::EACCES,
        )?;
    }
    Ok(())
}

fn connect(address: &str) -> std::io::Result<TcpStream> {
    let address: SocketAddr = address.parse().map_err(std::io::Error::other)?;
    TcpStream::connect_timeout(&address, Duration::from_secs(10))
}

/// The port of a server outside is in a file, where the test wrote it, or the attempt uses one that is never served.
pub fn tcp_elsewhere(_: &Places) -> Result<(), String> {
    let port = fs::read_to_string("port").unwrap_or_else(|_| "9".into());
    for host in [
        "127.0.0.1",
        "127.0.0.2",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "203.0.113.7",
        "10.0.0.1",
    ] {
        let error = match connect(&format!("{host}:{port}")) {
            Ok(_) => return Err(format!("{host} was connected to")),
            Err(error) => error,
        };
        if error.raw_os_error() != Some(libc::EACCES) {
            return Err(format!("{host}: {error}"));
        }
    }
    Ok(())
}

pub fn fast_open(_: &Places) -> Result<(), String> {
    let socket = call(libc::SYS_socket, [2, 1, 0, 0, 0, 0]).map_err(|error| error.to_string())?;
    let (socket, data) = (socket as usize, text("x"));
    let mut address = vec![2_u8, 0, 0, 9, 127, 0, 0, 1];
    address.extend([0; 8]);
    let flags = libc::MSG_FASTOPEN as usize;
    let arguments = [socket, at(&data), 1, flags, address.as_ptr() as usize, 16];
    refused("sendto", libc::SYS_sendto, arguments, libc::EPERM)?;
    let message = [0_u64; 16];
    let message = message.as_ptr() as usize;
    refused(
        "sendmsg",
        libc::SYS_sendmsg,
        [socket, message, flags, 0, 0, 0],
        libc::EPERM,
    )?;
    refused(
        "sendmmsg",
        libc::SYS_sendmmsg,
        [socket, message, 1, flags, 0, 0],
        libc::EPERM,
    )
}

/// `../outside/server` belongs to a program outside.
pub fn unix_sockets(places: &Places) -> Result<(), String> {
    let path = places.outside.join("server");
    must_fail("a server outside", UnixStream::connect(&path))?;
    must_fail(
        "by a relative name",
        UnixStream::connect("../outside/server"),
    )?;
    must_work("link", symlink(&path, "to-server"))?;
    must_fail("by a link", UnixStream::connect("to-server"))?;
    must_fail(
        "binding outside",
        UnixListener::bind(places.outside.join("dir/socket")),
    )?;
    must_fail("a protected name", UnixListener::bind(".pi"))?;
    let name = UnixAddress::from_abstract_name(b"pinion-test");
    let name = must_work("an abstract name", name)?;
    must_fail("binding an abstract name", UnixListener::bind_addr(&name))?;
    must_fail("an abstract name", UnixStream::connect_addr(&name))
}

fn local(listener: &TcpListener) -> Result<SocketAddr, String> {
    must_work("local address", listener.local_addr())
}

pub fn server_of_everyone(_: &Places) -> Result<(), String> {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let listener = must_work(address, TcpListener::bind(address))?;
        let ip = local(&listener)?.ip().to_canonical();
        if !ip.is_loopback() {
            return Err(format!("{address} became {ip}"));
        }
    }
    must_fail("another address", TcpListener::bind("203.0.113.7:0"))?;
    // A socket that listens without an address gets every one of the machine.
    let socket = call(libc::SYS_socket, [2, 1, 0, 0, 0, 0]).map_err(|error| error.to_string())?;
    call(libc::SYS_listen, [socket as usize, 1, 0, 0, 0, 0])
        .map_err(|error| format!("listen: {error}"))?;
    let mut address = [0_u8; 16];
    let mut length = 16_u32;
    let (to, size) = (address.as_mut_ptr() as usize, &raw mut length as usize);
    call(libc::SYS_getsockname, [socket as usize, to, size, 0, 0, 0])
        .map_err(|error| format!("getsockname: {error}"))?;
    let ip = Ipv4Addr::new(address[4], address[5], address[6], address[7]);
    match ip.is_loopback() {
        true => Ok(()),
        false => Err(format!("an unbound socket listens on {ip}")),
    }
}

/// Servers of the sandbox work, also when they ask for every address.
pub fn own_servers(_: &Places) -> Result<(), String> {
    for address in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
        let listener = must_work(address, TcpListener::bind(address))?;
        let port = local(&listener)?.port();
        let mut client = must_work("connecting", TcpStream::connect(("127.0.0.1", port)))?;
        let (mut server, _) = must_work("accepting", listener.accept())?;
        must_work("sending", server.write_all(b"hello"))?;
        drop(server);
        let mut text = String::new();
        must_work("reading", client.read_to_string(&mut text))?;
        if text != "hello" {
            return Err(format!("read {text:?}"));
        }
    }
    let listener = must_work("a UNIX server", UnixListener::bind("socket"))?;
    let client = must_work("its client", UnixStream::connect("./socket"))?;
    must_work("accepting", listener.accept())?;
    if client.as_raw_fd() < 0 {
        return Err("no client".into());
    }
    must_work("a pair", UnixStream::pair()).map(drop)
}
