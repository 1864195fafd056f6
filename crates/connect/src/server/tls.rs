//! TLS for a server: one certificate, one key.

use std::sync::Arc;

use pinion_status::Failure;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate and its key, parsed.
#[derive(Clone)]
pub struct Tls {
    pub(crate) acceptor: TlsAcceptor,
}

impl Tls {
    /// Parses a chain of certificates, the server's own first, and its private key.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, Failure> {
        let unusable = |what: &str, error: &dyn std::fmt::Display| {
            Failure::invalid(format!("the {what} cannot be used for TLS: {error}"))
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.map_err(|error| unusable("certificate", &error))?;
        if chain.is_empty() {
            return Err(unusable("certificate", &"the file holds none"));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unusable("key", &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable("set of protocols", &error))?;
        let mut config = config
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| unusable("certificate with this key", &error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Tls")
    }
}
