//! The files `~/.aws/credentials` and `~/.aws/config`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::Variables;
use crate::variables::{in_home, read_file};

/// The values of one section.
pub(super) type Section = BTreeMap<String, String>;

/// The profiles and the SSO sessions of both files.
#[derive(Debug, Default)]
pub(super) struct Profiles {
    profiles: BTreeMap<String, Section>,
    sessions: BTreeMap<String, Section>,
}

impl Profiles {
    /// Reads both files. An absent file is an empty one.
    pub async fn read(variables: &dyn Variables) -> Result<Self, String> {
        let path = |name: &str, file: &str| {
            let named = variables.get(name).map(PathBuf::from);
            named.or_else(|| in_home(variables, file))
        };
        let config = path("AWS_CONFIG_FILE", ".aws/config");
        let credentials = path("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials");
        let mut found = Self::default();
        if let Some(path) = config
            && let Some(text) = read_file(path).await?
        {
            found.add_config(&text);
        }
        if let Some(path) = credentials
            && let Some(text) = read_file(path).await?
        {
            found.add_credentials(&text);
        }
        Ok(found)
    }

    pub fn profile(&self, name: &str) -> Option<&Section> {
        self.profiles.get(name)
    }

    pub fn session(&self, name: &str) -> Option<&Section> {
        self.sessions.get(name)
    }

    fn add_config(&mut self, text: &str) {
        for (heading, section) in sections(text) {
            let mut words = heading.split_whitespace();
            let (kept, name) = match (words.next(), words.next()) {
                (Some("sso-session"), Some(name)) => (&mut self.sessions, name),
                (Some("profile"), Some(name)) => (&mut self.profiles, name),
                (Some("default"), None) => (&mut self.profiles, "default"),
                _ => continue,
            };
            kept.entry(name.to_owned()).or_default().extend(section);
        }
    }

    /// The file of credentials overrides the other one.
    fn add_credentials(&mut self, text: &str) {
        for (heading, section) in sections(text) {
            self.profiles.entry(heading).or_default().extend(section);
        }
    }
}

/// Splits a file into sections. Indented lines belong to nested values, which no credential needs.
fn sections(text: &str) -> Vec<(String, Section)> {
    let mut sections: Vec<(String, Section)> = Vec::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let heading = rest.split(']').next().unwrap_or_default().trim();
            sections.push((heading.to_owned(), Section::new()));
        } else if let Some((name, value)) = line.split_once('=')
            && let Some((_, section)) = sections.last_mut()
        {
            let value = value.split(" #").next().unwrap_or_default();
            let value = value.split(" ;").next().unwrap_or_default().trim();
            section.insert(name.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_files_are_merged_and_headings_differ() {
        let mut profiles = Profiles::default();
        profiles.add_config(
            "\u{feff}[default]\nregion=a # here\n[profile x]\r\nRegion = b\r\ns3 =\n  nested = 1\nrole_arn=c=d\n[y]\nregion=z\n[sso-session s]\nsso_region = e\n",
        );
        profiles.add_credentials("; comment\n[x]\naws_access_key_id = K\nregion = over\n");
        let value = |profile: &str, name: &str| {
            profiles
                .profile(profile)
                .and_then(|it| it.get(name))
                .cloned()
        };
        assert_eq!(value("default", "region").as_deref(), Some("a"));
        assert_eq!(value("x", "region").as_deref(), Some("over"));
        assert_eq!(value("x", "role_arn").as_deref(), Some("c=d"));
        assert_eq!(value("x", "nested"), None);
        assert_eq!(
            profiles.profile("y"),
            None,
            "a profile of the configuration begins with \"profile\""
        );
        let region = profiles.session("s").and_then(|it| it.get("sso_region"));
        assert_eq!(region.map(String::as_str), Some("e"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,200}") {
            let _ = sections(&text);
        }
    }
}
