//! Messages to the service manager that started the hub: systemd's protocol of one datagram per state.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

const SOCKET: &str = "NOTIFY_SOCKET";

/// A state of the hub that the service manager waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// The hub accepts calls.
    Ready,
    /// The hub finishes its calls and ends.
    Stopping,
}

/// Reports a state. Without a service manager this does nothing; a manager that cannot be reached notices by itself.
pub fn report(state: ServiceState) {
    if let Some(socket) = std::env::var_os(SOCKET) {
        let _ = send(&socket, state);
    }
}

fn send(socket: &OsString, state: ServiceState) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(std::path::Path::new(std::ffi::OsStr::from_bytes(path)))?,
    };
    let message: &[u8] = match state {
        ServiceState::Ready => b"READY=1",
        ServiceState::Stopping => b"STOPPING=1",
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn states_arrive_at_paths_and_at_abstract_names() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(&path.into_os_string(), ServiceState::Ready).unwrap();
        assert_eq!(received(&socket), "READY=1");
        let name = format!("pinion-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        send(&format!("@{name}").into(), ServiceState::Stopping).unwrap();
        assert_eq!(received(&socket), "STOPPING=1");
        assert!(send(&"/nowhere/notify".into(), ServiceState::Ready).is_err());
    }
}
