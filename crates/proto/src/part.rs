//! Binary fields by cardinality: their size, writing and reading. A `key` is the number of a field
//! and its wire type, as it precedes the value.

use std::collections::BTreeMap;

use crate::error::DecodeError;
use crate::input::Input;
use crate::text::Text;
use crate::wire::{Output, WireValue, varint_len};

/// The keys inside the entry of a map. Names are strings, and at present all values have a length
/// too.
const MAP_NAME: u32 = 1 << 3 | 2;
const MAP_VALUE: u32 = 2 << 3 | 2;

pub(crate) mod measure {
    use super::{BTreeMap, Text, WireValue, entry_len, varint_len};

    /// Measures a field that is left out if it has its default.
    pub(crate) fn plain<T: WireValue>(key: u32, value: &T) -> usize {
        if value.is_zero() {
            0
        } else {
            present(key, value)
        }
    }

    /// Measures a field that is written with every value.
    pub(crate) fn present<T: WireValue>(key: u32, value: &T) -> usize {
        varint_len(u64::from(key)) + value.len()
    }

    /// Measures a field with presence.
    pub(crate) fn optional<T: WireValue>(key: u32, value: &Option<T>) -> usize {
        value.as_ref().map_or(0, |value| present(key, value))
    }

    /// Measures a repeated field.
    pub(crate) fn list<T: WireValue>(key: u32, values: &[T]) -> usize {
        values.iter().map(|value| present(key, value)).sum()
    }

    /// Measures a map field.
    pub(crate) fn map<T: WireValue>(key: u32, values: &BTreeMap<Text, T>) -> usize {
        let entry = |(name, value)| {
            let length = entry_len(name, value);
            varint_len(u64::from(key)) + varint_len(length as u64) + length
        };
        values.iter().map(entry).sum()
    }
}

pub(crate) mod put {
    use super::{BTreeMap, MAP_NAME, MAP_VALUE, Output, Text, WireValue, entry_len};

    /// Writes a field unless it has its default.
    pub(crate) fn plain<T: WireValue>(out: &mut Output, key: u32, value: &T) {
        if !value.is_zero() {
            present(out, key, value);
        }
    }

    /// Writes a field with any value.
    pub(crate) fn present<T: WireValue>(out: &mut Output, key: u32, value: &T) {
        out.varint(u64::from(key));
        value.put(out);
    }

    /// Writes a field with presence.
    pub(crate) fn optional<T: WireValue>(out: &mut Output, key: u32, value: &Option<T>) {
        if let Some(value) = value {
            present(out, key, value);
        }
    }

    /// Writes a repeated field.
    pub(crate) fn list<T: WireValue>(out: &mut Output, key: u32, values: &[T]) {
        for value in values {
            present(out, key, value);
        }
    }

    /// Writes a map field, sorted by name.
    pub(crate) fn map<T: WireValue>(out: &mut Output, key: u32, values: &BTreeMap<Text, T>) {
        for (name, value) in values {
            out.varint(u64::from(key));
            out.varint(entry_len(name, value) as u64);
            present(out, MAP_NAME, name);
            present(out, MAP_VALUE, value);
        }
    }
}

pub(crate) mod take {
    use super::{BTreeMap, DecodeError, Input, MAP_NAME, MAP_VALUE, Text, WireValue};

    /// Reads a singular field; the last value counts, and messages are merged.
    pub(crate) fn plain<T: WireValue>(value: &mut T, input: &mut Input) -> Result<(), DecodeError> {
        value.take(input)
    }

    /// Reads a field with presence; the last value counts, and messages are merged.
    pub(crate) fn optional<T: WireValue>(
        value: &mut Option<T>,
        input: &mut Input,
    ) -> Result<(), DecodeError> {
        value.get_or_insert_default().take(input)
    }

    /// Reads one more value of a repeated field.
    pub(crate) fn list<T: WireValue>(
        values: &mut Vec<T>,
        input: &mut Input,
    ) -> Result<(), DecodeError> {
        let mut value = T::default();
        value.take(input)?;
        values.push(value);
        Ok(())
    }

    /// Reads one more entry of a map; the last entry of a name counts.
    pub(crate) fn map<T: WireValue>(
        values: &mut BTreeMap<Text, T>,
        input: &mut Input,
    ) -> Result<(), DecodeError> {
        let (mut name, mut value) = (Text::default(), T::default());
        input.inside(|input| {
            while let Some(key) = input.key()? {
                match key {
                    MAP_NAME => name.take(input)?,
                    MAP_VALUE => value.take(input)?,
                    _ => input.skip(key)?,
                }
            }
            Ok(())
        })?;
        values.insert(name, value);
        Ok(())
    }
}

fn entry_len<T: WireValue>(name: &Text, value: &T) -> usize {
    measure::present(MAP_NAME, name) + measure::present(MAP_VALUE, value)
}
