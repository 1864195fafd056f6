//! The host context of profiles: directories, environment and trust.

use std::path::Path;

use pinion_config::{Dirs, Trust, TrustFlag};
use pinion_profiles::HostContext;

/// Calls `look` with the context of this process.
pub(crate) fn with<T>(
    dirs: &Dirs,
    trust: &Trust,
    flag: TrustFlag,
    look: impl FnOnce(&HostContext<'_>) -> T,
) -> T {
    let environment = |name: &str| std::env::var(name).ok();
    let trusts = |directory: &Path| match flag {
        TrustFlag::Approve => true,
        TrustFlag::Refuse => false,
        TrustFlag::Unset => trust.is_trusted(directory),
    };
    look(&HostContext {
        home: &dirs.home,
        cwd: &dirs.cwd,
        environment: &environment,
        trusts: &trusts,
        system: Path::new("/etc"),
    })
}
