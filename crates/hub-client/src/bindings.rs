//! The slots of a clip, and the clips that fit them.

use std::collections::BTreeSet;

use pinion_clip::version::Range;
use pinion_proto::hub::{ClipBinding, ClipInfo, DependencySlot, GetBindingsResponse};
use pinion_proto::{Message, Text};
use serde_json::Value;

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

impl Slot {
    /// Returns the cells of the slot in a table: name, package and clip.
    pub fn row(&self) -> Vec<String> {
        let bound_to = self.bound_to.as_deref().unwrap_or("-");
        [&self.name, &self.wants, bound_to]
            .map(str::to_owned)
            .to_vec()
    }

    /// Returns the cells of the slot with the clips that fit it.
    pub fn row_with_candidates(&self) -> Vec<String> {
        let mut row = self.row();
        row.push(if self.candidates.is_empty() {
            "-".to_owned()
        } else {
            self.candidates.join(", ")
        });
        row
    }
}

/// Removes all slots but one. The result is empty if the clip does not have it.
pub fn keep_slot(bindings: &mut GetBindingsResponse, only: &str) {
    let is_it = |name: &Text| name.as_str() == only;
    bindings.dependency_slots.retain(|name, _| is_it(name));
    bindings.bindings.retain(|name, _| is_it(name));
}

/// Returns the bindings as JSON, with the clips that fit each slot.
pub fn candidates_json(bindings: &GetBindingsResponse, slots: &[Slot]) -> Value {
    let mut json: Value = serde_json::from_str(&bindings.to_json()).unwrap_or_default();
    let candidates = slots.iter().map(|slot| (&*slot.name, &*slot.candidates));
    json["candidates"] = candidates.collect();
    json
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
