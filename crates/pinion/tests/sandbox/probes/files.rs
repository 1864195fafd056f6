//! Files outside, hidden files, protected places.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use super::{Places, must_fail, must_work};
use crate::calls::{HERE, at, call, refused, text};

fn write(path: impl AsRef<Path>) -> std::io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

pub fn hidden_by_link(places: &Places) -> Result<(), String> {
    must_fail("reading a secret", fs::read(&places.secret))?;
    must_work("link", symlink(&places.secret, "to-secret"))?;
    must_fail("reading it by a link", fs::read("to-secret"))?;
    must_fail(
        "opening it for both",
        OpenOptions::new().read(true).write(true).open("to-secret"),
    )
}

pub fn write_by_link(places: &Places) -> Result<(), String> {
    let file = places.outside.join("file");
    must_fail("writing outside", write(&file))?;
    must_work("link", symlink(&file, "to-file"))?;
    must_fail("writing by a link", write("to-file"))?;
    must_work("link", symlink(&places.outside, "to-outside"))?;
    must_fail("creating by a link", File::create("to-outside/dir/new"))?;
    must_fail("creating by ..", File::create("../outside/dir/new"))?;
    must_work("link", symlink("../outside/dir/dangling", "dangling"))?;
    must_fail("creating by a dangling link", File::create("dangling"))?;
    let file = text(&file);
    refused("creat", libc::SYS_creat, [at(&file), 0o644, 0, 0, 0, 0], 0)
}

pub fn hard_links(places: &Places) -> Result<(), String> {
    must_fail(
        "a link of a secret",
        fs::hard_link(&places.secret, "secret"),
    )?;
    must_fail("reading it", fs::read("secret"))?;
    let file = places.outside.join("file");
    must_fail("a link of a file outside", fs::hard_link(&file, "other"))?;
    must_fail("writing to it", write("other"))?;
    must_fail(
        "a link of a protected file",
        fs::hard_link(".git/config", "config"),
    )?;
    must_work("a link of an own file", fs::hard_link("file", "again"))?;
    let open = must_work("opening outside", File::open(&file))?;
    let (empty, name) = (text(""), text("by-descriptor"));
    let flags = libc::AT_EMPTY_PATH as usize;
    let arguments = [
        open.as_raw_fd() as usize,
        at(&empty),
        HERE,
        at(&name),
        flags,
        0,
    ];
    refused("a link of a descriptor", libc::SYS_linkat, arguments, 0)?;
    let path = text(format!("/proc/self/fd/{}", open.as_raw_fd()));
    let flags = libc::AT_SYMLINK_FOLLOW as usize;
    refused(
        "a link by proc",
        libc::SYS_linkat,
        [HERE, at(&path), HERE, at(&name), flags, 0],
        0,
    )
}

pub fn hidden_renamed(places: &Places) -> Result<(), String> {
    must_fail(
        "moving a hidden directory",
        fs::rename(places.home.join(".ssh"), "ssh"),
    )?;
    must_work("a directory", fs::create_dir("empty"))?;
    let (from, to) = (text("empty"), text(places.home.join(".ssh")));
    let exchange = libc::RENAME_EXCHANGE as usize;
    refused(
        "exchange",
        libc::SYS_renameat2,
        [HERE, at(&from), HERE, at(&to), exchange, 0],
        0,
    )?;
    must_fail(
        "moving a file outside",
        fs::rename("file", places.outside.join("dir/file")),
    )?;
    must_fail(
        "moving a file in",
        fs::rename(places.outside.join("file"), "taken"),
    )
}

pub fn hidden_by_proc(places: &Places) -> Result<(), String> {
    let secret = places.secret.display();
    for detour in [
        format!("/proc/self/root{secret}"),
        format!("/proc/thread-self/root{secret}"),
        "/proc/self/cwd/../home/.ssh/id_test".to_owned(),
        format!("/proc/{}/root{secret}", std::os::unix::process::parent_id()),
    ] {
        must_fail(&detour, fs::read(&detour))?;
    }
    let parent = std::os::unix::process::parent_id();
    for file in ["environ", "mem", "maps", "cwd/work", "fd/0", "fd/3"] {
        let path = format!("/proc/{parent}/{file}");
        must_fail(&path, fs::read(&path))?;
    }
    Ok(())
}

