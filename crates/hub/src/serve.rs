//! Serving an opened hub on a socket: listening, the work that runs meanwhile, and an orderly stop.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use pinion_access::{Mode as AuthMode, TokenStore};
use pinion_clip::logs::Level;
use pinion_connect::{Origins, Server, ServerOptions, Tls};
use pinion_status::{Code, Failure};
use tokio::net::TcpListener;

use crate::service_manager::{self, ServiceState};
use crate::{Hub, PREFIXES};

/// Time that calls in flight have to finish when the hub stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// Interval at which the hub writes the last use of tokens.
const LAST_USE_INTERVAL: Duration = Duration::from_secs(300);

/// The address of a hub, and the callers it answers there.
#[derive(Debug, Clone)]
pub struct Listening {
    /// The address; the port may be 0 for any that is free.
    pub address: SocketAddr,
    pub tls: Option<Tls>,
    /// Web pages that may call.
    pub origins: Origins,
}

/// The socket of a hub that is not served yet. Connections wait.
#[derive(Debug)]
pub struct HubListener {
    listening: Listening,
    listener: TcpListener,
    address: SocketAddr,
}

impl Listening {
    /// Returns the reason why callers on the network would be unprotected, if there is one. `accepts_plain_text` is
    /// true if the user accepts that tokens are sent without TLS.
    pub fn exposure(&self, auth: AuthMode, accepts_plain_text: bool) -> Option<String> {
        let bind = self.address.ip();
        if bind.is_loopback() {
            None
        } else if auth == AuthMode::OpenLocal {
            Some(format!(
                "--auth none lets every user of this machine do everything; it works on a loopback address, not on {bind}."
            ))
        } else if self.tls.is_none() && !accepts_plain_text {
            Some(format!(
                "on {bind} tokens would go over the network in plain text. Add --tls-cert and --tls-key, or --insecure-bind if something in front of the hub speaks TLS."
            ))
        } else {
            None
        }
    }

    /// Opens the socket.
    pub async fn bind(self) -> Result<HubListener, Failure> {
        let address = self.address;
        let bound = TcpListener::bind(address).await;
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::AddrInUse => {
                    " Another program listens there; --port 0 takes any that is free."
                }
                _ => "",
            };
            let message = format!("cannot listen on {address}: {error}.{hint}");
            Failure::new(Code::Unavailable, message)
        })?;
        Ok(HubListener {
            listening: self,
            listener,
            address,
        })
    }

    /// Returns the host names of the allowed origins.
    fn origin_hosts(&self) -> Vec<String> {
        let Origins::Listed(origins) = &self.origins else {
            return Vec::new();
        };
        let authorities = origins.iter().filter_map(|origin| origin.split_once("://"));
        let hosts = authorities.map(|(_, authority)| match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => authority,
        });
        hosts.map(str::to_owned).collect()
    }
}

impl HubListener {
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the hub's URL for programs on this machine.
    pub fn url(&self) -> String {
        let host = match self.listening.address.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        let scheme = match self.listening.tls {
            Some(_) => "https",
            None => "http",
        };
        format!("{scheme}://{}", SocketAddr::new(host, self.port()))
    }

    /// Serves the hub until `stop` completes. Calls in flight then have two seconds to finish, less if `stop_now`
    /// completes, which is not polled before.
    pub async fn serve(
        self,
        hub: &Arc<Hub>,
        stop: impl Future<Output = ()>,
        stop_now: impl Future<Output = ()>,
    ) {
        let server = Server::new(hub.clone(), self.server_options());
        let stop = async {
            stop.await;
            hub.begin_stop();
            service_manager::report(ServiceState::Stopping);
            // Endless streams would otherwise use up the grace period of calls.
            hub.disconnect_all();
        };
        let grace_ended = async {
            tokio::select! {
                () = tokio::time::sleep(SHUTDOWN_GRACE) => {}
                () = stop_now => {}
            }
        };
        tokio::select! {
            () = server.run_until(self.listener, stop, grace_ended) => {}
            () = write_last_use_regularly(hub.gate().store()) => {}
        }
    }

    fn server_options(&self) -> ServerOptions {
        let mut options = ServerOptions::at(PREFIXES);
        options.origins = self.listening.origins.clone();
        options.tls.clone_from(&self.listening.tls);
        if !self.address.ip().is_loopback() {
            return options;
        }
        let mut names = self.listening.origin_hosts();
        names.push(self.listening.address.ip().to_string());
        options.loopback_and(names)
    }
}

/// Returns the web pages that these origins allow to call: every one with `*`.
pub fn allowed_origins<'a>(origins: impl IntoIterator<Item = &'a str>) -> Origins {
    let mut listed = Vec::new();
    for origin in origins {
        if origin == "*" {
            return Origins::Any;
        }
        // The form that browsers send.
        listed.push(origin.trim().trim_end_matches('/').to_ascii_lowercase());
    }
    Origins::Listed(listed)
}

async fn write_last_use_regularly(tokens: &TokenStore) {
    loop {
        tokio::time::sleep(LAST_USE_INTERVAL).await;
        let tokens = tokens.clone();
        // A failed write is tried again; at the end of the hub it is reported.
        let _ = tokio::task::spawn_blocking(move || tokens.write_last_use()).await;
    }
}

/// Stops the clips of a hub, writes the last use of its tokens and closes its log.
pub async fn shut_down(hub: &Hub) {
    if let Some(runtime) = hub.runtime() {
        runtime.shut_down().await;
    }
    let tokens = hub.gate().store().clone();
    let written = tokio::task::spawn_blocking(move || tokens.write_last_use()).await;
    if let Ok(Err(failure)) = written {
        let message = format!("the last use of tokens was not written: {failure}");
        hub.write_log(Level::Warn, &message);
    }
    hub.log().close();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_have_the_form_that_browsers_send() {
        let listed = vec!["https://example.org".to_owned()];
        assert_eq!(
            allowed_origins([" https://Example.org/ "]),
            Origins::Listed(listed)
        );
        assert_eq!(allowed_origins(["https://example.org", "*"]), Origins::Any);
    }

    #[test]
    fn a_hub_on_the_network_needs_tokens_and_tls() {
        let listening = |address: &str| Listening {
            address: address.parse().unwrap(),
            tls: None,
            origins: Origins::default(),
        };
        let (local, open) = (listening("127.0.0.1:0"), listening("0.0.0.0:0"));
        assert_eq!(local.exposure(AuthMode::OpenLocal, false), None);
        assert!(open.exposure(AuthMode::OpenLocal, true).is_some());
        assert!(open.exposure(AuthMode::Secured, false).is_some());
        assert_eq!(open.exposure(AuthMode::Secured, true), None);
    }
}
