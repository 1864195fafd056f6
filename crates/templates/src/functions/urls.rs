//! Sprig's functions on URLs, which are parsed and printed as Go does it.

use pinion_text::percent;

use super::{Arguments, Function, Outcome, Scope, exactly, text_value};
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    exactly("urlParse", 1, parse),
    exactly("urlJoin", 1, join).shallow(),
];

/// A URL; its parts are not escaped.
#[derive(Default)]
struct Url {
    scheme: String,
    /// The part after a scheme that is not followed by a path: `mailto:ada`.
    opaque: String,
    user: Option<User>,
    /// The host with its port.
    host: String,
    path: String,
    query: String,
    fragment: String,
}

struct User {
    name: String,
    password: Option<String>,
}

/// The part of a URL that a text belongs to; each has its own characters that need no escape.
#[derive(Clone, Copy)]
enum Part {
    User,
    Host,
    Path,
    Fragment,
}

impl Part {
    fn allows(self, byte: u8) -> bool {
        let kept: &[u8] = match self {
            Self::User => b"$&+,;=",
            Self::Host => b"!$&'()*+,;=:[]<>\"",
            Self::Path => b"$&+,/:;=@",
            Self::Fragment => b"$&+,/:;=?@!()*",
        };
        byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) || kept.contains(&byte)
    }
}

fn parse(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let text = args.text(0)?;
    let url =
        Url::parse(text).map_err(|reason| format!("unable to parse url {text:?}: {reason}"))?;
    let hostname = hostname(&url.host).to_owned();
    let userinfo = url.user.as_ref().map(User::printed).unwrap_or_default();
    Ok(Value::object(
        [
            ("scheme", url.scheme),
            ("host", url.host),
            ("hostname", hostname),
            ("path", url.path),
            ("query", url.query),
            ("opaque", url.opaque),
            ("fragment", url.fragment),
            ("userinfo", userinfo),
        ]
        .map(|(name, part)| (name.to_owned(), Value::text(part))),
    ))
}

fn join(_: &mut Scope<'_>, args: &Arguments<'_>) -> Outcome {
    let parts = args.map(0)?;
    let part = |name: &str| match parts.get(name) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.to_string()),
        Some(_) => Err(format!("the {name} of an address must be text")),
    };
    let userinfo = part("userinfo")?;
    let url = Url {
        scheme: part("scheme")?,
        opaque: part("opaque")?,
        user: if userinfo.is_empty() {
            None
        } else {
            Some(User::parse(&userinfo)?)
        },
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        fragment: part("fragment")?,
    };
    text_value(url.printed())
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("it has a control character".to_owned());
        }
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        let fragment = unescaped(fragment)?;
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self {
            scheme: scheme.to_ascii_lowercase(),
            query: query.to_owned(),
            fragment,
            ..Self::default()
        };
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if rest
                .split('/')
                .next()
                .is_some_and(|first| first.contains(':'))
            {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let is_rooted = scheme.is_empty() && rest.starts_with("///");
        let path = match rest.strip_prefix("//").filter(|_| !is_rooted) {
            None => rest,
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let (user, host) = match authority.rsplit_once('@') {
                    Some((user, host)) => (Some(User::parse(user)?), host),
                    None => (None, authority),
                };
                url.user = user;
                url.host = unescaped(checked_port(host)?)?;
                path
            }
        };
        url.path = unescaped(path)?;
        Ok(url)
    }

    fn printed(&self) -> String {
        let mut text = String::new();
        if !self.scheme.is_empty() {
            text.push_str(&format!("{}:", self.scheme));
        }
        if self.opaque.is_empty() {
            let has_place = !self.host.is_empty() || self.user.is_some();
            if has_place || !self.scheme.is_empty() && !self.path.is_empty() {
                text.push_str("//");
            }
            if let Some(user) = &self.user {
                text.push_str(&format!("{}@", user.printed()));
            }
            text.push_str(&escaped(&self.host, Part::Host));
            let path = match self.path.as_str() {
                "*" => "*".to_owned(),
                path => escaped(path, Part::Path),
            };
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                text.push('/');
            }
            // Otherwise the part before the colon would parse as a scheme.
            let first = path.split('/').next().unwrap_or_default();
            if text.is_empty() && first.contains(':') {
                text.push_str("./");
            }
            text.push_str(&path);
        } else {
            text.push_str(&self.opaque);
        }
        if !self.query.is_empty() {
            text.push_str(&format!("?{}", self.query));
        }
        if !self.fragment.is_empty() {
            text.push_str(&format!("#{}", escaped(&self.fragment, Part::Fragment)));
        }
        text
    }
}

impl User {
    fn parse(text: &str) -> Result<Self, String> {
        let allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
        if !text.bytes().all(allowed) {
            return Err("invalid userinfo".to_owned());
        }
        let (name, password) = match text.split_once(':') {
            Some((name, password)) => (name, Some(unescaped(password)?)),
            None => (text, None),
        };
        Ok(Self {
            name: unescaped(name)?,
            password,
        })
    }

    fn printed(&self) -> String {
        let name = escaped(&self.name, Part::User);
        match &self.password {
            Some(password) => format!("{name}:{}", escaped(password, Part::User)),
            None => name,
        }
    }
}

/// Splits a URL into its scheme and the rest.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// Returns the host if the text after its last colon can be a port.
fn checked_port(host: &str) -> Result<&str, String> {
    let after = match host.rfind(']') {
        Some(end) => &host[end + 1..],
        None if host.starts_with('[') => return Err("missing ']' in host".to_owned()),
        None => host.rfind(':').map_or("", |colon| &host[colon..]),
    };
    let port = after.strip_prefix(':').unwrap_or(after);
    let is_port = after.is_empty() || after.starts_with(':');
    if is_port && port.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(host)
    } else {
        Err(format!("invalid port {after:?} after host"))
    }
}

/// Returns the host without its port and brackets.
fn hostname(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let inner = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    inner.unwrap_or(name)
}

fn unescaped(text: &str) -> Result<String, String> {
    let bytes = percent::decode_strictly(text.as_bytes());
    let bytes = bytes.ok_or("it has a % that begins no escape")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn escaped(text: &str, part: Part) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if part.allows(byte) {
            out.push(char::from(byte))
        } else {
            out.push_str(&format!("%{byte:02X}"))
        }
    }
    out
}
