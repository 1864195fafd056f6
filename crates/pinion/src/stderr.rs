//! Messages on standard error.

/// Prints a line to standard error like the macro of the same name in `std`, which it replaces in this crate: that one
/// panics if the reader of standard error is gone.
macro_rules! eprintln {
    () => { eprint!("\n") };
    ($($argument:tt)*) => { eprint!("{}\n", format_args!($($argument)*)) };
}

/// Prints to standard error without the end of a line. See [`eprintln`].
macro_rules! eprint {
    ($($argument:tt)*) => {{
        // There is no other place to report a failure.
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!($($argument)*));
    }};
}
