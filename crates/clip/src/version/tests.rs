use super::*;
use proptest::prelude::*;

#[test]
fn versions_have_an_order() {
    let ordered = [
        "0.0.1",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.0.1",
        "1.2.0",
        "1.10.0",
        "2.0.0-0",
        "2.0.0",
    ];
    for pair in ordered.windows(2) {
        assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
    }
    assert_eq!(compare("v1.2.3+build.5", " 1.2.3 "), Ordering::Equal);
    assert_eq!(compare("nightly", "0.0.1"), Ordering::Less);
    for wrong in [
        "",
        "1",
        "1.2",
        "1.2.x",
        "1.2.3.4",
        "01.2.3",
        "1.2.3-",
        "1.2.3-a..b",
        "1.2.3-01",
        "a.b.c",
        "-1.2.3",
        "1.2.3-ä",
        "99999999999999999999.0.0",
    ] {
        assert_eq!(wrong.parse::<Version>(), Err(NotAVersion), "{wrong}");
    }
}

#[test]
fn every_form_of_a_range_matches_its_versions() {
    for (range, inside, outside) in [
        ("", "1.2.3 0.0.0 2.0.0-beta nightly", ""),
        ("*", "1.2.3 0.0.0 nightly", ""),
        ("x", "1.2.3", ""),
        ("1.2.3", "1.2.3 v1.2.3 1.2.3+b", "1.2.4 1.2.3-beta nightly"),
        ("=1.2.3", "1.2.3", "1.2.4"),
        ("= v1.2.3", "1.2.3", "1.2.4"),
        ("1", "1.0.0 1.9.9", "0.9.9 2.0.0 2.0.0-beta"),
        ("1.2", "1.2.0 1.2.9", "1.1.9 1.3.0 1.3.0-a"),
        ("1.x", "1.0.0 1.9.9", "2.0.0"),
        ("1.2.X", "1.2.0", "1.3.0"),
        ("1.*.*", "1.2.0", "2.3.0"),
        (
            "^1.2.3",
            "1.2.3 1.9.0 1.3.0-beta",
            "1.2.2 1.2.3-beta 2.0.0 2.0.0-beta",
        ),
        ("^1.2", "1.2.0 1.9.0", "1.1.9 2.0.0"),
        ("^1", "1.0.0 1.9.0", "0.9.9 2.0.0"),
        ("^0.2.3", "0.2.3 0.2.9", "0.2.2 0.3.0 1.0.0"),
        ("^0.0.3", "0.0.3", "0.0.2 0.0.4 0.1.0"),
        ("^0.0", "0.0.0 0.0.9", "0.1.0"),
        ("^0", "0.0.0 0.9.9", "1.0.0"),
        (
            "^1.2.3-beta.2",
            "1.2.3-beta.2 1.2.3-beta.3 1.2.3 1.4.0",
            "1.2.3-beta.1 2.0.0",
        ),
        ("~1.2.3", "1.2.3 1.2.9", "1.2.2 1.3.0"),
        ("~1.2", "1.2.0 1.2.9", "1.3.0"),
        ("~1", "1.0.0 1.9.0", "2.0.0"),
        ("~> 1.2", "1.2.0", "1.3.0"),
        (">=1.2.3", "1.2.3 9.0.0", "1.2.2 1.2.3-rc"),
        (">1.2.3", "1.2.4", "1.2.3"),
        (">1.2", "1.3.0", "1.2.9 1.3.0-a"),
        (">1", "2.0.0", "1.9.9"),
        ("<1.2.3", "1.2.2 1.2.3-rc", "1.2.3"),
        ("<1.2", "1.1.9", "1.2.0 1.2.0-rc"),
        ("<=1.2", "1.2.9", "1.3.0 1.3.0-a"),
        ("<= 1.2.3", "1.2.3", "1.2.4"),
        (">*", "", "1.0.0"),
        (">=*", "1.0.0", ""),
        (">=1.2 <2", "1.2.0 1.9.9", "1.1.0 2.0.0"),
        (">=1.2,<2", "1.2.0 1.9.9", "1.1.0 2.0.0"),
        (">= 1.2 , < 2", "1.2.0 1.9.9", "1.1.0 2.0.0"),
        ("1.2.3 - 2.3.4", "1.2.3 2.3.4", "1.2.2 2.3.5"),
        ("1.2 - 2", "1.2.0 2.9.9", "1.1.9 3.0.0"),
        ("1.2 - 2 <1.5", "1.4.9", "1.5.0"),
        ("^1 || ^3", "1.2.0 3.4.5", "2.0.0 4.0.0"),
        ("1.2.3 || nightly", "1.2.3 Nightly", "1.2.4 daily"),
        ("Nightly", "nightly NIGHTLY vnightly", "1.2.3 nightlies"),
        ("1.2.3.4", "1.2.3.4", "1.2.3"),
        (">=nonsense", ">=NONSENSE", "1.0.0"),
        ("^1 || ", "anything 0.0.1", ""),
    ] {
        let parsed = Range::parse(range);
        for version in inside.split(' ').filter(|version| !version.is_empty()) {
            assert!(parsed.contains(version), "{version} in {range}");
        }
        for version in outside.split(' ').filter(|version| !version.is_empty()) {
            assert!(!parsed.contains(version), "{version} not in {range}");
        }
    }
}

