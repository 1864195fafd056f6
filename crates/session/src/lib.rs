//! pinion-session
