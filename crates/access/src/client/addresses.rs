//! Chooses the hub and the registry: a flag overrides the environment, which overrides `client.json`.

use std::path::Path;

use pinion_status::Failure;

use super::ClientConfig;

/// The environment variable with the address of the hub; clips receive it too.
pub const HUB_VARIABLE: &str = "PINIX_URL";
/// The environment variable with the address of the registry.
pub const REGISTRY_VARIABLE: &str = "PINIX_REGISTRY";

/// Returns the address of the hub that the user chose: `flag`, else that of the environment, else that of
/// `client.json` under `root`. An address without a scheme gets `http`.
pub fn chosen_hub(
    root: &Path,
    flag: Option<&str>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, Failure> {
    let named = flag.map(str::to_owned);
    let hub = match named.or_else(|| filled(environment(HUB_VARIABLE))) {
        Some(hub) => Some(hub),
        None => ClientConfig::load(root)?.hub,
    };
    Ok(hub.as_deref().map(with_scheme))
}

/// Returns the address of the registry that the user chose, as it was written: `flag`, else that of the environment,
/// else that of `client.json` under `root`.
pub fn chosen_registry(
    root: &Path,
    flag: Option<&str>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, Failure> {
    let named = flag.map(str::to_owned);
    match named.or_else(|| filled(environment(REGISTRY_VARIABLE))) {
        Some(registry) => Ok(Some(registry)),
        None => Ok(ClientConfig::load(root)?.registry),
    }
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

fn with_scheme(address: &str) -> String {
    let address = address.trim().trim_end_matches('/');
    if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_overrides_the_environment_and_that_the_file() {
        let root = tempfile::tempdir().unwrap();
        let unset = |_: &str| None;
        let set = |name: &str| Some(format!("{name}.example/"));
        let blank = |_: &str| Some(" ".to_owned());
        let of = |flag, environment: &dyn Fn(&str) -> Option<String>| {
            let hub = chosen_hub(root.path(), flag, environment).unwrap();
            let registry = chosen_registry(root.path(), flag, environment).unwrap();
            (hub, registry)
        };
        assert_eq!(of(None, &unset), (None, None));
        std::fs::write(
            root.path().join("client.json"),
            r#"{"hub": "hub.example:9000", "registry": "https://packages.example/"}"#,
        )
        .unwrap();
        let text = |text: &str| Some(text.to_owned());
        let stored = (
            text("http://hub.example:9000"),
            text("https://packages.example/"),
        );
        assert_eq!(of(None, &unset), stored);
        assert_eq!(of(None, &blank), stored);
        let variables = (
            text("http://PINIX_URL.example"),
            text("PINIX_REGISTRY.example/"),
        );
        assert_eq!(of(None, &set), variables);
        let named = (text("https://x"), text("https://x/"));
        assert_eq!(of(Some("https://x/"), &set), named);
    }
}
