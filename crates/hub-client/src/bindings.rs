//! The slots of a clip, and the clips that fit them.

use std::collections::BTreeSet;

use pinion_clip::version::Range;
use pinion_proto::hub::{ClipBinding, ClipInfo, DependencySlot, GetBindingsResponse};

/// A slot of a clip: another clip that it calls.
#[derive(Debug, PartialEq, Eq)]
pub struct Slot {
    pub name: String,
    /// The package and the versions that the slot accepts; empty for an undeclared slot.
    pub wants: String,
    /// The alias of the clip that the slot is bound to, and its hub if that is another one.
    pub bound_to: Option<String>,
    /// The aliases of the clips that fit; none for an undeclared slot.
    pub candidates: Vec<String>,
}

/// Returns all declared or bound slots, sorted by name. `clips` are the possible candidates.
pub fn slots(bindings: &GetBindingsResponse, clips: &[ClipInfo]) -> Vec<Slot> {
    let declared = bindings.dependency_slots.keys();
    let names = declared.chain(bindings.bindings.keys());
    let names: BTreeSet<&str> = names.map(|name| name.as_str()).collect();
    let slot = |name: &str| {
        let declared = bindings.dependency_slots.get(name);
        let wants = declared.map(|it| format!("{} {}", it.package, it.version));
        Slot {
            name: name.to_owned(),
            wants: wants.unwrap_or_default().trim().to_owned(),
            bound_to: bindings.bindings.get(name).map(bound_to),
            candidates: declared.map_or(Vec::new(), |slot| candidates(slot, clips)),
        }
    };
    names.into_iter().map(slot).collect()
}

fn bound_to(binding: &ClipBinding) -> String {
    if binding.hub.is_empty() {
        binding.alias.to_string()
    } else {
        format!("{} at {}", binding.alias, binding.hub)
    }
}

fn candidates(slot: &DependencySlot, clips: &[ClipInfo]) -> Vec<String> {
    let range = Range::parse(&slot.version);
    let fitting = clips
        .iter()
        .filter(|clip| clip.package == slot.package && range.contains(&clip.version));
    fitting.map(|clip| clip.name.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_accept_clips_of_their_package_and_versions() {
        let clip = |name: &str, package: &str, version: &str| ClipInfo {
            name: name.to_owned().into(),
            package: package.to_owned().into(),
            version: version.to_owned().into(),
            ..ClipInfo::default()
        };
        let clips = [
            clip("one", "@me/store", "1.2.0"),
            clip("two", "@me/store", "2.0.0"),
            clip("other", "@me/other", "1.2.0"),
        ];
        let slot = DependencySlot {
            package: "@me/store".to_owned().into(),
            version: "^1.0.0".to_owned().into(),
        };
        let binding = ClipBinding {
            alias: "far".to_owned().into(),
            hub: "http://hub.example".to_owned().into(),
            ..ClipBinding::default()
        };
        let mut bindings = GetBindingsResponse::default();
        bindings.bindings.insert("z".to_owned().into(), binding);
        let declared = &mut bindings.dependency_slots;
        declared.insert("a".to_owned().into(), slot);
        let expected = [
            Slot {
                name: "a".into(),
                wants: "@me/store ^1.0.0".into(),
                bound_to: None,
                candidates: vec!["one".into()],
            },
            Slot {
                name: "z".into(),
                wants: String::new(),
                bound_to: Some("far at http://hub.example".into()),
                candidates: Vec::new(),
            },
        ];
        assert_eq!(slots(&bindings, &clips), expected);
    }
}
