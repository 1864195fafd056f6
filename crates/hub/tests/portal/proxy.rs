//! A proxy between browser and hub whose connections can be cut.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Passes bytes on until it is cut. Its thread ends with the test.
#[derive(Clone)]
pub struct Proxy {
    pub address: SocketAddr,
    /// The connections; `None` while the proxy is cut.
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Proxy {
    pub fn to(hub: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let proxy = Self { address, open };
        let shared = proxy.clone();
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let mut open = shared.open.lock().unwrap();
                let Some(connections) = open.as_mut() else {
                    continue;
                };
                let far = TcpStream::connect(hub).unwrap();
                for (from, to) in [(&near, &far), (&far, &near)] {
                    pass_on(from.try_clone().unwrap(), to.try_clone().unwrap());
                    connections.push(from.try_clone().unwrap());
                }
            }
        });
        proxy
    }

    pub fn cut(&self) {
        for connection in self.open.lock().unwrap().take().into_iter().flatten() {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    pub fn restore(&self) {
        *self.open.lock().unwrap() = Some(Vec::new());
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}
