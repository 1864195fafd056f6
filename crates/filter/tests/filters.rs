//! Outputs of filters.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use pinion_filter::{Filter, Flow, Form, Layout, Problem, Texts};

const PLAIN: Form = Form {
    layout: Layout::Compact,
    texts: Texts::Plain,
};

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Page {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn filtered(code: &str, form: Form, inputs: &[&str]) -> (String, Result<Flow, Problem>) {
    let page = Page::default();
    let filter = Filter::compile(code, form, page.clone()).unwrap();
    let mut flow = Ok(Flow::Next);
    for input in inputs {
        flow = filter.apply(input.as_bytes().to_vec()).await;
        if !matches!(flow, Ok(Flow::Next)) {
            break;
        }
    }
    (page.text(), flow)
}

async fn lines(code: &str, inputs: &[&str]) -> String {
    let (text, flow) = filtered(code, PLAIN, inputs).await;
    assert_eq!(flow.unwrap(), Flow::Next, "{code}");
    text
}

#[tokio::test]
async fn each_output_is_a_line() {
    for (code, input, expected) in [
        (
            ".",
            r#"{"b": 1, "a": [true, null]}"#,
            "{\"b\":1,\"a\":[true,null]}\n",
        ),
        (".[]", r#"["x \"y\"", 2]"#, "x \"y\"\n2\n"),
        (
            ".[] | select(.done | not) | .title",
            r#"[{"done":true,"title":"a"},{"title":"b"}]"#,
            "b\n",
        ),
        ("map(.n) | add", r#"[{"n":1},{"n":2.5}]"#, "3.5\n"),
        (".", "12345678901234567890123", "12345678901234567890123\n"),
        (".", "\"\\ud83d\\ude00\\n\"", "\u{1f600}\n\n"),
        (
            "to_entries | map(\"\\(.key)=\\(.value)\") | join(\",\")",
            r#"{"a":1,"b":2}"#,
            "a=1,b=2\n",
        ),
        ("@tsv, @base64 \"\\(.[0])\"", r#"["a","b"]"#, "a\tb\nYQ==\n"),
        (
            "test(\"^a.c$\"), (. | ascii_upcase)",
            "\"abc\"",
            "true\nABC\n",
        ),
        ("0 | todate", "null", "1970-01-01T00:00:00Z\n"),
        ("empty", "1", ""),
        (".a?", "1", ""),
        ("[limit(3; repeat(1))]", "1", "[1,1,1]\n"),
        ("$ENV | type", "1", "object\n"),
    ] {
        assert_eq!(lines(code, &[input]).await, expected, "{code}");
    }
    assert_eq!(
        lines(".n", &["{\"n\":1}", " \n", "{\"n\":2}"]).await,
        "1\n2\n"
    );
}

#[test]
fn the_functions_of_jq_are_there() {
    for code in [
        "length, utf8bytelength, not, keys, keys_unsorted, values, nulls, add, any, all, flatten, floor, sqrt, tostring, tonumber, type",
        "has(0), in([]), map(.), map_values(.), path(.), paths, leaf_paths, getpath([]), setpath([]; 1), delpaths([]), del(.a), pick(.a)",
        "to_entries, from_entries, with_entries(.), select(.), recurse, env, $ENV, transpose, first, last, nth(0), until(.; .), while(.; .)",
        "range(3), range(1; 3), range(1; 9; 2), repeat(.), inside([]), contains([]), index(1), rindex(1), indices(1), combinations, walk(.)",
        "sort, sort_by(.a), group_by(.a), min, max, min_by(.a), max_by(.a), unique, unique_by(.a), reverse, bsearch(1), splits(\"a\"), split(\"a\")",
        "join(\"\"), ascii_downcase, ascii_upcase, ltrimstr(\"a\"), rtrimstr(\"a\"), startswith(\"a\"), endswith(\"a\"), trim, ltrim, rtrim, explode, implode",
        "test(\"a\"), match(\"a\"), capture(\"a\"), scan(\"a\"), sub(\"a\"; \"b\"), gsub(\"a\"; \"b\"), tojson, fromjson, infinite, nan, isnan, isinfinite, isnormal",
        "now, todate, fromdate, mktime, gmtime, localtime, strftime(\"%Y\"), strptime(\"%Y\"), strflocaltime(\"%Y\")",
        "limit(1; .), first(.), error, error(1), halt, halt_error, debug, stderr, splits(\"a\"; \"g\")",
        "@text, @json, @csv, @tsv, @html, @uri, @sh, @base64, @base64d, abs, toarray",
        "limit(1; repeat(1)), getpath([\"a\"]), ([.[]?] | add), (.. | numbers), objects, arrays, strings, booleans, scalars, iterables, empty",
        "reduce .[]? as $x (0; . + $x), foreach .[]? as $x (0; . + $x), (label $out | break $out), (try error catch .), (.a // 1), (.a |= 1), (.a += 1)",
        "def f($x): $x + 1; f(1), \"\\(1 + 2)\", .[1:2]?, .a?, .a[]?, if . then 1 else 2 end, ltrimstr(1), splits(1), significand, pow(2; 3), log",
    ] {
        for function in code.split(", ") {
            Filter::compile(function, PLAIN, io::sink()).unwrap();
        }
    }
}

#[tokio::test]
async fn people_and_programs_may_have_other_forms() {
    let quoted = Form {
        layout: Layout::Indented,
        texts: Texts::Quoted,
    };
    let (text, _) = filtered(".[]", quoted, &[r#"["x", {"a": [1]}]"#]).await;
    assert_eq!(text, "\"x\"\n{\n  \"a\": [\n    1\n  ]\n}\n");
}

#[tokio::test]
async fn what_is_wrong_with_a_filter_is_said() {
    for (code, words) in [
        (".a | foo", "unknown function foo/0"),
        ("map(.a; .b)", "unknown function map/2"),
        ("$x", "unknown variable $x"),
        ("(.a", "closing parenthesis"),
        (".a | }", "token is expected at character 6"),
        (".a |", "missing at its end"),
        ("", "missing at its end"),
        ("\u{e9} | &", "character 1"),
        ("import \"x\" as x; .", "modules"),
        ("input", "unknown function input/0"),
    ] {
        let said = Filter::compile(code, PLAIN, io::sink()).unwrap_err();
        assert!(said.contains(words), "{code}: {said}");
    }
}

#[tokio::test]
async fn a_filter_that_fails_says_why_after_what_it_made() {
    let (text, flow) = filtered("1, .a, 2", PLAIN, &["[]"]).await;
    assert_eq!(text, "1\n");
    assert!(matches!(flow, Err(Problem::Failed(why)) if why.contains("cannot index")));
    let (_, flow) = filtered("error(\"no luck\")", PLAIN, &["1"]).await;
    assert!(matches!(flow, Err(Problem::Failed(why)) if why == "no luck"));
    for input in ["{", "# [\n1", "1 2", "\u{1}"] {
        let (_, flow) = filtered(".", PLAIN, &[input]).await;
        assert!(
            matches!(flow, Err(Problem::Failed(why)) if why.contains("not JSON")),
            "{input}"
        );
    }
}

#[tokio::test]
async fn halt_ends_it() {
    let (text, flow) = filtered("., halt", PLAIN, &["1", "2"]).await;
    assert_eq!((text.as_str(), flow.unwrap()), ("1\n", Flow::Halt(0)));
}

#[tokio::test]
async fn deep_answers_are_read_and_deeper_ones_refused() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert_eq!(lines("[recurse] | length", &[&deep(9_000)]).await, "9000\n");
    let (_, flow) = filtered(".", PLAIN, &[&deep(200_000)]).await;
    assert!(matches!(flow, Err(Problem::Failed(why)) if why.contains("levels deep")));
}

#[tokio::test]
async fn a_writer_that_is_gone_is_told() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let filter = Filter::compile("repeat(.)", PLAIN, Gone).unwrap();
    let flow = filter.apply(b"1".to_vec()).await;
    assert!(matches!(flow, Err(Problem::Output(_))));
}
