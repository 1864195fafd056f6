//! The network policy for base URLs: encrypted, and outside this machine and its network, unless a
//! profile permits otherwise.
//!
//! The check parses the URL with the parser of the connection, so that `http://2130706433` is
//! recognised as this machine. It does not resolve names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::error::ProfileError;
use crate::settings::ApiSettings;
use crate::tree::without_user;

/// Checks that `address`, the value of `key`, is permitted. `providers` are the names under which a
/// profile may permit it; errors recommend the first.
pub(crate) fn check(
    key: &str,
    address: &str,
    api: &ApiSettings,
    providers: &[&str],
) -> Result<(), ProfileError> {
    let refused = |reason: String| ProfileError::UrlNotAllowed {
        key: format!("api.base_urls.{key}"),
        url: without_user(address).unwrap_or_else(|| address.to_owned()),
        reason,
    };
    let advised = providers.first().copied().unwrap_or_default();
    let url = Url::parse(address)
        .map_err(|_| refused("is not an address; write https://HOST/…".to_owned()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(
            "has a name or a password in it; write the key under api.api_keys instead".to_owned(),
        ));
    }
    let allowed = |table: &std::collections::BTreeMap<String, bool>| {
        providers
            .iter()
            .any(|provider| table.get(*provider) == Some(&true))
    };
    match url.scheme() {
        "https" => {}
        "http" if allowed(&api.allow_http) => {}
        "http" => {
            return Err(refused(format!(
                "is not encrypted; write https://, or set api.allow_http.{advised}: true in a profile"
            )));
        }
        other => {
            return Err(refused(format!(
                "begins with {other}://; only https:// can be asked"
            )));
        }
    }
    if is_local(&url) && !allowed(&api.allow_local_networks) {
        return Err(refused(format!(
            "is on this machine or its network; set api.allow_local_networks.{advised}: true in a profile to allow it"
        )));
    }
    Ok(())
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => is_local_v4(address),
        Some(Host::Ipv6(address)) => is_local_v6(address),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            // Other parsers might read it as a number.
            let number = name.parse::<IpAddr>().is_ok();
            name.is_empty()
                || number
                || ["localhost", "local"]
                    .iter()
                    .any(|local| name == *local || name.ends_with(&format!(".{local}")))
        }
        None => true,
    }
}

fn is_local_v4(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_multicast()
        || a == 0
        // Shared by the customers of a provider (RFC 6598).
        || (a == 100 && (64..128).contains(&b))
}

fn is_local_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded(address) {
        return is_local_v4(inner);
    }
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        // Formerly site-local addresses.
        || address.segments()[0] & 0xffc0 == 0xfec0
}

/// Returns the IPv4 address inside an IPv6 address: mapped, compatible, NAT64 or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let last = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        [0, 0, 0, 0, 0, 0xffff, high, low] => Some(last(high, low)),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => Some(last(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(last(high, low)),
        [0x2002, high, low, ..] => Some(last(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(http: bool, local: bool) -> ApiSettings {
        ApiSettings {
            allow_http: [("openai".to_owned(), http)].into(),
            allow_local_networks: [("openai".to_owned(), local)].into(),
            ..ApiSettings::default()
        }
    }

    fn error_text(address: &str, api: &ApiSettings) -> Result<(), String> {
        check("openai-base-url", address, api, &["openai"]).map_err(|error| {
            assert_eq!(error.code(), "url_not_allowed");
            error.to_string()
        })
    }

    #[test]
    fn only_encrypted_addresses_elsewhere_are_asked() {
        for address in [
            "https://api.openai.com/v1",
            "https://API.example.com:8443/x",
            "https://8.8.8.8/v1",
            "https://[2606:4700::1111]/",
            "https://notlocal/",
            "https://mylocal.example.com",
            "https://localhost.example.com",
            "https://172.32.0.1/",
            "https://100.128.0.1/",
            "https://[::ffff:8.8.8.8]/",
        ] {
            assert_eq!(error_text(address, &api(false, false)), Ok(()), "{address}");
        }
    }

    #[test]
    fn this_machine_and_its_network_need_permission() {
        for host in [
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "printer.local",
            "printer.local.",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "255.255.255.255",
            "224.0.0.1",
            "[::1]",
            "[::]",
            "[fe80::1]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::ffff:192.168.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "127。0。0。1",
        ] {
            let address = format!("https://{host}/v1");
            let refusal = error_text(&address, &api(true, false)).err();
            let refusal = refusal.unwrap_or_else(|| panic!("{address} was let through"));
            assert!(
                refusal.contains("api.allow_local_networks.openai: true")
                    || refusal.contains("is not an address"),
                "{refusal}"
            );
            if !refusal.contains("is not an address") {
                assert_eq!(error_text(&address, &api(false, true)), Ok(()), "{address}");
            }
        }
    }

    #[test]
    fn plain_http_needs_permission_of_its_own() {
        let refusal = error_text("http://api.example.com", &api(false, true)).unwrap_err();
        assert!(refusal.contains("api.allow_http.openai: true"), "{refusal}");
        assert_eq!(
            error_text("http://api.example.com", &api(true, false)),
            Ok(())
        );
        assert_eq!(
            error_text("http://127.0.0.1:8080/v1", &api(true, true)),
            Ok(())
        );
        assert!(error_text("http://127.0.0.1:8080/v1", &api(true, false)).is_err());
        for address in [
            "ftp://a/",
            "file:///etc/passwd",
            "data:x",
            "",
            "api.openai.com",
            "//a",
        ] {
            assert!(error_text(address, &api(true, true)).is_err(), "{address}");
        }
        for address in [
            "https://me:planted@api.example.com",
            "https://planted@h",
            "http://:planted@h",
        ] {
            let refusal = error_text(address, &api(true, true)).unwrap_err();
            assert!(refusal.contains("under api.api_keys"), "{refusal}");
            assert!(!refusal.contains("planted"), "{refusal}");
        }
    }
}
