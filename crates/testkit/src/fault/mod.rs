//! Ways to make the world around a program fail: readers that are slow, stop or go away, input torn into
//! pieces, disks that fill up, limits that are reached, and a look at what a program left behind.
//!
//! Everything works from outside, on an unchanged binary and without privileges, except [`disk::SmallDisk`],
//! which says so where it may not mount.

pub mod answers;
pub mod disk;
pub mod limits;
pub mod net;
pub mod pipe;
pub mod proc;
