//! The shell of the tool `bash`, and features of the kernel.

use std::fs;
use std::path::Path;

use nix::unistd::{AccessFlags, access};

use crate::Report;

/// The oldest kernel that pinion is tested on, for its file descriptors of processes.
const OLDEST_KERNEL: (u32, u32) = (5, 4);

/// Reports the shell of the tool `bash`, which the setting `shellPath` may name.
pub fn check_shell(report: &mut Report, named: Option<&str>) {
    let is_program = |path: &Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    if let Some(named) = named {
        if is_program(Path::new(named)) {
            report.fine("shell", format!("{named} (shellPath)"));
        } else {
            report.problem(
                "shell",
                format!("the setting shellPath is {named:?}, which is not a program. Correct or remove it."),
            );
        }
        return;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let searched = std::env::split_paths(&path).map(|directory| directory.join("bash"));
    let found = std::iter::once("/bin/bash".into())
        .chain(searched)
        .find(|path| is_program(path));
    match found {
        Some(bash) => report.fine("shell", bash.display().to_string()),
        None => report.problem(
            "shell",
            "bash was not found, so commands run in sh, which reads some of them differently. Install bash.",
        ),
    }
}

/// Reports the features of the kernel that pinion uses.
pub fn check_kernel(report: &mut Report) {
    let release = read("/proc/sys/kernel/osrelease");
    let Some(release) = release else {
        report.problem(
            "kernel",
            "/proc is not mounted, so pinion cannot find the processes of commands that it ends. Mount it.",
        );
        return;
    };
    let landlock =
        read("/sys/kernel/security/lsm").map(|list| list.split(',').any(|it| it == "landlock"));
    let namespaces = read("/proc/sys/user/max_user_namespaces").map(|count| count != "0");
    let word = |known: Option<bool>| match known {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    };
    let cgroups = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let features = format!(
        "{release}; landlock {}, user namespaces {}, cgroups 2 {}",
        word(landlock),
        word(namespaces),
        word(Some(cgroups))
    );
    report.fine("kernel", features);
    let (major, minor) = OLDEST_KERNEL;
    if version(&release).is_some_and(|version| version < OLDEST_KERNEL) {
        report.problem(
            "kernel",
            format!("the kernel {release} is older than {major}.{minor}, the oldest that pinion is tested on. Update it."),
        );
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_is_not_a_program_is_a_problem() {
        let mut report = Report::default();
        check_shell(&mut report, Some("/bin/sh"));
        assert_eq!(report.problems(), 0);
        check_shell(&mut report, Some("/etc/passwd"));
        check_shell(&mut report, Some("/nowhere/bash"));
        assert_eq!(report.problems(), 2);
        assert!(report.text().contains("\"/nowhere/bash\""));
    }

    #[test]
    fn releases_are_read_up_to_their_second_number() {
        assert_eq!(version("6.18.5-fc"), Some((6, 18)));
        assert_eq!(version("5.4"), Some((5, 4)));
        assert_eq!(version("x"), None);
        let mut report = Report::default();
        check_kernel(&mut report);
        assert!(report.text().starts_with("kernel "), "{}", report.text());
    }
}
