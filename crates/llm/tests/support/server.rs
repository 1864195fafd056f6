//! A model server on loopback that sends scripted replies, piece by piece.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The reply to one request.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// Written one after the other, each by itself.
    pub pieces: Vec<Vec<u8>>,
    pub ending: Ending,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ending {
    /// The body ends regularly.
    #[default]
    Complete,
    /// Sends no more, and leaves the connection open, until the client hangs up.
    KeepOpen,
    /// The connection breaks in the middle of the body.
    Broken,
    /// The connection closes before any header.
    CloseBeforeHeaders,
    /// Repeats the last piece, as fast as it is read.
    Endless,
    /// Sends not even headers, until the client hangs up.
    Silent,
}

impl Reply {
    pub fn new(status: u16, body: &str) -> Self {
        Self {
            status,
            pieces: vec![body.as_bytes().to_vec()],
            ..Self::default()
        }
    }

    pub fn stream(pieces: &[&[u8]]) -> Self {
        let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
        Self {
            status: 200,
            pieces,
            ..Self::default()
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }
}

/// Sends the replies in order, and repeats the last one.
pub struct Server {
    pub base: String,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    hung_up: Receiver<()>,
}

impl Server {
    pub fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (sender, hung_up) = channel(1024);
        let (seen, counted) = (requests.clone(), connections.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                counted.fetch_add(1, Ordering::SeqCst);
                let (replies, seen, sender) = (replies.clone(), seen.clone(), sender.clone());
                std::thread::spawn(move || serve(stream, &replies, &seen, &sender));
            }
        });
        Self {
            base,
            requests,
            connections,
            hung_up,
        }
    }

    /// The requests so far, headers and body.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits for the first request.
    pub fn requested(&self) -> impl Future<Output = ()> + Send + 'static {
        let requests = self.requests.clone();
        async move {
            while requests.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Waits until a client hung up on an open answer.
    pub async fn client_hung_up(&mut self) -> bool {
        tokio::time::timeout(Duration::from_secs(20), self.hung_up.recv())
            .await
            .is_ok()
    }
}

fn serve(stream: TcpStream, replies: &[Reply], seen: &Mutex<Vec<String>>, hung_up: &Sender<()>) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read_request(&mut reader) {
        let number = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            seen.len() - 1
        };
        let reply = &replies[number.min(replies.len() - 1)];
        if answer(&stream, &mut reader, reply, hung_up).is_none() {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut request = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        request.push_str(&line);
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.push_str(&String::from_utf8(body).unwrap());
    Some(request)
}

/// `None` when the connection is over.
fn answer(
    mut stream: &TcpStream,
    reader: &mut BufReader<TcpStream>,
    reply: &Reply,
    hung_up: &Sender<()>,
) -> Option<()> {
    let mut wait_for_hang_up = || {
        let mut rest = Vec::new();
        let _ = reader.read_to_end(&mut rest);
        let _ = hung_up.try_send(());
    };
    match reply.ending {
        Ending::CloseBeforeHeaders => return None,
        Ending::Silent => {
            wait_for_hang_up();
            return None;
        }
        _ => {}
    }
    let mut head = format!(
        "HTTP/1.1 {} Status\r\ntransfer-encoding: chunked\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).ok()?;
    for (number, piece) in reply.pieces.iter().enumerate() {
        if number > 0 && reply.pieces.len() < 100 {
            // Long enough for the client to read each piece by itself.
            std::thread::sleep(Duration::from_millis(1));
        }
        if !piece.is_empty() {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            stream.write_all(&chunk).ok()?;
        }
    }
    match reply.ending {
        Ending::Complete => stream.write_all(b"0\r\n\r\n").ok(),
        Ending::Endless => {
            let piece = reply.pieces.last()?;
            let head = format!("{:x}\r\n", piece.len());
            let chunk = [head.as_bytes(), piece, b"\r\n"].concat().repeat(100);
            while stream.write_all(&chunk).is_ok() {}
            None
        }
        Ending::KeepOpen => {
            wait_for_hang_up();
            None
        }
        _ => None,
    }
}
