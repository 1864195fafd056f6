//! Reads the output of children into events.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod adapters;
mod ends;
mod odd_lines;
mod rules;
mod short_events;
