//! Ways to make the world around a program fail: readers that are slow, stop or go away, input torn into
//! pieces, disks that fill up, limits that are reached, and a look at what a program left behind.
//!
//! Everything works from outside, on an unchanged binary and without privileges, except [`disk::SmallDisk`],
//! [`disk::SilentMount`] and [`stalling_mount::StallingMount`], whose error is why they cannot be mounted.

pub mod answers;
pub mod disk;
pub mod limits;
pub mod net;
pub mod pipe;
pub mod proc;
pub mod stalling_mount;
