//! Reads tokens and sessions from headers.

/// The cookie that carries a session of the portal.
pub const SESSION_COOKIE: &str = "pinion_session";

/// Returns the token of an `Authorization` header; `None` for another scheme or an empty token.
pub fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Returns the session in a `Cookie` header.
pub fn session_of(header: &str) -> Option<&str> {
    let cookies = header
        .split(';')
        .filter_map(|cookie| cookie.split_once('='));
    let mut ours = cookies.filter(|(name, _)| name.trim() == SESSION_COOKIE);
    let value = ours.next().map(|(_, value)| value.trim().trim_matches('"'));
    value.filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_scheme_is_bearer_in_any_case() {
        for header in [
            "Bearer pnx_a",
            "bearer pnx_a",
            "BEARER pnx_a",
            "  Bearer   pnx_a  ",
        ] {
            assert_eq!(bearer(header), Some("pnx_a"), "{header:?}");
        }
        for header in [
            "",
            " ",
            "Bearer",
            "Bearer ",
            "pnx_a",
            "Basic cG54X2E=",
            "Bearerpnx_a",
            "Bearer\tpnx_a",
        ] {
            assert_eq!(bearer(header), None, "{header:?}");
        }
        assert_eq!(bearer("Bearer two words"), Some("two words"));
    }

    #[test]
    fn our_cookie_is_found_among_others() {
        assert_eq!(session_of("a=b; pinion_session=xyz; c=d"), Some("xyz"));
        assert_eq!(session_of("pinion_session=\"xyz\""), Some("xyz"));
        assert_eq!(session_of("pinion_session="), None);
        assert_eq!(session_of("not_pinion_session=1;x"), None);
    }

    proptest! {
        #[test]
        fn any_token_is_read_back(token in "[!-~]{1,80}", scheme in "[bB][eE][aA][rR][eE][rR]") {
            let header = format!("{scheme} {token}");
            prop_assert_eq!(bearer(&header), Some(token.as_str()));
        }

        #[test]
        fn any_header_is_read(text in "\\PC{0,80}") {
            if let Some(token) = bearer(&text) {
                prop_assert!(!token.is_empty() && token.trim() == token && text.contains(token));
            }
            if let Some(session) = session_of(&text) {
                prop_assert!(text.contains("pinion_session") && text.contains(session));
            }
        }

        #[test]
        fn any_session_is_read_back(id in "[A-Za-z0-9_-]{43}", others in "[a-z]{1,8}=[a-z]{0,8}") {
            let header = format!("{others}; {SESSION_COOKIE}={id}; {others}");
            prop_assert_eq!(session_of(&header), Some(id.as_str()));
        }
    }
}
