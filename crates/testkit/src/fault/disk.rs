//! Disks and files that are full, and a mount that never answers.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// Makes `path` a file on which every write fails with "no space left".
pub fn full_file(path: &Path) -> io::Result<()> {
    let _ = fs::remove_file(path);
    symlink("/dev/full", path)
}

/// A file system in memory with room for very little, mounted over a directory until it is dropped.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts over `path`; the error is the reason why that is not possible here. Requires the right to mount.
    pub fn mount(path: &Path, bytes: u64) -> Result<Self, String> {
        let size = format!("size={bytes},mode=0777");
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "none"])
            .arg(path)
            .output()
            .map_err(|error| format!("mount cannot be run: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Fills the rest with a file of zeros.
    pub fn fill(&self) {
        use io::Write;
        let Ok(mut file) = fs::File::create(self.path.join("ballast")) else {
            return;
        };
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    /// Frees the space again.
    pub fn empty(&self) {
        let _ = fs::remove_file(self.path.join("ballast"));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, since a process under test may still have a file open.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// A file system whose server never answers, like a network mount without its network. Every access blocks until the value
/// is dropped.
#[derive(Debug)]
pub struct SilentMount {
    path: PathBuf,
    /// The server's end. The kernel fails waiting requests when it is closed.
    _server: File,
}

impl SilentMount {
    /// Mounts over `path`; the error is why that is not possible here. Requires the right to mount.
    pub fn mount(path: &Path) -> Result<Self, String> {
        let server = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let server = server.map_err(|error| format!("/dev/fuse: {error}"))?;
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            server.as_raw_fd()
        );
        mount(
            Some("silent"),
            path,
            Some("fuse"),
            MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
            Some(options.as_str()),
        )
        .map_err(|error| format!("mount: {error}"))?;
        Ok(Self {
            path: path.to_owned(),
            _server: server,
        })
    }
}

impl Drop for SilentMount {
    fn drop(&mut self) {
        let _ = umount2(&self.path, MntFlags::MNT_DETACH);
    }
}
