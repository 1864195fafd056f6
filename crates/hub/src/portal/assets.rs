//! The files of the portal, as part of the program.

use std::sync::LazyLock;

use pinion_text::hex;
use sha2::{Digest, Sha256};

#[derive(Debug)]
pub(super) struct Asset {
    /// The path below `/portal/`.
    name: &'static str,
    pub(super) content: &'static [u8],
    etag: LazyLock<String>,
}

macro_rules! assets {
    ($($name:literal),* $(,)?) => {
        static ASSETS: [Asset; [$($name),*].len()] = [$(Asset {
            name: $name,
            content: include_bytes!(concat!("../../../../portal/", $name)),
            etag: LazyLock::new(|| etag(include_bytes!(concat!("../../../../portal/", $name)))),
        }),*];
    };
}

assets![
    "app.js",
    "connect.js",
    "dom.js",
    "form.js",
    "hub.js",
    "icon.svg",
    "index.html",
    "json.js",
    "portal.css",
    "results.js",
    "runner.js",
    "schema.js",
    "views/agent.js",
    "views/bindings.js",
    "views/clip.js",
    "views/clips.js",
    "views/commands.js",
    "views/data.js",
    "views/install.js",
    "views/logs.js",
    "views/manifest.js",
    "views/providers.js",
    "views/signin.js",
    "views/tokens.js",
    "words.js",
];

impl Asset {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        ASSETS.iter().find(|asset| asset.name == name)
    }

    pub(super) fn kind(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        }
    }

    /// A quoted hash of the content.
    pub(super) fn etag(&self) -> &str {
        &self.etag
    }
}

fn etag(content: &[u8]) -> String {
    format!("\"{}\"", hex::encode(&Sha256::digest(content)[..16]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    fn files(directory: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                files(&entry.path(), &format!("{name}/"), found);
            } else {
                found.insert(name);
            }
        }
    }

    #[test]
    fn every_file_is_part_of_the_program() {
        let mut there = BTreeSet::new();
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../portal");
        files(&directory, "", &mut there);
        let baked: BTreeSet<String> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
        assert_eq!(baked, there);
    }

    #[test]
    fn pages_load_nothing_from_elsewhere_and_hold_no_script() {
        for asset in &ASSETS {
            let text = str::from_utf8(asset.content).unwrap();
            let mut rest = text.replace("http://www.w3.org/2000/svg", "");
            if asset.name == "views/install.js" {
                rest = rest.replace("registry:https://host/", "");
            }
            for elsewhere in ["http://", "https://", "src=\"//", "@import"] {
                assert!(!rest.contains(elsewhere), "{}: {elsewhere}", asset.name);
            }
            if asset.name.ends_with(".js") && asset.name != "dom.js" {
                for markup in [
                    "innerHTML",
                    "outerHTML",
                    "insertAdjacentHTML",
                    "document.write",
                    "eval(",
                ] {
                    assert!(!text.contains(markup), "{}: {markup}", asset.name);
                }
            }
        }
        let page = str::from_utf8(Asset::named("index.html").unwrap().content).unwrap();
        for inline in [
            "<style", "style=", "onload=", "onclick=", "onerror=", "<script>",
        ] {
            assert!(!page.contains(inline), "{inline}");
        }
    }
}
