//! pinion-jsonl
