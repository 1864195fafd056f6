//! Sockets and name lookups, for `node:net`, `node:http` and `node:dns`.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use rquickjs::prelude::{Async, Func};
use rquickjs::{Ctx, Object};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use super::bytes::Bytes;
use super::syscall_error::SyscallError;
use crate::script::Host;

const READ_SIZE: usize = 64 * 1024;

type Reader = Box<dyn AsyncRead + Unpin>;
type Writer = Box<dyn AsyncWrite + Unpin>;

/// A connection. A half is absent while an operation uses it.
struct Connection {
    reader: RefCell<Option<Reader>>,
    writer: tokio::sync::Mutex<Option<Writer>>,
    closed: CancellationToken,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

struct Server {
    listener: Listener,
    closed: CancellationToken,
}

#[derive(Default)]
struct Sockets {
    next: Cell<u32>,
    connections: RefCell<HashMap<u32, Rc<Connection>>>,
    servers: RefCell<HashMap<u32, Rc<Server>>>,
}

/// The id of a connection, then its local and its remote address.
type Opened = (u32, Option<SocketAddr>, Option<SocketAddr>);

impl Sockets {
    fn id(&self) -> u32 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    fn tcp(&self, stream: TcpStream, closed: &CancellationToken) -> Opened {
        // Scripts make small writes, and Nagle's delay does not help those.
        let _ = stream.set_nodelay(true);
        let addresses = (stream.local_addr().ok(), stream.peer_addr().ok());
        let (reader, writer) = stream.into_split();
        let id = self.add(Box::new(reader), Box::new(writer), closed);
        (id, addresses.0, addresses.1)
    }

    fn unix(&self, stream: UnixStream, closed: &CancellationToken) -> Opened {
        let (reader, writer) = stream.into_split();
        let id = self.add(Box::new(reader), Box::new(writer), closed);
        (id, None, None)
    }

    fn add(&self, reader: Reader, writer: Writer, closed: &CancellationToken) -> u32 {
        let id = self.id();
        let connection = Connection {
            reader: RefCell::new(Some(reader)),
            writer: tokio::sync::Mutex::new(Some(writer)),
            closed: closed.child_token(),
        };
        self.connections
            .borrow_mut()
            .insert(id, Rc::new(connection));
        id
    }

    fn connection(&self, id: u32) -> Option<Rc<Connection>> {
        self.connections.borrow().get(&id).cloned()
    }
}

impl Connection {
    async fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let Some(mut reader) = self.reader.take() else {
            return Ok(None);
        };
        let mut piece = vec![0; READ_SIZE];
        let count = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Ok(None),
            count = reader.read(&mut piece) => count?,
        };
        if count == 0 {
            return Ok(None);
        }
        piece.truncate(count);
        self.reader.replace(Some(reader));
        Ok(Some(piece))
    }

    async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        let Some(writer) = writer.as_mut() else {
            return Err(io::Error::from_raw_os_error(libc::EPIPE));
        };
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
            written = writer.write_all(bytes) => written,
        }
    }

    async fn shut(&self) {
        if let Some(mut writer) = self.writer.lock().await.take() {
            // The other side may have closed the connection already, which has the same effect.
            let _ = writer.shutdown().await;
        }
    }
}

/// Returns `[id, [address, port] | null, [address, port] | null]` as JSON.
fn opened_json((id, local, remote): Opened) -> String {
    let shown = |address: Option<SocketAddr>| {
        address.map(|address| (address.ip().to_string(), address.port()))
    };
    serde_json::json!([id, shown(local), shown(remote)]).to_string()
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> rquickjs::Result<()> {
    let group = super::group(ctx, ops, "net")?;
    let sockets = Rc::new(Sockets::default());
    let closed = host.closed().clone();
    connecting(&group, &sockets, &closed)?;
    serving(&group, &sockets, &closed)?;
    transferring(&group, &sockets)?;
    group.set(
        "lookup",
        Func::from(Async(|ctx: Ctx<'js>, name: String| async move {
            match tokio::net::lookup_host((name.as_str(), 0)).await {
                Ok(found) => Ok(found
                    .map(|found| found.ip().to_string())
                    .collect::<Vec<_>>()),
                Err(error) => Err(SyscallError::new(error, "getaddrinfo").throw(&ctx)),
            }
        })),
    )
}

fn connecting<'js>(
    group: &Object<'js>,
    sockets: &Rc<Sockets>,
    closed: &CancellationToken,
) -> rquickjs::Result<()> {
    let (table, token) = (sockets.clone(), closed.clone());
    group.set(
        "connect",
        Func::from(Async(move |ctx: Ctx<'js>, name: String, port: u16| {
            let (table, token) = (table.clone(), token.clone());
            async move {
                match TcpStream::connect((name.as_str(), port)).await {
                    Ok(stream) => Ok(opened_json(table.tcp(stream, &token))),
                    Err(error) => Err(SyscallError::new(error, "connect").throw(&ctx)),
                }
            }
        })),
    )?;
    let (table, token) = (sockets.clone(), closed.clone());
    group.set(
        "connectPath",
        Func::from(Async(move |ctx: Ctx<'js>, path: String| {
            let (table, token) = (table.clone(), token.clone());
            async move {
                match UnixStream::connect(&path).await {
                    Ok(stream) => Ok(opened_json(table.unix(stream, &token))),
                    Err(error) => Err(SyscallError::new(error, "connect").at(path).throw(&ctx)),
                }
            }
        })),
    )
}

