//! Versions, and the ranges of versions that clips require for their slots.
//!
//! | written | means |
//! |---|---|
//! | nothing, `*` | any version |
//! | `1.2.3`, `=1.2.3` | that version |
//! | `1`, `1.2`, `1.x` | every version that starts with these numbers |
//! | `^1.2.3` | from `1.2.3` up to the next change of the first number that is not 0 |
//! | `~1.2.3` | from `1.2.3` up to the next minor version |
//! | `>`, `>=`, `<`, `<=` | as in arithmetic; `>1.2` begins after all of `1.2` |
//! | `1.2 - 2` | from `1.2.0` to the last version that starts with `2` |
//! | `a b`, `a, b` | versions in both ranges |
//! | `a \|\| b` | versions in either range |
//!
//! A leading `v` and everything after a `+` are ignored. A prerelease comes before its release, and does not belong to a
//! range that ends below that release: `2.0.0-beta` is not in `^1`. A text that is not a version is compared as text,
//! ignoring case.

use std::cmp::Ordering;
use std::str::FromStr;

/// A version: three numbers and an optional prerelease.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    numbers: [u64; 3],
    stage: Stage,
}

/// Prereleases in their order, then the release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Before(Vec<Word>),
    Release,
}

/// One part of a prerelease; numbers come before names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Number(u64),
    Name(String),
}

impl Version {
    fn release(numbers: [u64; 3]) -> Self {
        Self {
            numbers,
            stage: Stage::Release,
        }
    }

    /// Returns the lowest prerelease of a version, a lower bound of everything that belongs to the version.
    fn threshold(numbers: [u64; 3]) -> Self {
        Self {
            numbers,
            stage: Stage::Before(vec![Word::Number(0)]),
        }
    }

    /// Reports whether it is a release and not a prerelease.
    pub fn is_release(&self) -> bool {
        self.stage == Stage::Release
    }
}

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        match Partial::parse(text).ok_or(NotAVersion)? {
            Partial {
                numbers: [Some(major), Some(minor), Some(patch)],
                stage,
            } => Ok(Self {
                numbers: [major, minor, patch],
                stage,
            }),
            _ => Err(NotAVersion),
        }
    }
}

/// The error for a text that is not a version like `1.2.3` or `1.2.3-beta.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAVersion;

/// Orders two texts as versions. Texts that are not versions come first, in the order of text.
pub fn compare(left: &str, right: &str) -> Ordering {
    match (left.parse::<Version>(), right.parse::<Version>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_), Err(_)) => Ordering::Greater,
        (Err(_), Ok(_)) => Ordering::Less,
        (Err(_), Err(_)) => left.cmp(right),
    }
}

/// A version whose last numbers may be missing.
#[derive(Debug, Clone)]
struct Partial {
    numbers: [Option<u64>; 3],
    stage: Stage,
}

impl Partial {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(before, _)| before);
        let (numbers, words) = match text.split_once('-') {
            Some((numbers, words)) => (numbers, Some(words)),
            None => (text, None),
        };
        let mut found = [None; 3];
        let mut parts = numbers.split('.');
        for slot in &mut found {
            *slot = match parts.next() {
                None | Some("x" | "X" | "*") => None,
                Some(digits) => Some(number(digits)?),
            };
        }
        let is_whole = found[2].is_some();
        let has_gap = found[0].is_none() && found[1].is_some() || found[1].is_none() && is_whole;
        if parts.next().is_some() || has_gap || words.is_some() && !is_whole {
            return None;
        }
        let stage = match words {
            None => Stage::Release,
            Some(words) => Stage::Before(words.split('.').map(word).collect::<Option<_>>()?),
        };
        Some(Self {
            numbers: found,
            stage,
        })
    }

    /// Returns the first version that it covers.
    fn first(&self) -> Version {
        Version {
            numbers: self.numbers.map(Option::unwrap_or_default),
            stage: self.stage.clone(),
        }
    }

    /// Returns the lower bound of the versions after it; `None` if it covers all.
    fn after(&self) -> Option<Version> {
        match self.numbers {
            [None, ..] => None,
            [Some(major), None, _] => Some(Version::threshold([major.checked_add(1)?, 0, 0])),
            [Some(major), Some(minor), None] => {
                Some(Version::threshold([major, minor.checked_add(1)?, 0]))
            }
            [Some(major), Some(minor), Some(patch)] => {
                Some(Version::threshold([major, minor, patch.checked_add(1)?]))
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.numbers[2].is_some()
    }
}

/// Parses digits without leading zeros.
fn number(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let has_zeros = digits.len() > 1 && digits.starts_with('0');
    (is_plain && !has_zeros).then(|| digits.parse().ok())?
}

fn word(text: &str) -> Option<Word> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(text).map(Word::Number);
    }
    let is_name = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name.then(|| Word::Name(text.to_owned()))
}

