//! Hostile templates, and texts that are hardly templates.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use pinion_templates::{Limits, RenderContext, Template, TemplateErrorKind, Value};
use proptest::prelude::*;

fn rendered(text: &str, data: &Value) -> Result<String, TemplateErrorKind> {
    Template::parse("t", text)
        .and_then(|template| template.render(data, &RenderContext::default()))
        .map_err(|error| error.kind)
}

#[test]
fn too_much_of_anything_is_stopped() {
    let cases = [
        // Loops.
        "{{range 1000000000000}}{{end}}",
        "{{range 100000}}{{range 100000}}x{{end}}{{end}}",
        r#"{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}"#,
        r#"{{define "a"}}{{range 10}}{{template "a" .}}{{end}}{{end}}{{template "a" .}}"#,
        // Output.
        r#"{{$x := repeat 1000000 "0123456789"}}{{range 100}}{{$x}}{{end}}"#,
        // Values that grow with every round.
        r#"{{$x := "ab"}}{{range 60}}{{$x = print $x $x}}{{end}}"#,
        r#"{{$x := list 1}}{{range 60}}{{$x = list $x $x}}{{end}}{{$x}}"#,
        r#"{{$x := list 1}}{{range 60}}{{$x = concat $x $x}}{{end}}{{len $x}}"#,
        r#"{{$x := dict "a" 1}}{{range 1000}}{{$x = dict "a" $x}}{{end}}{{$x}}"#,
        r#"{{$x := "a"}}{{range 40}}{{$x = replace "a" "aaaaaaaaaa" $x}}{{end}}"#,
        // Work inside functions.
        r#"{{$x := until 100000}}{{range 100000}}{{$y := has -1 $x}}{{end}}"#,
        r#"{{$x := repeat 100000 "a"}}{{range 100000}}{{$y := regexMatch "(a|b)*c" $x}}{{end}}"#,
    ];
    // A part of the default limits is enough.
    let context = RenderContext {
        limits: Limits {
            work: Limits::default().work / 20,
            ..Limits::default()
        },
        ..RenderContext::default()
    };
    for text in cases {
        let result = Template::parse("t", text)
            .unwrap()
            .render(&Value::Nil, &context);
        assert!(result.is_err(), "{text}");
    }
}

#[test]
fn too_large_results_are_refused_before_they_are_made() {
    let context = RenderContext {
        environment: std::sync::Arc::new(|_| Some("x".repeat(100_000))),
        ..RenderContext::default()
    };
    for text in [
        r#"{{repeat 1000000000000 "abc"}}"#,
        r#"{{printf "%1000000000d" 1}}"#,
        r#"{{printf "%*d" 1000000000 1}}"#,
        "{{until 1000000000}}",
        "{{until -9223372036854775808}}",
        "{{seq 1 1000000000}}",
        r#"{{seq 1e308 "x"}}"#,
        "{{seq 9223372036854775807 0}}",
        "{{seq -9223372036854775808 9223372036854775807}}",
        "{{untilStep 0 9223372036854775807 1}}",
        "{{untilStep 0 -9223372036854775808 -1}}",
        "{{untilStep -9223372036854775808 9223372036854775807 1}}",
        "{{untilStep 9223372036854775807 -9223372036854775808 -1}}",
        r#"{{printf "%1000000d" (until 1000000)}}"#,
        r#"{{printf "%.1000000d" (until 1000000)}}"#,
        r#"{{splitList "" (repeat 33000000 "x")}}"#,
        r#"{{splitList "x" (repeat 33000000 "x")}}"#,
        r#"{{split "" (repeat 33000000 "x")}}"#,
        r#"{{splitn "x" 100000000 (repeat 33000000 "x")}}"#,
        r#"{{regexFindAll "x" (repeat 16000000 "x") -1}}"#,
        r#"{{regexSplit "x" (repeat 16000000 "x") -1}}"#,
        r#"{{printf "%x" (repeat 33000000 "x")}}"#,
        r#"{{expandenv (repeat 1000000 "$LONG")}}"#,
        r#"{{fromJson (print "[" (repeat 8000000 "[],") "0]")}}"#,
        r#"{{mustFromJson (print "[" (repeat 8000000 "[],") "0]")}}"#,
        r#"{{$k := dict (repeat 1000000 "k") 1}}{{$x := list $k}}{{range 16}}{{$x = concat $x $x}}{{end}}{{print $x}}"#,
        r#"{{$x := until 900000}}{{range 60}}{{$x = list $x}}{{end}}{{toYaml $x}}"#,
        r#"{{$x := until 900000}}{{range 60}}{{$x = list $x}}{{end}}{{toPrettyJson $x}}"#,
        "{{randAlpha 100000000000}}",
        "{{randomStringList 1000000 1000000 1000000}}",
        r#"{{indent 1000000000 "a\nb"}}"#,
        r#"{{padLeft "a" 1000000000}}"#,
        r#"{{regexMatch "((a{1000}){1000}){1000}" "a"}}"#,
    ] {
        let result = Template::parse("t", text)
            .unwrap()
            .render(&Value::Nil, &context);
        assert!(result.is_err(), "{text}");
        assert!(peak_memory() < MOST_MEMORY, "{text}");
    }
}

