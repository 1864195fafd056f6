//! Real NATS servers on loopback, alone or as a cluster, which tests kill, pause and start again.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// The variable with the path of `nats-server`.
pub const PROGRAM: &str = "PINION_TEST_NATS";
const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Servers that end with this value.
#[derive(Debug)]
pub struct NatsServers {
    directory: TempDir,
    servers: Vec<NatsServer>,
}

#[derive(Debug)]
struct NatsServer {
    port: u16,
    monitor: u16,
    config: PathBuf,
    process: Option<Child>,
}

/// Returns the path of `nats-server`.
pub fn program() -> PathBuf {
    std::env::var_os(PROGRAM).map_or_else(|| "nats-server".into(), PathBuf::from)
}

impl NatsServers {
    /// Starts one server.
    pub fn one() -> Self {
        Self::start(1, "")
    }

    /// Starts three servers that store everything three times.
    pub fn three() -> Self {
        Self::start(3, "")
    }

    /// Starts `count` servers with further lines of configuration, and waits until they accept writes.
    pub fn start(count: usize, further: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory for servers");
        let ports = free_ports(3 * count);
        let routes: Vec<String> = (0..count)
            .map(|at| format!("\"nats://127.0.0.1:{}\"", ports[3 * at + 2]))
            .collect();
        let mut servers = Vec::new();
        for at in 0..count {
            let (port, monitor, peers) = (ports[3 * at], ports[3 * at + 1], ports[3 * at + 2]);
            let store = directory.path().join(format!("store-{at}"));
            let mut text = format!(
                "server_name: n{at}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\n\
                 jetstream {{ store_dir: {store:?}, max_file: 1GB }}\nping_interval: 10s\nping_max: 2\n{further}\n"
            );
            if count > 1 {
                text += &format!(
                    "cluster {{ name: tests, listen: \"127.0.0.1:{peers}\", routes: [{}] }}\n",
                    routes.join(", ")
                );
            }
            let config = directory.path().join(format!("nats-{at}.conf"));
            fs::write(&config, text).expect("a configuration");
            servers.push(NatsServer {
                port,
                monitor,
                config,
                process: None,
            });
        }
        let mut started = Self { directory, servers };
        for at in 0..count {
            started.restart(at);
        }
        for at in 0..count {
            started.wait_until_ready(at);
        }
        started
    }

    /// Returns the addresses of all servers as `--cluster` reads them.
    pub fn urls(&self) -> String {
        let urls = self
            .servers
            .iter()
            .map(|it| format!("nats://127.0.0.1:{}", it.port));
        urls.collect::<Vec<_>>().join(",")
    }

    /// Returns the address of one server.
    pub fn url(&self, at: usize) -> String {
        format!("nats://127.0.0.1:{}", self.servers[at].port)
    }

    /// Returns the port of a server's clients.
    pub fn port(&self, at: usize) -> u16 {
        self.servers[at].port
    }

    /// Returns the address of a server's monitoring pages.
    pub fn monitor(&self, at: usize) -> String {
        format!("http://127.0.0.1:{}", self.servers[at].monitor)
    }

    /// Starts a server that does not run, with what it stored.
    pub fn restart(&mut self, at: usize) {
        let log = self.directory.path().join(format!("log-{at}"));
        let log = fs::File::create(log).expect("a log");
        let server = &mut self.servers[at];
        let mut command = Command::new(program());
        command
            .arg("-c")
            .arg(&server.config)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle of the log"))
            .stderr(log);
        server.process = Some(command.spawn().unwrap_or_else(|error| {
            panic!(
                "{}: {error}; {PROGRAM} names nats-server",
                program().display()
            )
        }));
    }

    /// Ends a server at once.
    pub fn kill(&mut self, at: usize) {
        if let Some(mut process) = self.servers[at].process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Pauses a server.
    pub fn stop(&self, at: usize) {
        self.signal(at, Signal::SIGSTOP);
    }

    /// Lets a paused server continue.
    pub fn go_on(&self, at: usize) {
        self.signal(at, Signal::SIGCONT);
    }

    /// Announces the end of a server to its clients, which it disconnects after ten seconds.
    pub fn lame_duck(&self, at: usize) {
        self.signal(at, Signal::SIGUSR2);
    }

    fn signal(&self, at: usize, signal: Signal) {
        if let Some(process) = &self.servers[at].process {
            let id = i32::try_from(process.id()).expect("a process id");
            kill(Pid::from_raw(id), signal).expect("a signal to a server");
        }
    }

    /// Returns the index of the server that leads a stream.
    pub fn leader_of(&self, stream: &str) -> Option<usize> {
        (0..self.servers.len()).find_map(|at| {
            let page = self.page(at, "/jsz?streams=true&accounts=true")?;
            let page: serde_json::Value = serde_json::from_str(&page).ok()?;
            let accounts = page["account_details"].as_array()?;
            let mut streams = accounts
                .iter()
                .flat_map(|it| it["stream_detail"].as_array())
                .flatten();
            let found = streams.find(|it| it["name"] == stream)?;
            let leader = found["cluster"]["leader"].as_str()?;
            leader.strip_prefix('n')?.parse().ok()
        })
    }

    /// Returns a page of a server's monitoring.
    pub fn page(&self, at: usize, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.servers[at].monitor)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if !line.contains(" 200 ") {
            return None;
        }
        let mut text = String::new();
        reader.read_to_string(&mut text).ok()?;
        text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    }

    /// Waits until a server is healthy: JetStream accepts requests.
    pub fn wait_until_ready(&self, at: usize) {
        let until = Instant::now() + START_TIMEOUT;
        while self
            .page(at, "/healthz")
            .is_none_or(|page| !page.contains("ok"))
        {
            if Instant::now() > until {
                let log = self.directory.path().join(format!("log-{at}"));
                let log = fs::read_to_string(log).unwrap_or_default();
                panic!("nats-server {at} is not ready:\n{log}");
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for NatsServers {
    fn drop(&mut self) {
        for at in 0..self.servers.len() {
            self.kill(at);
        }
    }
}

/// Returns ports that were free a moment ago.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind(("127.0.0.1", 0)).expect("a free port"))
        .collect();
    let ports = listeners
        .iter()
        .map(|it| it.local_addr().expect("an address").port());
    ports.collect()
}
