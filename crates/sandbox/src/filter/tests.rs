//! The filter against an interpreter of its instructions and a plain reading of the rules.

use libc::sock_filter;
use proptest::prelude::*;

use super::assembler::{ALLOW, KILL, NOTIFY, errno};
use super::*;
use crate::{Mode, Network, Reading};

pub(crate) fn policy(mode: NetworkMode) -> Policy {
    Policy {
        mode: Mode::Workspace,
        writable: Vec::new(),
        reading: Reading::AllButHidden,
        hidden: Vec::new(),
        shown: Vec::new(),
        protected: Vec::new(),
        protection: crate::Protection::default(),
        temporary: None,
        home: None,
        network: Network {
            mode,
            ..Network::default()
        },
        limits: crate::Limits::default(),
        environment: Vec::new(),
        escalation: crate::Escalation::default(),
        allow: Vec::new(),
        require_namespaces: false,
    }
}

/// Runs a filter as the kernel does. `words` is the kernel's description of the call.
fn run(program: &[sock_filter], words: &[u32; 16]) -> u32 {
    let mut at = 0;
    let mut value = 0;
    loop {
        let one = program[at];
        at += 1;
        let jump = |holds: bool| usize::from(if holds { one.jt } else { one.jf });
        match one.code {
            0x20 => value = words[one.k as usize / 4],
            0x54 => value &= one.k,
            0x05 => at += one.k as usize,
            0x15 => at += jump(value == one.k),
            0x25 => at += jump(value > one.k),
            0x35 => at += jump(value >= one.k),
            0x45 => at += jump(value & one.k != 0),
            0x06 => return one.k,
            code => panic!("unknown instruction {code:#x}"),
        }
    }
}

fn call(number: libc::c_long, arguments: &[u64]) -> [u32; 16] {
    let mut words = [0; 16];
    words[0] = number as u32;
    words[1] = ARCHITECTURE;
    for (index, argument) in arguments.iter().enumerate() {
        words[4 + 2 * index] = *argument as u32;
        words[5 + 2 * index] = (*argument >> 32) as u32;
    }
    words
}

fn answer(mode: NetworkMode, number: libc::c_long, arguments: &[u64]) -> u32 {
    run(&assemble(&policy(mode)).unwrap(), &call(number, arguments))
}

