//! pinion-pi
