//! The addresses of a cluster's servers, as a person names them.

use std::fmt;

use pinion_status::Failure;

const DEFAULT_PORT: u16 = 4222;

/// The encryption of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// `nats://`: TLS only if the server demands it.
    IfDemanded,
    /// `tls://`: TLS in any case.
    Always,
}

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub host: String,
    pub port: u16,
    pub encryption: Encryption,
}

impl Server {
    /// Returns the address as the client library reads it.
    pub fn url(&self) -> String {
        let scheme = match self.encryption {
            Encryption::IfDemanded => "nats",
            Encryption::Always => "tls",
        };
        if self.host.contains(':') {
            format!("{scheme}://[{}]:{}", self.host, self.port)
        } else {
            format!("{scheme}://{}:{}", self.host, self.port)
        }
    }

    /// Reports whether the address is one of this machine.
    pub fn is_loopback(&self) -> bool {
        let is_address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || is_address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.url())
    }
}

/// The addresses of `--cluster` or `PINION_CLUSTER`, and the name and password in the first that has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerList {
    pub servers: Vec<Server>,
    pub login: Option<Login>,
}

/// A name and a password of an address.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl ServerList {
    /// Parses addresses that commas separate: `nats://10.0.0.1:4222,nats://10.0.0.2`. The scheme may be missing.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut servers = Vec::new();
        let mut login = None;
        for part in text.split(',').map(str::trim) {
            let (server, its_login) = parse_one(part)?;
            if !servers.contains(&server) {
                servers.push(server);
            }
            login = login.or(its_login);
        }
        Ok(Self { servers, login })
    }
}

fn parse_one(text: &str) -> Result<(Server, Option<Login>), Failure> {
    // The text may contain a password, which no message repeats.
    let shown = text.rsplit_once('@').map_or(text, |(_, host)| host);
    let wrong = |why: &str| {
        Failure::invalid(format!(
            "{shown:?} is not the address of a NATS server: {why}; write nats://10.0.0.1:4222"
        ))
    };
    let (scheme, rest) = text.split_once("://").unwrap_or(("nats", text));
    let encryption = match scheme {
        "nats" => Encryption::IfDemanded,
        "tls" => Encryption::Always,
        "ws" | "wss" => return Err(wrong("web sockets are not used")),
        _ => return Err(wrong("the scheme is neither nats nor tls")),
    };
    let (login, rest) = match rest.rsplit_once('@') {
        None => (None, rest),
        Some((login, rest)) => {
            let (user, password) = login
                .split_once(':')
                .ok_or_else(|| wrong("a name needs a password behind a colon"))?;
            let (user, password) = (user.to_owned(), password.to_owned());
            (Some(Login { user, password }), rest)
        }
    };
    let rest = rest.trim_end_matches('/');
    let (host, port) = if let Some(inner) = rest.strip_prefix('[') {
        let (host, behind) = inner
            .split_once(']')
            .ok_or_else(|| wrong("a bracket is not closed"))?;
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(wrong("brackets are for IPv6 addresses"));
        }
        (host, behind.strip_prefix(':'))
    } else {
        match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        }
    };
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| wrong("the port is not a number from 1 to 65535"))?,
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_host) {
        return Err(wrong("it has no host"));
    }
    let host = host.to_owned();
    Ok((
        Server {
            host,
            port,
            encryption,
        },
        login,
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (text, urls) in [
            ("nats://10.0.0.1:4222", "nats://10.0.0.1:4222"),
            ("box", "nats://box:4222"),
            ("a:1, tls://b/", "nats://a:1 tls://b:4222"),
            ("nats://[::1]:9,nats://[::1]:9", "nats://[::1]:9"),
        ] {
            let list = ServerList::parse(text).unwrap();
            let found: Vec<String> = list.servers.iter().map(Server::url).collect();
            assert_eq!(found.join(" "), urls, "{text}");
            assert_eq!(list.login, None);
        }
        let list = ServerList::parse("nats://ann:s:e@box,b").unwrap();
        let login = list.login.unwrap();
        assert_eq!((&*login.user, &*login.password), ("ann", "s:e"));
        assert_eq!(list.servers[0].url(), "nats://box:4222");
        assert!(!format!("{login:?}").contains("s:e"));
    }

    #[test]
    fn an_address_that_cannot_work_is_refused_without_its_password() {
        for text in [
            "", "http://a", "ws://a", "nats://", "a:0", "a:x", "a,", "[x]:1", "[::1", "u@a", "a b",
        ] {
            let refused = ServerList::parse(text).unwrap_err();
            assert!(
                refused.message.contains("write nats://"),
                "{text}: {refused}"
            );
        }
        let refused = ServerList::parse("nats://ann:secret@box:x").unwrap_err();
        assert!(!refused.message.contains("secret"), "{refused}");
    }

    proptest! {
        #[test]
        fn a_parsed_address_is_stable(text in "\\PC{0,40}") {
            if let Ok(list) = ServerList::parse(&text) {
                let again: Vec<String> = list.servers.iter().map(Server::url).collect();
                prop_assert_eq!(ServerList::parse(&again.join(",")).unwrap().servers, list.servers);
            }
        }
    }
}
