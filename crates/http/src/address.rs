//! Addresses of this machine.

use reqwest::Url;

/// Reports whether the host of `url` is this machine: `localhost`, or an address of the loopback interface.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_and_addresses_of_this_machine_are_loopback() {
        let is = |url: &str| is_loopback(&Url::parse(url).unwrap());
        assert!(is("http://localhost:11434/v1"));
        assert!(is("https://127.8.0.1"));
        assert!(is("http://[::1]:8080/v1"));
        assert!(!is("http://localhost.example.com"));
        assert!(!is("http://10.0.0.1"));
        assert!(!is("http://[::2]"));
    }
}