pub fn write_by_proc(places: &Places) -> Result<(), String> {
    let file = places.outside.join("file");
    must_fail(
        "by root",
        write(format!("/proc/self/root{}", file.display())),
    )?;
    must_fail("by cwd", write("/proc/self/cwd/../outside/file"))?;
    let open = must_work("reading outside", File::open(&file))?;
    let number = open.as_raw_fd();
    for path in [
        format!("/proc/self/fd/{number}"),
        format!("/dev/fd/{number}"),
        format!("/proc/thread-self/fd/{number}"),
        format!("/proc/{}/fd/{number}", std::process::id()),
    ] {
        must_fail(&path, write(&path))?;
    }
    let directory = must_work("a directory outside", File::open(&places.outside))?;
    let path = format!("/proc/self/fd/{}/dir/new", directory.as_raw_fd());
    must_fail(&path, File::create(&path))?;
    let parent = std::os::unix::process::parent_id();
    must_fail(
        "a foreign root",
        write(format!("/proc/{parent}/root{}", file.display())),
    )?;
    // The detours to a file of the workspace lead there.
    must_work("an own file by cwd", write("/proc/self/cwd/file"))?;
    let own = must_work("an own file", File::open("file"))?;
    must_work("again", write(format!("/proc/self/fd/{}", own.as_raw_fd()))).map(drop)
}

pub fn outside_names(places: &Places) -> Result<(), String> {
    let directory = places.outside.join("dir");
    must_fail("mkdir", fs::create_dir(directory.join("d")))?;
    must_fail("symlink", symlink("x", directory.join("l")))?;
    must_fail("remove", fs::remove_file(places.outside.join("file")))?;
    must_fail("rmdir", fs::remove_dir(&directory))?;
    let name = text(directory.join("n"));
    for kind in [libc::S_IFIFO, libc::S_IFSOCK, libc::S_IFREG] {
        let mode = (kind | 0o644) as usize;
        refused(
            "mknod",
            libc::SYS_mknodat,
            [HERE, at(&name), mode, 0, 0, 0],
            0,
        )?;
    }
    let flags = libc::O_TMPFILE | libc::O_RDWR;
    let outside = text(&directory);
    refused(
        "a temporary file",
        libc::SYS_openat,
        [HERE, at(&outside), flags as usize, 0o600, 0, 0],
        0,
    )?;
    must_fail(
        "the agent directory",
        fs::create_dir(places.home.join(".pi")),
    )?;
    must_fail("the home directory", File::create(places.home.join("new")))
}

pub fn attributes_outside(places: &Places) -> Result<(), String> {
    let path = places.outside.join("file");
    must_fail(
        "chmod",
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)),
    )?;
    let file = must_work("reading", File::open(&path))?;
    must_fail(
        "fchmod",
        file.set_permissions(fs::Permissions::from_mode(0o777)),
    )?;
    must_fail(
        "times",
        file.set_modified(std::time::SystemTime::UNIX_EPOCH),
    )?;
    let (name, empty) = (text(&path), text(""));
    let (attribute, value) = (text("user.x"), text("y"));
    let number = file.as_raw_fd() as usize;
    let zero = 0_usize;
    for (what, number, arguments) in [
        ("chmod", libc::SYS_chmod, [at(&name), 0o777, 0, 0, 0, 0]),
        (
            "fchmodat2",
            libc::SYS_fchmodat2,
            [
                number,
                at(&empty),
                0o777,
                libc::AT_EMPTY_PATH as usize,
                0,
                0,
            ],
        ),
        ("chown", libc::SYS_chown, [at(&name), 1, 1, 0, 0, 0]),
        ("lchown", libc::SYS_lchown, [at(&name), 1, 1, 0, 0, 0]),
        ("fchown", libc::SYS_fchown, [number, 1, 1, 0, 0, 0]),
        ("utime", libc::SYS_utime, [at(&name), zero, 0, 0, 0, 0]),
        (
            "utimensat",
            libc::SYS_utimensat,
            [number, zero, zero, 0, 0, 0],
        ),
        (
            "setxattr",
            libc::SYS_setxattr,
            [at(&name), at(&attribute), at(&value), 1, 0, 0],
        ),
        (
            "fsetxattr",
            libc::SYS_fsetxattr,
            [number, at(&attribute), at(&value), 1, 0, 0],
        ),
        (
            "removexattr",
            libc::SYS_removexattr,
            [at(&name), at(&attribute), 0, 0, 0, 0],
        ),
        (
            "setxattrat",
            463,
            [number, at(&empty), 0, at(&attribute), 0, 0],
        ),
        ("file_setattr", 469, [number, at(&empty), 0, 0, 0, 0]),
    ] {
        refused(what, number, arguments, 0)?;
    }
    let own = fs::Permissions::from_mode(0o700);
    must_work("chmod inside", fs::set_permissions("file", own))?;
    let set_user = fs::Permissions::from_mode(0o4755);
    must_fail(
        "a program that changes its user",
        fs::set_permissions("file", set_user),
    )
}