/// A range of versions. Every text is a range; see the table of this module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    alternatives: Vec<Alternative>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Alternative {
    Any,
    /// All of these bounds hold.
    Within(Vec<Bound>),
    /// The text is not a range; it matches only itself.
    Text(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Bound {
    From(Version),
    After(Version),
    Before(Version),
    UpTo(Version),
    Exactly(Version),
    Never,
}

impl Bound {
    fn holds(&self, version: &Version) -> bool {
        match self {
            Self::From(bound) => version >= bound,
            Self::After(bound) => version > bound,
            Self::Before(bound) => version < bound,
            Self::UpTo(bound) => version <= bound,
            Self::Exactly(bound) => version == bound,
            Self::Never => false,
        }
    }
}

impl Range {
    pub fn parse(text: &str) -> Self {
        let alternatives = text.split("||").map(|alternative| {
            let alternative = alternative.trim();
            match bounds(alternative) {
                Some(bounds) if bounds.is_empty() => Alternative::Any,
                Some(bounds) => Alternative::Within(bounds),
                None => Alternative::Text(bare(alternative).to_owned()),
            }
        });
        Self {
            alternatives: alternatives.collect(),
        }
    }

    /// Reports whether a version is in the range. A text that is not a version is only in the range `*` and in a range
    /// of the same text.
    pub fn contains(&self, version: &str) -> bool {
        let parsed = version.parse::<Version>();
        self.alternatives
            .iter()
            .any(|alternative| match (alternative, &parsed) {
                (Alternative::Any, _) => true,
                (Alternative::Text(text), _) => text.eq_ignore_ascii_case(bare(version)),
                (Alternative::Within(bounds), Ok(version)) => {
                    bounds.iter().all(|bound| bound.holds(version))
                }
                (Alternative::Within(_), Err(_)) => false,
            })
    }
}

/// Removes surrounding space and a leading `v`.
fn bare(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix(['v', 'V']).unwrap_or(text)
}

/// Parses the bounds of one alternative. No bounds mean any version; `None` means that it is not a range.
fn bounds(text: &str) -> Option<Vec<Bound>> {
    let mut bounds = Vec::new();
    let mut words = text
        .split(|letter: char| letter == ',' || letter.is_whitespace())
        .filter(|word| !word.is_empty())
        .peekable();
    while let Some(word) = words.next() {
        let split = word.find(|letter: char| !"^~<>=".contains(letter));
        let (operator, rest) = word.split_at(split.unwrap_or(word.len()));
        // An operator may be separated from its version by space.
        let rest = match rest {
            "" => words.next()?,
            rest => rest,
        };
        let version = Partial::parse(rest)?;
        if operator.is_empty() && words.peek() == Some(&"-") {
            words.next();
            let last = Partial::parse(words.next()?)?;
            bounds.push(Bound::From(version.first()));
            bounds.extend(up_to(&last));
        } else {
            compared(operator, &version, &mut bounds)?;
        }
    }
    Some(bounds)
}

/// Returns the bound that includes all versions that `last` covers.
fn up_to(last: &Partial) -> Option<Bound> {
    if last.is_whole() {
        return Some(Bound::UpTo(last.first()));
    }
    last.after().map(Bound::Before)
}

fn compared(operator: &str, version: &Partial, bounds: &mut Vec<Bound>) -> Option<()> {
    let is_any = version.numbers[0].is_none();
    match operator {
        "" | "=" | "==" if version.is_whole() => bounds.push(Bound::Exactly(version.first())),
        "<" | ">" if is_any => bounds.push(Bound::Never),
        "" | "=" | "==" | "^" | "~" | "~>" | ">=" | "<=" if is_any => {}
        "" | "=" | "==" => {
            bounds.push(Bound::From(version.first()));
            bounds.extend(version.after().map(Bound::Before));
        }
        "^" => {
            bounds.push(Bound::From(version.first()));
            bounds.extend(next_incompatible(version).map(Bound::Before));
        }
        "~" | "~>" => {
            bounds.push(Bound::From(version.first()));
            let family = Partial {
                numbers: [version.numbers[0], version.numbers[1], None],
                stage: Stage::Release,
            };
            bounds.extend(family.after().map(Bound::Before));
        }
        ">=" => bounds.push(Bound::From(version.first())),
        ">" if version.is_whole() => bounds.push(Bound::After(version.first())),
        ">" => bounds.push(match version.after() {
            Some(after) => Bound::From(Version::release(after.numbers)),
            None => Bound::Never,
        }),
        "<" if version.is_whole() => bounds.push(Bound::Before(version.first())),
        "<" => bounds.push(Bound::Before(Version::threshold(version.first().numbers))),
        "<=" => bounds.extend(up_to(version)),
        _ => return None,
    }
    Some(())
}

/// Returns the lower bound of the versions that are incompatible with `version`: the first number that is not 0 must
/// not change, or the last written number if all are 0.
fn next_incompatible(version: &Partial) -> Option<Version> {
    let family = match version.numbers {
        [Some(0), Some(0), Some(_)] => version.numbers,
        [Some(0), Some(minor), _] => [Some(0), Some(minor), None],
        [major, ..] => [major, None, None],
    };
    let family = Partial {
        numbers: family,
        stage: Stage::Release,
    };
    family.after()
}

#[cfg(test)]
mod tests;
