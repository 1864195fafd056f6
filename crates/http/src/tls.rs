//! The set-up of TLS: the crypto provider of the process and certificates that the environment adds.

use std::sync::Once;

use reqwest::Certificate;

/// Bytes of the file in `NODE_EXTRA_CA_CERTS` that are read at most.
const MAX_BUNDLE_BYTES: u64 = 16 << 20;

/// Installs the crypto provider of the process. The first call counts; every caller in pinion installs the same one.
pub(crate) fn install_crypto() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Reads the certificates of `NODE_EXTRA_CA_CERTS`, which add to the system's. `SSL_CERT_FILE` and `SSL_CERT_DIR` replace
/// the system's; the certificate reader handles them. The error is a sentence for the user.
pub(crate) fn extra_certificates() -> Result<Vec<Certificate>, String> {
    let Some(path) = std::env::var_os("NODE_EXTRA_CA_CERTS").filter(|path| !path.is_empty()) else {
        return Ok(Vec::new());
    };
    let unusable = |error: &dyn std::fmt::Display| {
        format!(
            "NODE_EXTRA_CA_CERTS names {}, which cannot be used: {error}",
            path.display()
        )
    };
    let bundle =
        pinion_files::read(path.as_ref(), MAX_BUNDLE_BYTES).map_err(|error| unusable(&error))?;
    Certificate::from_pem_bundle(&bundle).map_err(|error| unusable(&error))
}