pub fn truncate_outside(places: &Places) -> Result<(), String> {
    let name = text(places.outside.join("file"));
    refused(
        "truncate",
        libc::SYS_truncate,
        [at(&name), 0, 0, 0, 0, 0],
        0,
    )?;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_TRUNC);
    must_fail("O_TRUNC", options.open(places.outside.join("file")))?;
    let own = text("file");
    call(libc::SYS_truncate, [at(&own), 3, 0, 0, 0, 0]).map_err(|error| error.to_string())?;
    Ok(())
}

pub fn devices(_: &Places) -> Result<(), String> {
    let name = text("device");
    for kind in [libc::S_IFCHR, libc::S_IFBLK] {
        let mode = (kind | 0o666) as usize;
        let device = libc::makedev(1, 3) as usize;
        refused(
            "a device",
            libc::SYS_mknodat,
            [HERE, at(&name), mode, device, 0, 0],
            0,
        )?;
    }
    for path in [
        "/dev/kmsg",
        "/dev/mem",
        "/dev/tty",
        "/dev/vda",
        "/dev/fuse",
        "/dev/loop-control",
    ] {
        must_fail(path, OpenOptions::new().read(true).write(true).open(path))?;
    }
    let mut null = must_work("null", write("/dev/null"))?;
    must_work("writing to it", null.write_all(b"x"))
}

pub fn git_hooks(_: &Places) -> Result<(), String> {
    for path in [
        ".git/hooks/pre-commit",
        ".git/config",
        ".git/config.worktree",
        ".git/info/attributes",
        ".gitmodules",
    ] {
        must_fail(
            path,
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(path),
        )?;
    }
    must_fail("a link", symlink("/bin/sh", ".git/hooks/pre-commit"))?;
    must_fail("moving in", fs::rename("file", ".git/hooks/pre-commit"))?;
    must_fail(
        "chmod",
        fs::set_permissions(".git/config", fs::Permissions::from_mode(0o777)),
    )?;
    must_fail("another case", File::create(".GIT/HOOKS/pre-commit"))?;
    must_work("an object", fs::write(".git/objects/x", "x"))?;
    must_work("the index", fs::write(".git/index", "x"))
}

pub fn git_moved(_: &Places) -> Result<(), String> {
    must_fail("moving .git", fs::rename(".git", "x"))?;
    must_fail("moving hooks", fs::rename(".git/hooks", "x"))?;
    must_fail("removing hooks", fs::remove_dir(".git/hooks"))?;
    must_fail("moving info", fs::rename(".git/info", "x"))?;
    must_work("a directory", fs::create_dir_all("new/hooks"))?;
    let (from, to) = (text("new"), text(".git"));
    let exchange = libc::RENAME_EXCHANGE as usize;
    refused(
        "exchange",
        libc::SYS_renameat2,
        [HERE, at(&from), HERE, at(&to), exchange, 0],
        0,
    )?;
    must_fail("moving the workspace", fs::rename("../work", "../gone"))?;
    // Repositories that are made here may have hooks.
    must_work("a new repository", fs::create_dir_all("sub/.git/hooks"))?;
    must_work("its hook", fs::write("sub/.git/hooks/pre-commit", ""))
}

