//! A fleet on a terminal: the live table of a run, its progress in lines, and the short report at its end.

mod canvas;
mod layout;
mod progress;
mod short_report;
mod style;
mod table;

pub use progress::{LastPicture, LiveTable, ProgressLines};
pub use short_report::{FinishedRun, short_report};
pub use style::{Palette, is_dumb, terminal_size};
pub use table::REDRAW_INTERVAL;
