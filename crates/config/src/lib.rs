//! pinion-config
