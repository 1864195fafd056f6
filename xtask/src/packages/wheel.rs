//! The Python wheel, which Python itself packs. Its tag names the oldest glibc, which pip compares with the system's.

use super::{Release, Requirements, packaging};
use crate::shell::{Outcome, root, run};

pub(super) fn make(release: &Release) -> Outcome {
    let Requirements { major, minor } = release.requirements;
    let tag = format!("py3-none-manylinux_{major}_{minor}_{}", release.machine);
    run(&[
        "python3",
        &packaging("python/build_wheel.py").to_string_lossy(),
        &release.binary.to_string_lossy(),
        release.version,
        &tag,
        &root().join("README.md").to_string_lossy(),
        &release.directory.to_string_lossy(),
    ])
}