#[test]
fn calls_are_answered_as_the_table_says() {
    let none = NetworkMode::None;
    let high = 1 << 40;
    let refused = errno(libc::EPERM);
    let missing = errno(libc::ENOSYS);
    let (write, create) = (
        libc::O_WRONLY as u64,
        (libc::O_CREAT | libc::O_RDONLY) as u64,
    );
    let stream = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u64;
    let datagram = libc::SOCK_DGRAM as u64;
    for (number, arguments, expected) in [
        (libc::SYS_read, &[0; 6][..], ALLOW),
        (libc::SYS_openat, &[0, 0, 0], ALLOW),
        (libc::SYS_openat, &[0, 0, write], NOTIFY),
        (libc::SYS_openat, &[0, 0, create | high], NOTIFY),
        (
            libc::SYS_openat,
            &[0, 0, (libc::O_PATH | libc::O_RDWR) as u64],
            ALLOW,
        ),
        (libc::SYS_openat, &[0, 0, (libc::O_DIRECTORY) as u64], ALLOW),
        (libc::SYS_openat, &[0, 0, libc::O_TMPFILE as u64], NOTIFY),
        (libc::SYS_openat2, &[0, 0, 0], missing),
        (libc::SYS_clone3, &[0, 0], missing),
        (libc::SYS_clone, &[17], ALLOW),
        (libc::SYS_clone, &[0x1000_0000 | 17], refused),
        (libc::SYS_unshare, &[0x1000_0000 | high], refused),
        (libc::SYS_unshare, &[0x200], ALLOW),
        (libc::SYS_unshare, &[0x80], refused),
        (libc::SYS_prlimit64, &[0], ALLOW),
        (libc::SYS_prlimit64, &[high], ALLOW),
        (libc::SYS_prlimit64, &[4], refused),
        (libc::SYS_setpriority, &[0, 0, 5], ALLOW),
        (libc::SYS_setpriority, &[0, 9, 5], refused),
        (libc::SYS_setpriority, &[2, 0, 5], refused),
        (libc::SYS_ioprio_set, &[1, 0], ALLOW),
        (libc::SYS_ioprio_set, &[3, 0], refused),
        (libc::SYS_ioctl, &[0, 0x5412], refused),
        (libc::SYS_ioctl, &[0, 0x5412 | high], refused),
        (libc::SYS_ioctl, &[0, 0x5401], ALLOW),
        (libc::SYS_sendto, &[0, 0, 0, 0x2000_0000], refused),
        (libc::SYS_sendmsg, &[0, 0, 0x2000_0000], refused),
        (libc::SYS_sendmmsg, &[0, 0, 0, 0x2000_0000], refused),
        (libc::SYS_sendto, &[0, 0, 0, 0x4000], ALLOW),
        (libc::SYS_io_uring_setup, &[], refused),
        (libc::SYS_socket, &[1, stream, 0], ALLOW),
        (libc::SYS_socket, &[1, datagram, 0], NOTIFY),
        (libc::SYS_socket, &[2, stream, 0], ALLOW),
        (libc::SYS_socket, &[2, stream, 6], ALLOW),
        (libc::SYS_socket, &[2, stream, 262], NOTIFY),
        (libc::SYS_socket, &[2, datagram, 0], NOTIFY),
        (libc::SYS_socket, &[10, stream, 0], ALLOW),
        (libc::SYS_socket, &[16, 3, 0], ALLOW),
        (libc::SYS_socket, &[16, 3, 15], NOTIFY),
        (libc::SYS_socket, &[17, 3, 0], NOTIFY),
        (libc::SYS_socketpair, &[1, stream, 0], ALLOW),
        (libc::SYS_socketpair, &[1, datagram, 0], NOTIFY),
        (libc::SYS_connect, &[], NOTIFY),
        (463, &[], missing),
        (0x4000_0000 | libc::SYS_read, &[], missing),
    ] {
        assert_eq!(
            answer(none, number, arguments),
            expected,
            "call {number} {arguments:x?}"
        );
    }
    assert_eq!(
        answer(NetworkMode::Open, libc::SYS_socket, &[2, datagram, 0]),
        ALLOW
    );
    assert_eq!(
        answer(NetworkMode::Open, libc::SYS_socket, &[2, 3, 1]),
        NOTIFY
    );
    let mut foreign = call(libc::SYS_read, &[]);
    foreign[1] = 0x4000_0003;
    assert_eq!(run(&assemble(&policy(none)).unwrap(), &foreign), KILL);
}

proptest! {
    /// Every rule is found in the tree, and no other number gets an answer but "allowed".
    #[test]
    fn the_tree_finds_the_rule_of_each_number(number in 0_u32..600, arguments in any::<[u64; 6]>()) {
        let program = assemble(&policy(NetworkMode::None)).unwrap();
        let found = run(&program, &call(number.into(), &arguments));
        let rules = rules(Choice { is_open: false, user_namespaces: false });
        let same: Vec<Rule> = rules.iter().filter(|rule| rule.0 == number).map(|rule| rule.1).collect();
        prop_assert!(same.len() <= 1, "two rules for {}", number);
        let expected = match same.first() {
            _ if number > NEWEST => errno(libc::ENOSYS),
            None => ALLOW,
            Some(rule) => {
                let mut alone = Block::default();
                rule.write(&mut alone);
                run(&alone.finish(), &call(number.into(), &arguments))
            }
        };
        prop_assert_eq!(found, expected);
    }
}
