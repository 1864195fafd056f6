//! TLS for a client.

use std::fmt;
use std::sync::Arc;

use pinion_status::{Code, Failure};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::HttpVersion;

/// The certificates that a client trusts.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Roots {
    /// The certificates that the operating system trusts.
    #[default]
    Platform,
    /// Only certificates signed by one of these, in PEM form.
    Pem(Vec<u8>),
}

impl fmt::Debug for Roots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Platform => "Platform",
            Self::Pem(_) => "Pem",
        })
    }
}

/// Creates the TLS configuration. Reading the system's certificates blocks, so do not call this on an async thread.
pub(super) fn set_up(roots: &Roots, http: HttpVersion) -> Result<Arc<ClientConfig>, Failure> {
    let broken = |error: &dyn fmt::Display| {
        let message = format!("TLS could not be set up: {error}");
        Failure::new(Code::FailedPrecondition, message)
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| broken(&error))?;
    let builder = match roots {
        Roots::Platform => {
            let verifier = rustls_platform_verifier::Verifier::new(provider);
            let verifier = verifier.map_err(|error| broken(&error))?;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        }
        Roots::Pem(pem) => {
            let mut store = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| broken(&error))?;
                store.add(certificate).map_err(|error| broken(&error))?;
            }
            if store.is_empty() {
                return Err(broken(&"the given file holds no certificate"));
            }
            builder.with_root_certificates(store)
        }
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = match http {
        HttpVersion::One => vec![b"http/1.1".to_vec()],
        HttpVersion::Two => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
    };
    Ok(Arc::new(config))
}
