//! The system calls that are not simply allowed.

use super::Choice;
use super::assembler::{ALLOW, Block, NOTIFY, errno};
use crate::mutation::is_disabled;

/// The treatment of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The call fails with this error.
    Refuse(i32),
    /// The warden answers.
    Notify,
    /// The warden answers if the flags in this argument open a file for writing.
    NotifyWriting(u32),
    /// The call fails if the argument has one of these bits.
    RefuseBits(u32, u32),
    /// The call fails if the argument, an id of a process, is not 0.
    RefuseOthers(u32),
    /// `setpriority` and `ioprio_set`: the first argument must be a process or group, the second the caller's own.
    RefusePriorityOfOthers { first_scope: u32 },
    /// `ioctl`: terminals are not written to, and flags of files are attributes.
    Ioctl,
    /// `socket`.
    Socket { is_open: bool },
    /// `socketpair`: connected kinds only.
    SocketPair,
}

/// Every flag of `clone` and `unshare` that makes a namespace.
const NEW_NAMESPACES: u32 = 0x0002_0000
    | 0x0200_0000
    | 0x0400_0000
    | 0x0800_0000
    | 0x1000_0000
    | 0x2000_0000
    | 0x4000_0000
    | 0x80;
/// The bits of [`NEW_NAMESPACES`] that `clone` understands; the lowest is part of the signal there.
const NEW_NAMESPACES_OF_CLONE: u32 = NEW_NAMESPACES & !0xff;
const MSG_FASTOPEN: u32 = 0x2000_0000;
const O_TMPFILE_BIT: u32 = 0x40_0000;
/// Flags of `open` that write or create.
const WRITING: u32 =
    libc::O_ACCMODE as u32 | libc::O_CREAT as u32 | libc::O_TRUNC as u32 | O_TMPFILE_BIT;
const SOCKET_KIND: u32 = 0xf;
const STREAM: u32 = libc::SOCK_STREAM as u32;
const DATAGRAM: u32 = libc::SOCK_DGRAM as u32;
const SEQUENCE: u32 = libc::SOCK_SEQPACKET as u32;

/// Requests of `ioctl` that push input into a terminal or change its line discipline, and those that change the flags,
/// version, verity or encryption of a file, which a descriptor for reading is enough for.
const REFUSED_IOCTLS: &[u32] = &[
    0x5412,      // TIOCSTI
    0x541c,      // TIOCLINUX
    0x5423,      // TIOCSETD
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // FS_IOC32_SETFLAGS
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4008_7602, // FS_IOC_SETVERSION
    0x4080_6685, // FS_IOC_ENABLE_VERITY
    0x800c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
    0xc050_6617, // FS_IOC_ADD_ENCRYPTION_KEY
];

/// Returns the rules sorted by number.
pub(super) fn rules(choice: Choice) -> Vec<(u32, Rule)> {
    let mut rules = Vec::new();
    let mut add = |numbers: &[libc::c_long], rule: Rule| {
        rules.extend(numbers.iter().map(|&number| (number as u32, rule)));
    };
    add(REFUSED, Rule::Refuse(libc::EPERM));
    add(MISSING, Rule::Refuse(libc::ENOSYS));
    add(NOTIFIED, Rule::Notify);
    add(&[libc::SYS_openat], Rule::NotifyWriting(2));
    if !choice.user_namespaces {
        add(&[libc::SYS_unshare], Rule::RefuseBits(0, NEW_NAMESPACES));
        add(
            &[libc::SYS_clone],
            Rule::RefuseBits(0, NEW_NAMESPACES_OF_CLONE),
        );
    }
    add(
        &[libc::SYS_sendto, libc::SYS_sendmmsg],
        Rule::RefuseBits(3, MSG_FASTOPEN),
    );
    add(&[libc::SYS_sendmsg], Rule::RefuseBits(2, MSG_FASTOPEN));
    add(
        &[
            libc::SYS_prlimit64,
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_setattr,
            libc::SYS_sched_setparam,
            libc::SYS_sched_setscheduler,
            libc::SYS_migrate_pages,
            libc::SYS_move_pages,
        ],
        Rule::RefuseOthers(0),
    );
    add(
        &[libc::SYS_setpriority],
        Rule::RefusePriorityOfOthers { first_scope: 0 },
    );
    add(
        &[libc::SYS_ioprio_set],
        Rule::RefusePriorityOfOthers { first_scope: 1 },
    );
    add(&[libc::SYS_ioctl], Rule::Ioctl);
    add(
        &[libc::SYS_socket],
        Rule::Socket {
            is_open: choice.is_open,
        },
    );
    add(&[libc::SYS_socketpair], Rule::SocketPair);
    #[cfg(target_arch = "x86_64")]
    {
        add(&[libc::SYS_open], Rule::NotifyWriting(1));
        add(NOTIFIED_OLD, Rule::Notify);
        add(
            &[libc::SYS_iopl, libc::SYS_ioperm],
            Rule::Refuse(libc::EPERM),
        );
        add(
            &[libc::SYS_uselib, libc::SYS__sysctl, libc::SYS_modify_ldt],
            Rule::Refuse(libc::ENOSYS),
        );
    }
    rules.sort_unstable_by_key(|&(number, _)| number);
    rules
}

