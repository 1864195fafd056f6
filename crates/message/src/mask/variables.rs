//! Environment variables that hold a key.

use super::MIN_KEY_LENGTH;

/// Reports whether a variable of this name and value holds a key.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let endings = ["KEY", "TOKEN", "SECRET", "PASSWORD"];
    let looks_secret = value.len() >= MIN_KEY_LENGTH
        && !value.contains(char::is_whitespace)
        && !value.starts_with('/')
        && (value.len() >= 2 * MIN_KEY_LENGTH || value.contains(|c: char| c.is_ascii_digit()));
    looks_secret && endings.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognized_by_name_and_value() {
        for (name, value, secret) in [
            ("OPENAI_API_KEY", "sk-12345678", true),
            ("github_token", "ghp_aaaaaaaaaaaaaaaaaaaa", true),
            ("DB_PASSWORD", "hunter2hunter2", true),
            ("DEPLOY_KEY", "/home/me/.ssh/id", false),
            ("USE_TOKEN", "disabled", false),
            ("API_KEY", "short1", false),
            ("PATH", "a1b2c3d4e5f6", false),
        ] {
            assert_eq!(is_secret_variable(name, value), secret, "{name}={value}");
        }
    }
}
