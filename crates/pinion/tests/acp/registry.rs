//! The entry for the registry of agents: `packaging/agent.json` and `packaging/icon.svg`.

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

fn read(name: &str) -> String {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    std::fs::read_to_string(packaging.join(name)).unwrap()
}

fn ensure(holds: bool, words: &str) -> Result<(), Failed> {
    if holds {
        Ok(())
    } else {
        Err(words.to_owned().into())
    }
}

fn entry() -> Result<(), Failed> {
    let entry: Value = serde_json::from_str(&read("agent.json"))?;
    let version = env!("CARGO_PKG_VERSION");
    ensure(entry["id"] == "pinion", "the id")?;
    ensure(
        entry["version"] == version,
        "the version is not that of the program",
    )?;
    for name in ["name", "description", "license"] {
        ensure(
            entry[name].as_str().is_some_and(|text| !text.is_empty()),
            name,
        )?;
    }
    let archives = entry["distribution"]["binary"].as_object().unwrap();
    ensure(!archives.is_empty(), "there is no archive")?;
    for (platform, archive) in archives {
        let address = archive["archive"].as_str().unwrap_or_default();
        ensure(
            address.starts_with("https://") && address.contains(version),
            platform,
        )?;
        ensure(
            archive["cmd"] == "./pinion" && archive["args"][0] == "acp",
            platform,
        )?;
    }
    Ok(())
}

/// The icon is square, 16 × 16, and has the colour of the text around it.
fn icon() -> Result<(), Failed> {
    let icon = read("icon.svg");
    ensure(
        icon.contains("width=\"16\" height=\"16\" viewBox=\"0 0 16 16\""),
        "the size",
    )?;
    for attribute in ["fill=\"", "stroke=\""] {
        for rest in icon.split(attribute).skip(1) {
            let colour = rest.split('"').next().unwrap_or_default();
            ensure(
                ["currentColor", "none", "inherit"].contains(&colour),
                colour,
            )?;
        }
    }
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("registry::the_entry_is_complete", entry),
        Trial::test("registry::the_icon_has_no_colour_of_its_own", icon),
    ]
}
