//! Nesting depth of JSON.

/// The deepest JSON that is parsed, as in jq: the parser recurses once per level.
pub(crate) const MAX_DEPTH: usize = 10_000;

/// Reports whether at most [`MAX_DEPTH`] structures are nested. The parser rejects input that is
/// not JSON.
pub(crate) fn is_within_depth(json: &[u8]) -> bool {
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
        if depth > MAX_DEPTH {
            return false;
        }
    }
    true
}
