//! How deep JSON is.

/// Deeper JSON is not read, as in jq: who reads it calls itself for each level.
pub(crate) const DEEPEST: usize = 10_000;

/// Whether no more structures than [`DEEPEST`] are inside each other. What is not JSON is for its reader to refuse.
pub(crate) fn is_bearable(json: &[u8]) -> bool {
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    for byte in json {
        match (in_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return false;
        }
    }
    true
}
