//! Encrypted connections. With TLS, the certificate is always checked: against the system's roots,
//! and against those of `sslrootcert` if the DSN names a file.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// The encryption mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Encryption {
    /// `sslmode=disable`, and local connections unless encryption is required.
    Never,
    /// `sslmode=prefer`, the default: falls back to an unencrypted connection.
    Tried(Option<String>),
    /// `sslmode=require`, `verify-ca`, `verify-full`.
    Required(Option<String>),
}

impl Encryption {
    /// Returns the mode of a DSN.
    pub(super) fn of(config: &Config, roots: Option<String>) -> Self {
        match config.get_ssl_mode() {
            SslMode::Disable => Self::Never,
            SslMode::Require => Self::Required(roots),
            _ if config.get_hosts().iter().all(is_local) => Self::Never,
            _ => Self::Tried(roots),
        }
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address = name.parse::<IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
    }
}

/// Removes settings from a DSN that its parser does not support: the file of `sslrootcert`, and
/// modes that require a check, which happens anyway.
pub(super) fn take_tls_settings(dsn: &str) -> (String, Option<String>) {
    let url = dsn.starts_with("postgres://") || dsn.starts_with("postgresql://");
    let (head, settings, glue) = match (url, dsn.split_once('?')) {
        (true, Some((head, settings))) => (format!("{head}?"), settings, '&'),
        (true, None) => return (dsn.to_owned(), None),
        (false, _) => (String::new(), dsn, ' '),
    };
    let mut roots = None;
    let mut kept = Vec::new();
    for setting in settings.split(glue) {
        match setting.split_once('=') {
            Some(("sslrootcert", file)) => roots = Some(file.replace("%2F", "/")),
            Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require"),
            _ => kept.push(setting),
        }
    }
    (format!("{head}{}", kept.join(&glue.to_string())), roots)
}

/// Creates encrypted connections.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Reads the root certificates. This is slow and happens once.
    pub(super) fn new(roots: Option<&str>) -> Result<Self, String> {
        let extra = match roots {
            None => Vec::new(),
            Some(file) => CertificateDer::pem_file_iter(file)
                .and_then(Iterator::collect)
                .map_err(|error| format!("the certificates in {file} cannot be read: {error}"))?,
        };
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                let verifier = Verifier::new_with_extra_roots(extra, provider)?;
                let builder = builder.dangerous();
                Ok(builder.with_custom_certificate_verifier(Arc::new(verifier)))
            })
            .map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let config = config.with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Encrypted<S>;
    type TlsConnect = Named;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Named> {
        let name = ServerName::try_from(domain.to_owned());
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Named(self.0.clone(), name))
    }
}

/// Creates encrypted connections to one server.
pub(super) struct Named(TlsConnector, ServerName<'static>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Named {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let stream = self.0.connect(self.1, stream).await?;
            Ok(Encrypted(Box::new(stream)))
        })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(dsn: &str) -> Encryption {
        let (dsn, roots) = take_tls_settings(dsn);
        Encryption::of(&dsn.parse().unwrap(), roots)
    }

    #[test]
    fn a_dsn_says_when_to_encrypt() {
        let roots = || Some("/etc/ca.pem".to_owned());
        for (dsn, encryption) in [
            ("postgres://u@db.example/d", Encryption::Tried(None)),
            ("postgres://u@127.0.0.1/d", Encryption::Never),
            (
                "postgres://u@localhost/d?sslmode=require",
                Encryption::Required(None),
            ),
            (
                "postgres://u@db.example/d?sslmode=disable",
                Encryption::Never,
            ),
            (
                "postgres://u@db.example/d?sslmode=verify-full&sslrootcert=/etc/ca.pem",
                Encryption::Required(roots()),
            ),
            (
                "host=db.example user=u sslmode=verify-ca sslrootcert=/etc/ca.pem",
                Encryption::Required(roots()),
            ),
            ("host=/run/postgresql user=u", Encryption::Never),
            (
                "postgres://u@h/d?sslrootcert=%2Fetc%2Fca.pem&connect_timeout=3",
                Encryption::Tried(roots()),
            ),
        ] {
            assert_eq!(wanted(dsn), encryption, "{dsn}");
        }
    }

    #[test]
    fn roots_that_cannot_be_read_are_named() {
        let error = Tls::new(Some("/nowhere/ca.pem")).err().unwrap();
        assert!(error.contains("/nowhere/ca.pem"), "{error}");
    }
}