fn serving<'js>(
    group: &Object<'js>,
    sockets: &Rc<Sockets>,
    closed: &CancellationToken,
) -> rquickjs::Result<()> {
    let (table, token) = (sockets.clone(), closed.clone());
    group.set(
        "listen",
        Func::from(Async(move |ctx: Ctx<'js>, name: String, port: u16| {
            let (table, token) = (table.clone(), token.clone());
            async move {
                let fail = |error: io::Error| SyscallError::new(error, "listen").throw(&ctx);
                let listener = TcpListener::bind((name.as_str(), port))
                    .await
                    .map_err(fail)?;
                let address = listener.local_addr().map_err(fail)?;
                let id = table.serve(Listener::Tcp(listener), &token);
                rquickjs::Result::Ok(opened_json((id, Some(address), None)))
            }
        })),
    )?;
    let (table, token) = (sockets.clone(), closed.clone());
    group.set(
        "listenPath",
        Func::from(Async(move |ctx: Ctx<'js>, path: String| {
            let (table, token) = (table.clone(), token.clone());
            async move {
                let listener = UnixListener::bind(&path)
                    .map_err(|error| SyscallError::new(error, "listen").at(path).throw(&ctx))?;
                let id = table.serve(Listener::Unix(listener), &token);
                rquickjs::Result::Ok(opened_json((id, None, None)))
            }
        })),
    )?;
    let (table, token) = (sockets.clone(), closed.clone());
    group.set(
        "accept",
        Func::from(Async(move |ctx: Ctx<'js>, id: u32| {
            let (table, token) = (table.clone(), token.clone());
            async move {
                let server = table.servers.borrow().get(&id).cloned();
                let Some(server) = server else {
                    return Ok(None);
                };
                let accepted = tokio::select! {
                    biased;
                    () = server.closed.cancelled() => return Ok(None),
                    accepted = server.accept(&table, &token) => accepted,
                };
                match accepted {
                    Ok(opened) => Ok(Some(opened_json(opened))),
                    Err(error) => Err(SyscallError::new(error, "accept").throw(&ctx)),
                }
            }
        })),
    )?;
    let table = sockets.clone();
    group.set(
        "closeServer",
        Func::from(move |id: u32| {
            if let Some(server) = table.servers.borrow_mut().remove(&id) {
                server.closed.cancel();
            }
        }),
    )
}

impl Sockets {
    fn serve(&self, listener: Listener, closed: &CancellationToken) -> u32 {
        let id = self.id();
        let server = Server {
            listener,
            closed: closed.child_token(),
        };
        self.servers.borrow_mut().insert(id, Rc::new(server));
        id
    }
}

impl Server {
    async fn accept(&self, sockets: &Sockets, closed: &CancellationToken) -> io::Result<Opened> {
        Ok(match &self.listener {
            Listener::Tcp(listener) => sockets.tcp(listener.accept().await?.0, closed),
            Listener::Unix(listener) => sockets.unix(listener.accept().await?.0, closed),
        })
    }
}

fn transferring<'js>(group: &Object<'js>, sockets: &Rc<Sockets>) -> rquickjs::Result<()> {
    let table = sockets.clone();
    group.set(
        "read",
        Func::from(Async(move |ctx: Ctx<'js>, id: u32| {
            let connection = table.connection(id);
            async move {
                let Some(connection) = connection else {
                    return Ok(None);
                };
                match connection.read().await {
                    Ok(piece) => Ok(piece.map(Bytes)),
                    Err(error) => Err(SyscallError::new(error, "read").throw(&ctx)),
                }
            }
        })),
    )?;
    let table = sockets.clone();
    group.set(
        "write",
        Func::from(Async(move |ctx: Ctx<'js>, id: u32, bytes: Bytes| {
            let connection = table.connection(id);
            async move {
                let written = match connection {
                    Some(connection) => connection.write(&bytes.0).await,
                    None => Err(io::Error::from_raw_os_error(libc::EPIPE)),
                };
                written.map_err(|error| SyscallError::new(error, "write").throw(&ctx))
            }
        })),
    )?;
    let table = sockets.clone();
    group.set(
        "shutdown",
        Func::from(Async(move |id: u32| {
            let connection = table.connection(id);
            async move {
                if let Some(connection) = connection {
                    connection.shut().await;
                }
            }
        })),
    )?;
    let table = sockets.clone();
    group.set(
        "close",
        Func::from(move |id: u32| {
            if let Some(connection) = table.connections.borrow_mut().remove(&id) {
                connection.closed.cancel();
            }
        }),
    )
}
