//! Suggests a model for an unknown name.

use pinion_text::nearest;

use crate::registry::Candidate;

/// `provider/id` of the model whose id is most like `unknown`.
pub(super) fn suggest_model(unknown: &str, candidates: &[Candidate<'_>]) -> Option<String> {
    let supported = || {
        candidates
            .iter()
            .filter(|candidate| candidate.is_supported())
    };
    let ids = || supported().map(|candidate| candidate.id);
    let found = nearest(unknown, ids()).or_else(|| {
        // Routers put the maker before the id, and people leave it out.
        let (_, unknown) = unknown.rsplit_once('/')?;
        nearest(unknown, ids())
    })?;
    let candidate = supported().find(|candidate| candidate.id == found)?;
    Some(format!("{}/{}", candidate.provider, candidate.id))
}
