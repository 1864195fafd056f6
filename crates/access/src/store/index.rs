//! Tokens in memory, found by their hash.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::token::Fingerprint;
use crate::{Millis, Principal, Record, TokenId};

/// A token that can be recognised.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) record: Record,
    pub(crate) principal: Principal,
    /// The last use; 0 if never.
    used: AtomicI64,
}

impl Entry {
    pub(super) fn new(record: Record) -> Self {
        Self {
            principal: record.principal(),
            used: AtomicI64::new(record.last_used.unwrap_or(0)),
            record,
        }
    }

    /// Records a use at `now`.
    pub(super) fn used(&self, now: Millis) {
        self.used.fetch_max(now, Ordering::Relaxed);
    }

    fn last_used(&self) -> Option<Millis> {
        Some(self.used.load(Ordering::Relaxed)).filter(|&used| used > 0)
    }
}

/// Entries by hash and by id.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// By the first bytes of the hash. The whole hash is compared in constant time.
    buckets: HashMap<u64, Vec<Arc<Entry>>>,
    by_id: HashMap<TokenId, Arc<Entry>>,
    order: Vec<TokenId>,
}

impl Index {
    pub(super) fn find(&self, fingerprint: &Fingerprint) -> Option<Arc<Entry>> {
        let bucket = self.buckets.get(&fingerprint.bucket())?;
        let same = |entry: &&Arc<Entry>| entry.record.fingerprint == *fingerprint;
        bucket.iter().find(same).cloned()
    }

    pub(super) fn by_id(&self, id: &TokenId) -> Option<Arc<Entry>> {
        self.by_id.get(id).cloned()
    }

    pub(super) fn insert(&mut self, record: Record) {
        let entry = Arc::new(Entry::new(record));
        let record = &entry.record;
        let bucket = self.buckets.entry(record.fingerprint.bucket()).or_default();
        bucket.push(Arc::clone(&entry));
        self.order.push(record.id.clone());
        self.by_id.insert(record.id.clone(), entry);
    }

    pub(super) fn remove(&mut self, id: &TokenId) {
        self.take(id);
        self.order.retain(|other| other != id);
    }

    /// Removes an entry, but not its position in the order.
    fn take(&mut self, id: &TokenId) {
        let Some(entry) = self.by_id.remove(id) else {
            return;
        };
        let place = entry.record.fingerprint.bucket();
        if let Some(bucket) = self.buckets.get_mut(&place) {
            bucket.retain(|other| other.record.id != *id);
            if bucket.is_empty() {
                self.buckets.remove(&place);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Removes entries that have expired by `now`; if there are still `most`, removes the one with the oldest use.
    pub(super) fn evict(&mut self, now: Millis, most: usize) {
        let entries = self.by_id.values();
        let ended = entries.filter(|entry| entry.record.is_expired(now));
        let mut gone: Vec<TokenId> = ended.map(|entry| entry.record.id.clone()).collect();
        if gone.is_empty() && self.len() >= most {
            let idle = self.by_id.values().min_by_key(|entry| entry.last_used());
            gone.extend(idle.map(|entry| entry.record.id.clone()));
        }
        if gone.is_empty() {
            return;
        }
        for id in &gone {
            self.take(id);
        }
        let Self { order, by_id, .. } = self;
        order.retain(|id| by_id.contains_key(id));
    }

    /// Replaces the records, and preserves the last uses that only memory has.
    pub(super) fn adopt(&mut self, mut records: Vec<Record>) {
        self.copy_last_use(&mut records);
        *self = Self::default();
        for record in records {
            self.insert(record);
        }
    }

    /// Writes newer last uses into `records`.
    pub(super) fn copy_last_use(&self, records: &mut [Record]) {
        for record in records {
            if let Some(entry) = self.by_id.get(&record.id) {
                record.last_used = record.last_used.max(entry.last_used());
            }
        }
    }

    /// Reports whether a token was used more than `much` milliseconds after the use in its record.
    pub(super) fn has_newer_use(&self, much: Millis) -> bool {
        self.by_id.values().any(|entry| {
            let written = entry.record.last_used.unwrap_or(0);
            entry.last_used().unwrap_or(0) > written.saturating_add(much)
        })
    }

    /// Returns every record with its last use, in the order of the file.
    pub(super) fn records(&self) -> Vec<Record> {
        let entries = self.order.iter().filter_map(|id| self.by_id.get(id));
        let records = entries.map(|entry| {
            let mut record = entry.record.clone();
            record.last_used = entry.last_used();
            record
        });
        records.collect()
    }
}
