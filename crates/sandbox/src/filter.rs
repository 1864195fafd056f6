//! The seccomp filter: a table of system calls made into a tree of comparisons.

mod assembler;
mod table;

use libc::sock_filter;

use self::assembler::{ALLOW, Block, KILL, errno};
use self::table::{Rule, rules};
use crate::{Allowance, NetworkMode, Policy};

/// The architecture that the kernel reports for native calls.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// Other architectures have no table; no filter is made for them.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

/// The newest call that the table was written for (`mseal`). Newer ones do not exist for confined programs, which must cope
/// with older kernels anyway: a new call must not be a new door.
const NEWEST: u32 = 462;

/// Offsets in the kernel's description of a call.
const NUMBER_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;

/// Assembles the filter of a policy. `None` on an architecture without a table.
pub(crate) fn assemble(policy: &Policy) -> Option<Vec<sock_filter>> {
    if ARCHITECTURE == 0 {
        return None;
    }
    let rules = rules(Choice {
        is_open: policy.network.mode == NetworkMode::Open,
        user_namespaces: policy.allow.contains(&Allowance::UserNamespaces),
    });
    let rules: Vec<_> = rules
        .into_iter()
        .filter(|(_, rule)| !rule.is_disabled())
        .collect();
    let mut program = Block::default();
    program.load(ARCHITECTURE_OFFSET);
    program.unless_equal(ARCHITECTURE, |block| block.answer(KILL));
    program.load(NUMBER_OFFSET);
    // The numbers of x32 are above this one too.
    program.if_above(NEWEST, |block| block.answer(errno(libc::ENOSYS)));
    tree(&mut program, &rules);
    Some(program.finish())
}

/// The parts of a policy that change the filter.
#[derive(Debug, Clone, Copy)]
struct Choice {
    is_open: bool,
    user_namespaces: bool,
}

fn tree(program: &mut Block, rules: &[(u32, Rule)]) {
    match rules {
        [] => program.answer(ALLOW),
        [(number, rule)] => {
            program.unless_equal(*number, |block| block.answer(ALLOW));
            rule.write(program);
        }
        _ => {
            let (low, high) = rules.split_at(rules.len() / 2);
            program.if_at_least(high[0].0, |block| tree(block, high));
            tree(program, low);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