const REFUSED: &[libc::c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

/// Calls whose arguments are in memory, where they could change after they were judged. Libraries use older ones instead.
const MISSING: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

const NOTIFIED: &[libc::c_long] = &[
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
];

/// Calls that only older architectures have.
#[cfg(target_arch = "x86_64")]
const NOTIFIED_OLD: &[libc::c_long] = &[
    libc::SYS_creat,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_mknod,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
];

impl Rule {
    /// Reports whether a test has disabled this rule.
    pub fn is_disabled(self) -> bool {
        is_disabled(match self {
            Self::Refuse(_) | Self::RefuseBits(..) => "filter-refused",
            Self::Socket { .. } | Self::SocketPair => "filter-sockets",
            Self::Ioctl => "filter-ioctl",
            Self::RefuseOthers(_) | Self::RefusePriorityOfOthers { .. } => "filter-others",
            Self::Notify | Self::NotifyWriting(_) => return false,
        })
    }

    /// Writes the instructions that answer a call with this rule.
    pub fn write(self, block: &mut Block) {
        let refuse = |block: &mut Block| block.answer(errno(libc::EPERM));
        let allow = |block: &mut Block| block.answer(ALLOW);
        let notify = |block: &mut Block| block.answer(NOTIFY);
        match self {
            Self::Refuse(error) => block.answer(errno(error)),
            Self::Notify => notify(block),
            Self::NotifyWriting(index) => {
                block.load_argument(index);
                // Such a descriptor only names a file.
                block.if_any_bit(libc::O_PATH as u32, allow);
                block.if_any_bit(WRITING, notify);
                allow(block);
            }
            Self::RefuseBits(index, bits) => {
                block.load_argument(index);
                block.if_any_bit(bits, refuse);
                allow(block);
            }
            Self::RefuseOthers(index) => {
                block.load_argument(index);
                block.unless_equal(0, refuse);
                allow(block);
            }
            Self::RefusePriorityOfOthers { first_scope } => {
                block.load_argument(0);
                block.if_above(first_scope + 1, refuse);
                block.load_argument(1);
                block.unless_equal(0, refuse);
                allow(block);
            }
            Self::Ioctl => {
                block.load_argument(1);
                for &request in REFUSED_IOCTLS {
                    block.if_equal(request, refuse);
                }
                allow(block);
            }
            Self::Socket { is_open } => {
                block.load_argument(0);
                block.if_equal(libc::AF_UNIX as u32, |block| {
                    block.load_argument(1);
                    block.keep(SOCKET_KIND);
                    block.if_equal(STREAM, allow);
                    block.if_equal(SEQUENCE, allow);
                    notify(block);
                });
                for family in [libc::AF_INET, libc::AF_INET6] {
                    block.if_equal(family as u32, |block| internet(block, is_open));
                }
                block.if_equal(libc::AF_NETLINK as u32, |block| {
                    block.load_argument(2);
                    block.if_equal(libc::NETLINK_ROUTE as u32, allow);
                    notify(block);
                });
                notify(block);
            }
            Self::SocketPair => {
                block.load_argument(1);
                block.keep(SOCKET_KIND);
                block.if_equal(STREAM, allow);
                block.if_equal(SEQUENCE, allow);
                notify(block);
            }
        }
    }
}

fn internet(block: &mut Block, is_open: bool) {
    let allow = |block: &mut Block| block.answer(ALLOW);
    let protocols = |block: &mut Block, allowed: &[i32]| {
        block.load_argument(2);
        for &protocol in allowed {
            block.if_equal(protocol as u32, allow);
        }
        block.answer(NOTIFY);
    };
    block.load_argument(1);
    block.keep(SOCKET_KIND);
    block.if_equal(STREAM, |block| protocols(block, &[0, libc::IPPROTO_TCP]));
    if is_open {
        let datagrams = [
            0,
            libc::IPPROTO_UDP,
            libc::IPPROTO_ICMP,
            libc::IPPROTO_ICMPV6,
        ];
        block.if_equal(DATAGRAM, |block| protocols(block, &datagrams));
    }
    block.answer(NOTIFY);
}
