//! Names of tools: `mcp__<server>__<tool>`.

use sha2::{Digest, Sha256};

/// The prefix of the names of all tools of MCP servers.
pub(crate) const PREFIX: &str = "mcp__";
/// The longest name that providers of models accept.
const MAX_NAME_LENGTH: usize = 64;
/// Hexadecimal digits that distinguish names.
const HASH_LENGTH: usize = 8;

/// The characters of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Letters, digits and `_`, as scripts need them.
    Identifiers,
    /// `-` too.
    Dashes,
}

/// Returns the namespace of a server, in which its tools are.
pub(crate) fn namespace(server: &str) -> String {
    spelled_namespace(server, Spelling::Identifiers)
}

/// Returns the namespace of a server in another spelling.
pub(crate) fn spelled_namespace(server: &str, spelling: Spelling) -> String {
    format!("{PREFIX}{}", identifier(server, spelling))
}

/// Returns the names of the tools of a server, in the same order. Names that become equal, or are too long, end in a
/// hash.
pub(crate) fn tool_names(server: &str, tools: &[&str], spelling: Spelling) -> Vec<String> {
    let namespace = spelled_namespace(server, spelling);
    let plain: Vec<String> = tools
        .iter()
        .map(|tool| format!("{namespace}__{}", identifier(tool, spelling)))
        .collect();
    let collides = |name: &String| plain.iter().filter(|other| *other == name).count() > 1;
    let names = plain.iter().zip(tools);
    names
        .map(|(name, tool)| {
            if name.len() > MAX_NAME_LENGTH || collides(name) {
                hashed(name, server, tool)
            } else {
                name.clone()
            }
        })
        .collect()
}

fn identifier(name: &str, spelling: Spelling) -> String {
    let is_sound =
        |c: char| c.is_ascii_alphanumeric() || (c == '-' && spelling == Spelling::Dashes);
    let sound = |c: char| if is_sound(c) { c } else { '_' };
    name.chars().map(sound).collect()
}

fn hashed(name: &str, server: &str, tool: &str) -> String {
    let digest = Sha256::digest(format!("{server}\0{tool}"));
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let kept = name.len().min(MAX_NAME_LENGTH - HASH_LENGTH - 1);
    format!("{}_{}", &name[..kept], &hash[..HASH_LENGTH])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_unique() {
        assert_eq!(namespace("dev-radius"), "mcp__dev_radius");
        assert_eq!(
            tool_names("lab", &["shout"], Spelling::Identifiers),
            ["mcp__lab__shout"]
        );
        let names = tool_names(
            "lab",
            &["a-b", "a_b", "c.d", &"x".repeat(80)],
            Spelling::Identifiers,
        );
        assert_ne!(names[0], names[1]);
        assert!(names[0].starts_with("mcp__lab__a_b_"), "{names:?}");
        assert_eq!(names[2], "mcp__lab__c_d");
        assert_eq!(names[3].len(), MAX_NAME_LENGTH);
        assert_eq!(
            tool_names("my-server", &["a-b", "a.b"], Spelling::Dashes),
            ["mcp__my-server__a-b", "mcp__my-server__a_b"]
        );
    }
}
