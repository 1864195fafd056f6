//! The user's registry and its tokens, from `client.json` and `credentials.json`.

use std::path::Path;

use serde_json::Value;

use crate::ClipError;
use crate::clip::Token;
use crate::package::json_object;
use crate::registry::Address;

/// Returns the address of the registry for packages whose source does not name one.
pub(super) fn registry(root: &Path) -> Result<Option<String>, ClipError> {
    let settings = json_object(&root.join("client.json"))?.unwrap_or_default();
    let registry = settings.get("registry").and_then(Value::as_str);
    Ok(registry.map(str::to_owned))
}

/// Returns the token for a registry, if the user has logged in there.
pub(super) fn token(root: &Path, address: &Address) -> Result<Option<Token>, ClipError> {
    let credentials = json_object(&root.join("credentials.json"))?.unwrap_or_default();
    let registries = credentials.get("registries").and_then(Value::as_object);
    let own = registries.into_iter().flatten().find(|(known, _)| {
        let known = known.parse::<Address>();
        known.is_ok_and(|known| known == *address)
    });
    let token = own.and_then(|(_, entry)| entry.get("token")?.as_str());
    Ok(token.filter(|token| !token.is_empty()).map(Token::new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn tokens_belong_to_addresses_however_they_are_spelled() {
        let root = tempfile::tempdir().unwrap();
        let here: Address = "https://r.example/api/".parse().unwrap();
        assert_eq!(registry(root.path()).unwrap(), None);
        assert_eq!(token(root.path(), &here).unwrap(), None);
        fs::write(
            root.path().join("client.json"),
            r#"{"registry":"https://r.example/api"}"#,
        )
        .unwrap();
        let credentials = r#"{"registries":{"https://r.example":{"token":"other"},"https://R.example:443/api/":{"token":"own","username":"me"},"nonsense":{}}}"#;
        fs::write(root.path().join("credentials.json"), credentials).unwrap();
        let configured = registry(root.path()).unwrap().unwrap();
        assert_eq!(configured.parse::<Address>().unwrap(), here);
        assert_eq!(token(root.path(), &here).unwrap(), Some(Token::new("own")));
        fs::write(root.path().join("client.json"), "[").unwrap();
        assert!(registry(root.path()).is_err());
    }
}
