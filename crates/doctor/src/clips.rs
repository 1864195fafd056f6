//! Clips that cannot be started, because the program that runs them is missing.

use std::path::Path;

use pinion_clip::Programs;
use pinion_clip::install::unstartable;

use crate::Report;

/// Reports the clips of a hub's directory that cannot be started. A directory without clips is fine.
pub fn check_clips(report: &mut Report, root: &Path) {
    match unstartable(root, &Programs::default()) {
        Ok((0, _)) => {}
        Ok((count, problems)) => {
            report.fine("clips", format!("{count} installed in {}", root.display()));
            for problem in problems {
                report.problem("clips", problem.message.into_owned());
            }
        }
        Err(failure) => report.problem("clips", failure.message.into_owned()),
    }
}