/// The most memory that a template may make the process use, in bytes.
const MOST_MEMORY: u64 = 1 << 30;

/// Returns the peak memory of this process in bytes; 0 if the system does not report it.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.unwrap_or(0_u64) * 1024
}

#[test]
fn work_that_grows_faster_than_its_texts_ends() {
    for text in [
        // Each character of one text is looked up in another.
        r#"{{trimAll (print (repeat 10000000 "b") "a") (repeat 10000000 "a")}}"#,
        // Items that are compared with each other.
        r#"{{$x := until 500}}{{$y := list $x}}{{range 11}}{{$y = concat $y $y}}{{end}}{{len (uniq $y)}}"#,
        // Each match starts with a search to the end of the text.
        r#"{{len (regexFindAll ".*[^A-Z]|[A-Z]" (repeat 1000000 "A") -1)}}"#,
    ] {
        let _ = rendered(text, &Value::Nil);
    }
}

#[test]
fn long_fractions_are_filled_with_zeros() {
    for (text, expected) in [
        (
            r#"{{printf "%.70000f" 0.5}}"#,
            format!("0.5{}", "0".repeat(69_999)),
        ),
        (
            r#"{{printf "%.70000e" 0.5}}"#,
            format!("5.{}e-01", "0".repeat(70_000)),
        ),
        (r#"{{printf "%.70000g" 0.5}}"#, "0.5".to_owned()),
    ] {
        assert_eq!(rendered(text, &Value::Nil).unwrap(), expected, "{text}");
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for (open, close) in [
        ("{{if 1}}", "{{end}}"),
        ("{{range 1}}", "{{end}}"),
        ("{{with 1}}", "{{end}}"),
    ] {
        let text = format!("{}{}", open.repeat(20_000), close.repeat(20_000));
        assert_eq!(rendered(&text, &Value::Nil), Err(TemplateErrorKind::Limit));
    }
    let text = format!("{{{{{}1{}}}}}", "(".repeat(20_000), ")".repeat(20_000));
    assert_eq!(rendered(&text, &Value::Nil), Err(TemplateErrorKind::Limit));
    let chain = format!("{{{{if 0}}}}{}{{{{end}}}}", "{{else if 0}}".repeat(20_000));
    assert_eq!(rendered(&chain, &Value::Nil), Err(TemplateErrorKind::Limit));
    let text = format!("{}x{}", "{{if 1}}".repeat(90), "{{end}}".repeat(90));
    assert_eq!(rendered(&text, &Value::Nil).unwrap(), "x");
}

#[test]
fn large_files_are_no_harm() {
    // Sixty files, a megabyte and a half, read in every round.
    let text = Value::text("0123456789abcdef\n".repeat(1_500));
    let file = |number: i64| {
        Value::object([
            ("Path", Value::text(format!("{number}.go"))),
            ("Content", text.clone()),
            ("StringContent", text.clone()),
            ("RawContent", text.clone()),
        ])
    };
    let data = Value::object([("files", Value::list((0..60).map(file).collect()))]);
    let template = "{{range $i, $f := .files}}{{if lt (add $i 1) (len $.files)}}{{(index $.files $i).Path}},{{end}}{{$f.Content}}{{end}}";
    let printed = rendered(template, &data).unwrap();
    assert_eq!(printed.len(), 60 * 25_500 + 59 * 6 - 10);
}

#[test]
fn limits_can_be_set() {
    let context = RenderContext {
        limits: Limits {
            output: 10,
            work: 1000,
            depth: 5,
        },
        ..RenderContext::default()
    };
    let render = |text: &str| {
        Template::parse("t", text)
            .unwrap()
            .render(&Value::Nil, &context)
    };
    assert_eq!(render("0123456789").unwrap(), "0123456789");
    assert_eq!(render("0123456789a").unwrap_err().code(), "template_limit");
    assert_eq!(
        render("{{range 2000}}{{end}}").unwrap_err().code(),
        "template_limit"
    );
    assert_eq!(
        render("{{((((((1))))))}}").unwrap_err().code(),
        "template_limit"
    );
}

/// Whole numbers, with the ends of their range more often than at random.
fn hostile_number() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -20_i64..20,
        prop::sample::select(vec![
            i64::MIN,
            i64::MIN + 1,
            i64::MAX,
            i64::MAX - 1,
            0,
            1_000_000,
            -1_000_000
        ]),
    ]
}

