//! pinion-agent
