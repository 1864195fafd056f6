//! pinion-testkit