proptest! {
    #[test]
    fn text_without_actions_is_itself(text in "[^{]{0,200}") {
        prop_assert_eq!(rendered(&text, &Value::Nil).unwrap(), text);
    }

    #[test]
    fn single_braces_are_text(text in "([^{}]|\\{[^{}]|\\}){0,60}") {
        prop_assume!(!text.contains("{{"));
        prop_assert_eq!(rendered(&text, &Value::Nil).unwrap(), text);
    }

    #[test]
    fn no_text_makes_the_parser_fall_over(text in any::<String>()) {
        let _ = rendered(&text, &Value::Nil);
    }

    #[test]
    fn nor_do_words_in_any_order(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "{{", "}}", "{{-", "-}}", " ", "\n", "if", "else", "end", "range", "with", "define", "template", "block",
                "break", "continue", "$x", "$", ".", ".a", ".a.b", ":=", "=", ",", "|", "(", ")", "\"s\"", "`r`", "'c'",
                "1", "-2.5", "0x", "1e", "/*", "*/", "print", "printf \"%d %s\"", "index", "len", "eq", "and", "nil",
                "true", "é", "\\", "\"", "list", "dict", "join", "date", "now",
            ]),
            0..40,
        )
    ) {
        let text = words.concat();
        let data = Value::object([("a", Value::object([("b", Value::Int(1))]))]);
        let first = rendered(&text, &data);
        let spaced = words.join(" ");
        let _ = rendered(&spaced, &data);
        // Error offsets are inside the text.
        if let Err(error) = Template::parse("t", text.as_str()) {
            prop_assert!(error.offset <= text.len());
            prop_assert!(text.is_char_boundary(error.offset));
            prop_assert!(first.is_err());
        }
    }

    #[test]
    fn formats_take_any_verb(format in "[%a-zA-Z0-9.*+# \\[\\]-]{0,24}", number in any::<i64>(), float in any::<f64>()) {
        let data = Value::object([
            ("f", Value::text(format)), ("n", Value::Int(number)), ("x", Value::Float(float)),
        ]);
        let _ = rendered("{{printf .f .n .x \"s\" true nil}}", &data);
    }

    #[test]
    fn lists_of_numbers_are_right_or_refused(
        start in hostile_number(), end in hostile_number(), step in hostile_number()
    ) {
        let (distance, step) = (i128::from(end) - i128::from(start), i128::from(step));
        let expected = if step == 0 || (distance > 0) != (step > 0) {
            0
        } else {
            distance.unsigned_abs().div_ceil(step.unsigned_abs())
        };
        let result = rendered(&format!("{{{{len (untilStep {start} {end} {step})}}}}"), &Value::Nil);
        if expected > 1_000_000 {
            prop_assert!(result.is_err());
        } else {
            prop_assert_eq!(result, Ok(expected.to_string()));
        }
    }

    #[test]
    fn no_function_takes_more_than_its_share(
        name in prop::sample::select(pinion_templates::function_names()),
        arguments in prop::collection::vec(prop::sample::select(vec![
            "0", "1", "-1", "3", "99999999999", "9223372036854775807", "-9223372036854775808", "1.5", "1e308", "nil",
            "true", "\"\"", "\"x\"", "\"aé🥊\"", "\"%9999d\"", "\"%999999999v\"", "\"(a*)*b\"", "(list 1 2 3)",
            "(dict \"a\" 1)", "now", "(until 5000)", "(repeat 100000 \"x\")", "(list)", "\"-1.5h\"", "(dict)",
        ]), 0..5),
    ) {
        let text = format!("{{{{ {name} {} }}}}", arguments.join(" "));
        let _ = rendered(&text, &Value::Nil);
        prop_assert!(peak_memory() < MOST_MEMORY, "{}", text);
    }

    #[test]
    fn layouts_take_any_text(layout in any::<String>(), seconds in -10_000_000_000_i64..10_000_000_000) {
        let data = Value::object([("l", Value::text(layout)), ("s", Value::Int(seconds))]);
        prop_assert!(rendered("{{date .l .s}}", &data).is_ok());
        let _ = rendered("{{mustToDate .l .l}}", &data);
    }
}