type Numbers = (u64, u64, u64);

/// The meaning of a clause for releases, in plain arithmetic.
fn means(operator: &str, bound: Numbers, parts: usize, version: Numbers) -> bool {
    let cut = |numbers: Numbers| match parts {
        1 => (numbers.0, 0, 0),
        2 => (numbers.0, numbers.1, 0),
        _ => numbers,
    };
    let (start, same) = (cut(bound), cut(version) == cut(bound));
    match operator {
        "" | "=" => same,
        ">" => cut(version) > start,
        ">=" => version >= start,
        "<" => version < start,
        "<=" => cut(version) <= start,
        "~" => version >= start && version.0 == start.0 && (parts == 1 || version.1 == start.1),
        "^" => {
            let fixed = match (start, parts) {
                ((0, 0, _), 3) => version == start,
                ((0, _, _), 2 | 3) => (version.0, version.1) == (0, start.1),
                _ => version.0 == start.0,
            };
            version >= start && fixed
        }
        _ => unreachable!("no such operator"),
    }
}

fn numbers() -> impl Strategy<Value = Numbers> {
    (0..4_u64, 0..4_u64, 0..4_u64)
}

prop_compose! {
    fn clause()(
        operator in prop::sample::select(vec!["", "=", ">", ">=", "<", "<=", "~", "^"]),
        bound in numbers(),
        parts in 1..=3_usize,
        line_dialect in prop::sample::select(vec!["", "v", " "]),
        wild in any::<bool>(),
    ) -> (String, &'static str, Numbers, usize) {
        let line_dialect = if operator.is_empty() && line_dialect == " " { "" } else { line_dialect };
        let written = match (parts, wild) {
            (1, false) => format!("{}", bound.0),
            (1, true) => format!("{}.x", bound.0),
            (2, false) => format!("{}.{}", bound.0, bound.1),
            (2, true) => format!("{}.{}.*", bound.0, bound.1),
            _ => format!("{}.{}.{}", bound.0, bound.1, bound.2),
        };
        (format!("{operator}{line_dialect}{written}"), operator, bound, parts)
    }
}

proptest! {
    #[test]
    fn ranges_agree_with_arithmetic(
        alternatives in prop::collection::vec(prop::collection::vec(clause(), 1..3), 1..3),
        separator in prop::sample::select(vec![" ", ",", ", "]),
        version in numbers(),
    ) {
        let text = |clauses: &Vec<(String, &str, Numbers, usize)>| {
            clauses.iter().map(|clause| clause.0.as_str()).collect::<Vec<_>>().join(separator)
        };
        let range: Vec<String> = alternatives.iter().map(text).collect();
        let range = range.join(" || ");
        let expected = alternatives.iter().any(|clauses| {
            clauses.iter().all(|(_, operator, bound, parts)| means(operator, *bound, *parts, version))
        });
        let written = format!("{}.{}.{}", version.0, version.1, version.2);
        prop_assert_eq!(Range::parse(&range).contains(&written), expected, "{} in {}", written, range);
    }

    #[test]
    fn hyphens_agree_with_arithmetic(first in numbers(), last in numbers(), version in numbers()) {
        let range = format!("{}.{}.{} - {}.{}.{}", first.0, first.1, first.2, last.0, last.1, last.2);
        let written = format!("{}.{}.{}", version.0, version.1, version.2);
        prop_assert_eq!(Range::parse(&range).contains(&written), version >= first && version <= last);
    }

    #[test]
    fn no_range_makes_the_parser_panic(range in any::<String>(), odd in "[0-9x*.^~<>=|, v-]{0,20}", version in any::<String>()) {
        let _ = Range::parse(&range).contains(&version);
        let _ = Range::parse(&odd).contains("1.2.3");
        let _ = compare(&version, &odd);
    }

    #[test]
    fn a_version_is_in_its_own_range(version in "(0|[1-9][0-9]{0,3})(\\.(0|[1-9][0-9]{0,3})){2}(-[a-z]{1,4}(\\.[1-9][0-9]?)?)?") {
        for operator in ["", "=", ">=", "<=", "^", "~"] {
            let range = format!("{operator}{version}");
            prop_assert!(Range::parse(&range).contains(&version), "{} in {}", version, range);
        }
        for operator in [">", "<"] {
            let range = format!("{operator}{version}");
            prop_assert!(!Range::parse(&range).contains(&version), "{} in {}", version, range);
        }
    }
}