pub fn reserved_names(_: &Places) -> Result<(), String> {
    for name in [
        ".pi", ".agents", ".codex", ".claude", ".cursor", ".gemini", ".vscode", ".idea", ".husky",
        ".VSCode",
    ] {
        must_fail(name, fs::create_dir(name))?;
    }
    for name in [".mcp.json", ".envrc", ".pi"] {
        must_fail(name, File::create(name))?;
        must_fail(name, symlink("file", name))?;
        must_fail(name, fs::hard_link("file", name))?;
    }
    must_fail("below", fs::create_dir_all(".pi/extensions"))
}

pub fn reserved_by_rename(_: &Places) -> Result<(), String> {
    must_work("a directory", fs::create_dir_all("ready/extensions"))?;
    must_work("a file", fs::write("ready/extensions/x.ts", ""))?;
    for name in [".pi", ".vscode", ".Pi", ".v\u{17f}code"] {
        must_fail(name, fs::rename("ready", name))?;
    }
    must_work("another name", fs::rename("ready", ".piano"))
}

pub fn kernel_files(_: &Places) -> Result<(), String> {
    for path in [
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
        "/sys/kernel/mm/ksm/run",
        "/sys/fs/cgroup/cgroup.procs",
        "/proc/self/oom_score_adj",
        "/proc/self/uid_map",
    ] {
        must_fail(path, write(path))?;
    }
    Ok(())
}

/// The other side: work that must succeed, or the refusals above would prove nothing.
pub fn ordinary_work(_: &Places) -> Result<(), String> {
    must_work("mkdir", fs::create_dir_all("a/b"))?;
    must_work("write", fs::write("a/b/c", "text"))?;
    must_work("rename", fs::rename("a/b", "a/d"))?;
    let mut read = String::new();
    let mut file = must_work(
        "open",
        OpenOptions::new().read(true).append(true).open("a/d/c"),
    )?;
    must_work("append", file.write_all(b" more"))?;
    must_work(
        "read",
        File::open("a/d/c").and_then(|mut file| file.read_to_string(&mut read)),
    )?;
    if read != "text more" {
        return Err(format!("read {read:?}"));
    }
    must_work(
        "new",
        OpenOptions::new().write(true).create_new(true).open("new"),
    )?;
    let again = OpenOptions::new().write(true).create_new(true).open("new");
    if again.map_err(|error| error.kind()).err() != Some(std::io::ErrorKind::AlreadyExists) {
        return Err("create_new did not report the file".into());
    }
    let missing = write("missing/file").map_err(|error| error.kind()).err();
    if missing != Some(std::io::ErrorKind::NotFound) {
        return Err(format!("a missing directory was reported as {missing:?}"));
    }
    must_work(
        "times",
        file.set_modified(std::time::SystemTime::UNIX_EPOCH),
    )?;
    must_work("remove", fs::remove_file("a/d/c"))?;
    must_work("remove all", fs::remove_dir_all("a"))?;
    let temporary = std::env::temp_dir().join("x");
    must_work("temporary", fs::write(temporary, "x"))?;
    must_work("memory", call_memory())?;
    let (reader, writer) = must_work("a pipe", std::io::pipe())?;
    let name = format!("/dev/fd/{}", writer.as_raw_fd());
    must_work("a pipe by name", write(name))?;
    drop(reader);
    must_work("nothing", write("/dev/null")).map(drop)
}

fn call_memory() -> std::io::Result<()> {
    let name = text("memory");
    let made = call(libc::SYS_memfd_create, [at(&name), 0, 0, 0, 0, 0]);
    let number = made.map_err(std::io::Error::from_raw_os_error)?;
    write(format!("/proc/self/fd/{number}")).map(drop)
}
