//! Base64 of payloads in JSON: written with padding; read in either alphabet, with padding or
//! without.

use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const fn engine(alphabet: &Alphabet) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config)
}

const STANDARD_ENGINE: GeneralPurpose = engine(&STANDARD);
const URL_ENGINE: GeneralPurpose = engine(&URL_SAFE);

pub(crate) fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = STANDARD_ENGINE.encode_slice(bytes, &mut out[start..]);
    out.truncate(start + written.unwrap_or_default());
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let standard = STANDARD_ENGINE.decode(text);
    standard.or_else(|_| URL_ENGINE.decode(text)).ok()
}
