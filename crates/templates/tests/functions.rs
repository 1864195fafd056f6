//! The output of every function.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use jiff::tz::TimeZone;
use pinion_templates::{RenderContext, Template, Value, function_names};

fn context() -> RenderContext {
    let stamp: jiff::Timestamp = "2026-11-16T07:10:28.5Z".parse().unwrap();
    RenderContext {
        now: stamp.to_zoned(TimeZone::UTC),
        environment: std::sync::Arc::new(|name| (name == "EDITOR").then(|| "vi".to_owned())),
        seed: Some(7),
        ..RenderContext::default()
    }
}

fn data() -> Value {
    let json = serde_json::json!({
        "text": "Hello World", "n": 3, "f": 2.5, "list": ["b", "a", "c"], "nums": [3, 1, 2],
        "map": {"x": 1, "y": {"z": "deep"}}, "yes": true, "html": "<b>&</b>"
    });
    let mut entries: std::collections::BTreeMap<String, Value> = match Value::from_json(&json) {
        Value::Map(map) => (*map).clone(),
        _ => panic!("an object"),
    };
    let stamp: jiff::Timestamp = "2026-02-03T04:05:06.007Z".parse().unwrap();
    entries.insert(
        "time".to_owned(),
        Value::time(stamp.to_zoned(TimeZone::UTC)),
    );
    Value::map(entries)
}

fn rendered(template: &str) -> Result<String, String> {
    Template::parse("t", template)
        .and_then(|template| template.render(&data(), &context()))
        .map_err(|error| error.to_string())
}

/// Templates and their output. Functions of Go itself are compared with Go in `go.rs`.
const PRINTED: &[(&str, &str)] = &[
    // Go's own.
    (
        r#"{{and 1 0}} {{or 0 "x"}} {{not 0}} {{len .list}} {{index .list 1}} {{slice .list 1}}"#,
        "0 x true 3 a [a c]",
    ),
    (
        r#"{{print 1 2}} {{printf "%03d" 7}} {{println "x"}}"#,
        "1 2 007 x\n",
    ),
    (
        r#"{{html .html}} {{js "'"}} {{urlquery "a b"}}"#,
        r"&lt;b&gt;&amp;&lt;/b&gt; \' a+b",
    ),
    (
        r#"{{eq 1 1}} {{ne 1 1}} {{lt 1 2}} {{le 1 1}} {{gt 1 2}} {{ge 1 2}}"#,
        "true false true true false false",
    ),
    (
        r#"{{range 3}}{{.}}{{end}}{{range $i := 2}}{{$i}}{{else}}x{{end}}{{range 0}}x{{else}}none{{end}}"#,
        "01201none",
    ),
    (
        r#"{{with .none}}a{{else with .n}}{{.}}{{else}}c{{end}}"#,
        "3",
    ),
    // Overrides.
    (
        r#"[{{trim "  a b "}}] {{quote "a"}} {{quote 3}}"#,
        "[a b] `a` `3`",
    ),
    (
        r#"{{add 1 2}} {{add 1 2.5}} {{sub 5 7}} {{sub 1.5 1}} {{mul 3 4}} {{mul 2 0.5}} {{div 7 2}} {{div 7 2.0}} {{div -7 2}}"#,
        "3 3.5 -2 0.5 12 1 3 3.5 -3",
    ),
    (
        r#"{{toDate "2026-01-02T03:04:05Z"}} {{toDate .time}}"#,
        "2026-01-02 2026-02-03",
    ),
    // Text.
    (
        r#"{{upper "aé"}} {{lower "AÉ"}} {{toUpper "a"}} {{toLower "A"}}"#,
        "AÉ aé A a",
    ),
    (
        r#"{{title "hello wide world it's"}} {{untitle "First Try"}} {{swapcase "This Is A.Test"}} {{initials "First Try"}}"#,
        "Hello Wide World It'S first try tHIS iS a.tEST FT",
    ),
    (
        r#"{{trimAll "$" "$5.00$"}} {{trimall "$" "$5$"}} {{trimPrefix "$" "$5"}} {{trimSuffix ".go" "a.go"}}"#,
        "5.00 5 5 a",
    ),
    (
        r#"{{trunc 3 "foooo"}} {{trunc -3 "baaaaar"}} {{trunc -9 "ab"}} [{{trunc 0 "a"}}]"#,
        "foo aar ab []",
    ),
    (
        r#"{{substr 0 3 "fooo"}} {{substr 0 10 "foo"}} {{substr 1 -1 "abc"}} {{substr -1 2 "abc"}} {{substr 1 2 "äöü"}}"#,
        "foo foo bc ab ö",
    ),
    (
        r#"{{replace " " "-" "I Am"}} {{repeat 3 "ab"}} {{nospace " h e y "}}"#,
        "I-Am ababab hey",
    ),
    (
        r#"{{contains "cat" "fair catch"}} {{hasPrefix "cat" "catch"}} {{hasSuffix "cat" "catch"}}"#,
        "true true false",
    ),
    (
        r#"{{indent 2 "a\nb"}}|{{nindent 1 "a\nb"}}|{{indentBlock 1 "a\nb"}}"#,
        "  a\n  b|\n a\n b| a\n b\n",
    ),
    (r#"{{squote 1 "b"}} {{cat "a" nil "b" 3}}"#, "'1' 'b' a b 3"),
    (
        r#"{{.list | join "-"}} {{join "-" "abc"}} [{{join "-" .missing}}] {{list 1 nil 2 | join ","}}"#,
        "b-a-c abc [] 1,2",
    ),
    (
        r#"{{$v := split "$" "foo$bar"}}{{$v._0}}{{$v._1}} {{splitList "," "a,b,"}} {{(splitn "-" 2 "a-b-c")._1}}"#,
        "foobar [a b ] b-c",
    ),
    (
        r#"{{sortAlpha .list}} {{sortAlpha .nums}} {{toString 3.5}} {{toStrings .nums | first | kindOf}}"#,
        "[a b c] [1 2 3] 3.5 string",
    ),
    (
        r#"{{wrap 5 "Hello World"}}|{{wrapWith 5 "\t" "Hello World"}}"#,
        "Hello\nWorld|Hello\tWorld",
    ),
    (
        r#"{{abbrev 5 "hello world"}} {{abbrev 20 "short"}} {{abbrevboth 5 10 "1234 5678 9123"}}"#,
        "he... short ...5678...",
    ),
    (
        r#"{{snakecase "FirstName"}} {{snakecase "HTTPServer"}} {{kebabcase "first name"}} {{camelcase "http_server"}}"#,
        "first_name http_server first-name HttpServer",
    ),
    (
        r#"{{1 | plural "one" "many"}} {{len "two" | plural "one" "many"}}"#,
        "one many",
    ),
    (
        r#"[{{trimRightSpace "a  "}}] [{{trimTrailingWhitespaces "a\n"}}] {{stripNewlines "a\nb"}} {{quoteNewlines "a\nb"}}"#,
        r"[a] [a] a b a\nb",
    ),
    (
        r#"[{{padLeft "a" 3}}] [{{padRight "a" 3}}] [{{rpad "a" 3}}] [{{padCenter "ab" 6}}] [{{padLeft "abc" "2"}}]"#,
        "[  a] [a  ] [a  ] [  ab  ] [abc]",
    ),
    (
        r#"{{env "EDITOR"}}{{env "NONE"}} {{expandenv "$EDITOR-${EDITOR}$"}} {{hello}}"#,
        "vi vi-vi$ Hello!",
    ),
    // Numbers.
    (
        r#"{{add1 3}} {{mod 7 3}} {{max 1 5 3}} {{min 4 2}} {{biggest 1 2}} {{maxf 1 2.5}} {{minf 1.4 2}} {{abs -3}} {{absf -1.5}}"#,
        "4 1 5 2 2 2.5 1.4 3 1.5",
    ),
    (
        r#"{{addf 1.5 2.25}} {{add1f 3.5}} {{subf 4.5 1 3}} {{mulf 1.5 2}} {{divf 5 4 2}}"#,
        "3.75 4.5 0.5 3 0.625",
    ),
    (
        r#"{{floor 1.9}} {{ceil 123.01}} {{round 123.5555 3}} {{round 123.2329999 2 .3}} {{round 123.49999999 0}}"#,
        "1 124 123.556 123.23 123",
    ),
    (
        r#"{{int "42"}} {{int64 3.9}} {{int "0x1f"}} {{int "no"}} {{int true}} {{float64 "1.5"}} {{atoi "12"}} {{atoi "x"}} {{toDecimal 777}}"#,
        "42 3 31 0 1 1.5 12 0 511",
    ),
    (
        r#"{{parseInt "12"}} {{parseFloat "1.25"}} {{currency 3}} {{currency 2.345}} [{{currency "x"}}]"#,
        "12 1.25 3.00 2.35 []",
    ),
    (
        r#"{{until 3}} {{until -2}} {{untilStep 3 9 3}} {{untilStep 0 -4 -2}} {{untilStep 0 4 0}}"#,
        "[0 1 2] [0 -1] [3 6] [0 -2] []",
    ),
    (
        r#"{{seq 5}}|{{seq 0 4}}|{{seq 0 3 10}}|{{seq 3 -3 2}}|{{seq 3 3 2}}|{{seq -2}}|{{seq}}|{{seq 0}}|{{seq 0 1 2 3}}"#,
        "1 2 3 4 5|0 1 2 3 4|0 3 6 9|3||1 0 -1 -2||1 0|",
    ),
    // Lists.
    (
        r#"{{list 1 "a"}} {{tuple 1}} {{first .list}} {{mustFirst .list}} {{last .list}} {{mustLast .list}} {{first list}}"#,
        "[1 a] [1] b b c c <no value>",
    ),
    (
        r#"{{rest .list}} {{mustRest .list}} {{initial .list}} {{mustInitial .list}} {{append .list "d"}} {{push .list 1}}"#,
        "[a c] [a c] [b a] [b a] [b a c d] [b a c 1]",
    ),
    (
        r#"{{mustAppend .list 1}} {{mustPush .list 1}} {{prepend .list "z"}} {{mustPrepend .list 0}} {{concat .list .nums}}"#,
        "[b a c 1] [b a c 1] [z b a c] [0 b a c] [b a c 3 1 2]",
    ),
    (
        r#"{{reverse .list}} {{mustReverse .list}} {{uniq (list 1 1 2)}} {{mustUniq (list 1 1)}} {{without .list "a"}} {{mustWithout .nums 1 2}}"#,
        "[c a b] [c a b] [1 2] [1] [b c] [3]",
    ),
    (
        r#"{{has "a" .list}} {{mustHas 9 .nums}} {{has 1 .missing}} {{compact (list 0 1 "" "a")}} {{mustCompact (list nil)}}"#,
        "true false false [1 a] []",
    ),
    (
        r#"{{mustSlice .list 1 2}} {{chunk 2 .list}} {{mustChunk 3 .list}}"#,
        "[a] [[b a] [c]] [[b a c]]",
    ),
    // Dictionaries.
    (
        r#"{{dict "a" 1 "b"}} {{get .map "x"}} [{{get .map "q"}}] {{hasKey .map "x"}} {{keys .map}} {{values (dict "a" 1)}}"#,
        "map[a:1 b:] 1 [] true [x y] [1]",
    ),
    (
        r#"{{$d := dict "a" 1}}{{$_ := set $d "b" 2}}{{$d}} {{$_ = unset $d "a"}}{{$d}}"#,
        "map[a:1 b:2] map[b:2]",
    ),
    (
        r#"{{pluck "a" (dict "a" 1) (dict "a" 2) (dict "b" 3)}} {{pick .map "x"}} {{omit .map "y"}}"#,
        "[1 2] map[x:1] map[x:1]",
    ),
    (
        r#"{{merge (dict "a" 1) (dict "a" 2 "b" 3)}} {{mergeOverwrite (dict "a" 1) (dict "a" 2)}} {{mustMerge (dict) (dict "x" 1)}} {{mustMergeOverwrite (dict "x" 0) (dict "x" 1)}}"#,
        "map[a:1 b:3] map[a:2] map[x:1] map[x:1]",
    ),
    (
        r#"{{dig "y" "z" "none" .map}} {{dig "y" "q" "none" .map}} {{deepCopy .list}} {{mustDeepCopy 1}} {{deepEqual .list .list}} {{deepEqual 1 1.0}}"#,
        "deep none [b a c] 1 true false",
    ),
    // Conditions.
    (
        r#"{{default "d" .missing}} {{.n | default 9}} {{default 0 ""}} {{empty ""}} {{empty .list}} {{coalesce 0 "" "x"}} {{coalesce nil}}"#,
        "d 3 0 true false x <no value>",
    ),
    (
        r#"{{all 1 "a"}} {{any 0 ""}} {{ternary "yes" "no" true}} {{.yes | ternary 1 2}}"#,
        "true false yes 1",
    ),
    (
        r#"{{typeOf 1}} {{typeOf .list}} {{typeIs "string" "a"}} {{typeIsLike "*int" 1}} {{kindOf .map}} {{kindOf .list}} {{kindIs "float64" 1.5}}"#,
        "int []interface {} true true map slice true",
    ),
    // Encoding.
    (
        r#"{{toJson .html}} {{toRawJson .html}} {{mustToJson .map}} {{mustToRawJson 1.0}} {{toJson 2.5}}"#,
        r#""\u003cb\u003e\u0026\u003c/b\u003e" "<b>&</b>" {"x":1,"y":{"z":"deep"}} 1 2.5"#,
    ),
    (
        "{{toPrettyJson (dict \"a\" (list 1))}} {{mustToPrettyJson 1}}",
        "{\n  \"a\": [\n    1\n  ]\n} 1",
    ),
    (
        r#"{{(fromJson "{\"a\":[1,2]}").a}} {{fromJson "{" | kindOf}} {{mustFromJson "3"}}"#,
        "[1 2] invalid 3",
    ),
    (
        r#"{{toYaml (dict "a" 1 "b" (list "x" "y: z") "c" (dict "d" "e"))}}"#,
        "a: 1\nb:\n    - x\n    - \"y: z\"\nc:\n    d: e\n",
    ),
    (
        r#"{{b64enc "coffee"}} {{b64dec "Y29mZmVl"}} {{b32enc "coffee"}} {{b32dec "MNXWMZTFMU======"}}"#,
        "Y29mZmVl coffee MNXWMZTFMU====== coffee",
    ),
    (
        r#"{{sha1sum "abc"}} {{adler32sum "abc"}}"#,
        "a9993e364706816aba3e25717850c26c9cd0d89d 38600999",
    ),
    (
        r#"{{sha256sum "abc"}}"#,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    ),
    (r#"{{sha512sum "abc" | trunc 16}}"#, "ddaf35a193617aba"),
    (
        r#"{{toUrlField 1.5}} {{toUrlField .list}} {{toUrlField .time}} {{toUrlParameter 3}}"#,
        "1.500000 b,a,c 2026-02-03 3",
    ),
    // Times.
    (
        r#"{{.time}} {{now}}"#,
        "2026-02-03 04:05:06.007 +0000 UTC 2026-11-16 07:10:28.5 +0000 UTC",
    ),
    (
        r#"{{date "Mon, 02 Jan 2006 15:04:05 -0700" .time}} {{htmlDate .time}} {{date "3:04PM _2 Jan 06" .time}}"#,
        "Tue, 03 Feb 2026 04:05:06 +0000 2026-02-03 4:05AM  3 Feb 26",
    ),
    (
        r#"{{date "2006-01-02T15:04:05.000Z07:00 .9 002 __2 Monday" .time}}"#,
        "2026-02-03T04:05:06.007Z  034  34 Tuesday",
    ),
    (
        r#"{{date "05,000 x.00y _2006 Janet 15h 20060102 -07:00 Z07 1234" .time}}"#,
        "06,007 x.00y _2026 Janet 04h 20260203 +00:00 Z 2345",
    ),
    (
        r#"{{dateInZone "15:04 MST" .time "UTC"}} {{date_in_zone "2006" .time "UTC"}} {{htmlDateInZone .time "UTC"}}"#,
        "04:05 UTC 2026 2026-02-03",
    ),
    (
        r#"{{.time | dateModify "-1.5h" | date "15:04"}} {{date_modify "24h" .time | htmlDate}} {{mustDateModify "1m" .time | date "04"}} {{must_date_modify "1m" .time | date "04"}}"#,
        "02:35 2026-02-04 06 06",
    ),
    (
        r#"{{mustToDate "2006-01-02" "2026-05-06" | date "2 January 2006"}} {{unixEpoch .time}} {{date "2006" 0}}"#,
        "6 May 2026 1770091506 1970",
    ),
    (
        r#"{{duration 3725}} {{duration "90"}} {{durationRound "26h"}} {{durationRound "400h"}} {{durationRound .time}} {{ago .time}}"#,
        "1h2m5s 1m30s 1d 16d 9mo 6867h5m22s",
    ),
    (
        r#"{{.time.Format "2006"}} {{.time.Year}} {{.time.Month}} {{.time.Day}} {{.time.Weekday}} {{.time.YearDay}} {{.time.Unix}}"#,
        "2026 2026 February 3 Tuesday 34 1770091506",
    ),
    (
        r#"{{(.time.AddDate 0 1 1).Format "01-02"}} {{.time.Before now}} {{.time.After now}} {{.time.Equal .time}} {{.time.UTC.Hour}} {{.time.IsZero}}"#,
        "03-04 true false true 4 false",
    ),
    // Paths.
    (
        r#"{{base "a/b.go"}} {{dir "a/b.go"}} {{clean "a/./b/../c"}} {{ext "a/b.tar.gz"}} {{isAbs "/a"}} {{base ""}} {{dir "a"}} {{clean "/.."}}"#,
        "b.go a a/c .gz true . . /",
    ),
    (
        r#"{{osBase "a/b"}} {{osDir "/a/b"}} {{osClean "a//b"}} {{osExt "x.y"}} {{osIsAbs "a"}}"#,
        "b /a a/b .y false",
    ),
    // URLs.
    (
        r#"{{with urlParse "HTTP://us%20er:p%40ss@example.com:8080/a%20b/c?x=1&y=2#to%20p"}}{{.scheme}} {{.host}} {{.hostname}} {{.path}} {{.query}} {{.fragment}} {{.userinfo}} [{{.opaque}}]{{end}}"#,
        "http example.com:8080 example.com /a b/c x=1&y=2 to p us%20er:p%40ss []",
    ),
    (
        r#"{{(urlParse "mailto:a@b.c").opaque}} {{(urlParse "http://[::1]:80/").hostname}} {{(urlParse "a/b").path}} {{(urlParse "//h/p").host}}"#,
        "a@b.c ::1 a/b h",
    ),
    (
        r#"{{urlJoin (dict "fragment" "fragment" "host" "host:80" "path" "/path" "query" "query" "scheme" "proto")}} {{urlJoin (dict "scheme" "file" "path" "/a b")}} {{urlJoin (dict "path" "a:b")}}"#,
        "proto://host:80/path?query#fragment file:///a%20b ./a:b",
    ),
    (
        r#"{{urlJoin (urlParse "https://u:p%40@example.com/a%20b?x=1#t")}} {{urlJoin (urlParse "mailto:a@b.c?x")}}"#,
        "https://u:p%40@example.com/a%20b?x=1#t mailto:a@b.c?x",
    ),
    // Regular expressions.
    (
        r#"{{regexMatch "^[a-z]+\\d$" "abc1"}} {{mustRegexMatch "(?i)HELLO" "hello"}} {{regexFind "\\w+" "- ab cd"}} {{mustRegexFind "x" "y"}}"#,
        "true true ab ",
    ),
    (
        r#"{{regexFindAll "[0-9]" "a1b2c3" 2}} {{mustRegexFindAll "\\d" "a1b2" -1}} {{regexSplit "," "a,b,c" -1}} {{mustRegexSplit "," "a,b,c" 2}}"#,
        "[1 2] [1 2] [a b c] [a b,c]",
    ),
    (
        r#"{{regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W"}} {{mustRegexReplaceAll "a" "banana" "o"}} {{regexReplaceAllLiteral "a" "cat" "${1}"}} {{mustRegexReplaceAllLiteral "a" "a" "b"}}"#,
        "-W-xxW- bonono c${1}t b",
    ),
    (
        r#"{{regexQuoteMeta "1.2*3"}} {{replaceRegexp "a1b2" "[0-9]" "_"}} {{replaceRegexp "a" "(" "b"}}"#,
        r"1\.2\*3 a_b_ a",
    ),
    // Markdown.
    (
        r#"{{bold "a"}} {{italic "a"}} {{underline "a"}} {{strikethrough "a"}} {{code "a"}} {{codeBlock "x" "go"}} {{styleBold "a"}}"#,
        "**a** *a* __a__ ~~a~~ `a` ```go\nx\n``` \u{1b}[1ma\u{1b}[0m",
    ),
    // Random values.
    (
        r#"{{has (randomChoice .list) .list}} {{len (randomSubset .list 2)}} {{randomPermute .nums | sortAlpha}} {{randomInt 4 4}} {{randomFloat 2 2}}"#,
        "true 2 [1 2 3] 4 2",
    ),
    (
        r#"{{$i := randomInt 1 6}}{{and (ge $i 1) (le $i 6)}} {{kindOf randomBool}} {{randomString 5 | len}} {{randomStringList 3 2 2 | join "" | len}}"#,
        "true bool 5 6",
    ),
    (
        r#"{{randAlpha 4 | len}} {{randAlphaNum 4 | len}} {{randNumeric 4 | regexMatch "^[0-9]{4}$"}} {{randAscii 4 | len}} {{kindOf (randInt 1 9)}} {{shuffle "ab" | len}}"#,
        "4 4 true 4 int 2",
    ),
    (
        r#"{{regexMatch "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$" uuidv4}}"#,
        "true",
    ),
];

#[test]
fn functions_print_what_they_should() {
    let wrong: Vec<String> = PRINTED
        .iter()
        .filter_map(|(template, expected)| match rendered(template) {
            Ok(text) if text == *expected => None,
            other => Some(format!(
                "{template}\n  expected {expected:?}\n  found    {other:?}"
            )),
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_function_is_in_the_table() {
    let all: String = PRINTED
        .iter()
        .chain(REFUSED)
        .map(|(template, _)| format!("{template} "))
        .collect();
    let words: std::collections::BTreeSet<&str> = all
        .split(|c: char| !(c == '_' || c.is_alphanumeric()))
        .collect();
    let missing: Vec<&str> = function_names()
        .into_iter()
        .filter(|name| !words.contains(name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// Templates that fail, and their errors.
const REFUSED: &[(&str, &str)] = &[
    (
        "{{call .n}}",
        "t:1:3: call: argument 1 is a whole number, expected a function",
    ),
    (r#"{{fail "no luck"}}"#, "t:1:3: fail: no luck"),
    (
        r#"{{urlParse "://x"}}"#,
        "t:1:3: urlParse: unable to parse url \"://x\": missing protocol scheme",
    ),
    (
        r#"{{urlParse "http://h:x/"}}"#,
        "t:1:3: urlParse: unable to parse url \"http://h:x/\": invalid port \":x\" after host",
    ),
    (
        r#"{{urlParse "/a%2"}}"#,
        "t:1:3: urlParse: unable to parse url \"/a%2\": it has a % that begins no escape",
    ),
    (
        r#"{{urlJoin (dict "host" 5)}}"#,
        "t:1:3: urlJoin: the host of an address must be text",
    ),
    ("{{div 1 0}}", "t:1:3: div: the second number is 0"),
    ("{{mod 1 0}}", "t:1:3: mod: the second number is 0"),
    ("{{add 1}}", "t:1:3: add takes 2 arguments, 1 given"),
    (
        "{{round 1}}",
        "t:1:3: round takes 2 to 3 arguments, 1 given",
    ),
    ("{{max}}", "t:1:3: max takes at least 1 argument, 0 given"),
    (
        r#"{{add 1 "x"}}"#,
        "t:1:3: add: argument 2 is text, expected a number",
    ),
    (
        "{{mul 9223372036854775807 2}}",
        "t:1:3: mul: the result is too large for a whole number",
    ),
    (
        "{{.missing | upper}}",
        "t:1:14: upper: argument 1 is nothing, expected text",
    ),
    (
        "a\nb {{ .list | index 1 }}",
        "t:2:14: index: a whole number cannot be indexed",
    ),
    (
        "{{index .list 5}}",
        "t:1:3: index: index 5 is out of range: there are 3 items, counted from 0",
    ),
    (
        "{{.n.x}}",
        "t:1:3: `.x` cannot be read from a whole number: expected a map or a file",
    ),
    (
        "{{.time.Foo}}",
        "t:1:3: a time has no `.Foo`: expected .Format, .Year, .Month, .Day, .Hour, .Minute, .Second, .Weekday, .YearDay, .Unix, .AddDate, .Before, .After, .Equal, .UTC or .Local",
    ),
    (
        "{{.time.Format}}",
        "t:1:3: `.Format` of a time expects a layout such as \"2006-01-02\", nothing was given",
    ),
    (
        "{{.map.x 3}}",
        "t:1:3: `.x` is not a method, but arguments are given to it",
    ),
    (
        "{{range .text}}{{end}}",
        "t:1:9: `range` cannot go through text: expected a list, a map or a whole number",
    ),
    (
        "{{range $a, $b := 3}}{{end}}",
        "t:1:9: a `range` over a whole number has one variable",
    ),
    (
        r#"{{mustToDate "2006-01-02" "x"}}"#,
        "t:1:3: mustToDate: \"x\" is not a time of the form \"2006-01-02\"",
    ),
    (
        r#"{{mustFromJson "{"}}"#,
        "t:1:3: mustFromJson: the text is not JSON from line 1, column 1 on",
    ),
    (
        r#"{{ternary 1 2 3}}"#,
        "t:1:3: ternary: argument 3 is a whole number, expected true or false",
    ),
    (
        r#"{{randomChoice list}}"#,
        "t:1:3: randomChoice: the list is empty",
    ),
    (
        "{{if .n}}{{else}}{{else}}{{end}}",
        "t:1:18: a second `else`: expected `{{end}}`",
    ),
    (
        "x\n  {{if .n}}\n{{if .n}}{{end}}",
        "t:2:3: this `if` has no end: expected `{{end}}`",
    ),
    (
        "{{.n .n}}",
        "t:1:3: `.n` is not a method, but arguments are given to it",
    ),
    (
        "{{1 2}}",
        "t:1:5: arguments are given to what is not a function: expected `|` or `}}`",
    ),
    (
        "{{.n | 3}}",
        "t:1:8: a literal cannot take the value in front of `|`: expected a function",
    ),
    (
        r#"{{"a"#,
        "t:1:3: the text has no end: expected a closing `\"` on the same line",
    ),
    ("{{/* a }}", "t:1:3: the comment has no end: expected `*/`"),
    (
        "{{/* a */ .n}}",
        "t:1:11: expected `}}` right after the comment; a comment is an action of its own",
    ),
    ("{{break}}", "t:1:1: `break` stands outside of a `range`"),
    (
        "{{#if}}",
        "t:1:3: unexpected character '#' in an action: expected a field, a variable, a function, a literal or `}}`",
    ),
    (
        "{{12abc}}",
        "t:1:3: `12abc` is not a number: expected one such as 42, 0x2a or 1.5e3",
    ),
    (
        r#"{{define "a"}}x{{end}}{{define "a"}}y{{end}}"#,
        "t:1:23: template \"a\" is defined twice",
    ),
    (
        r#"{{if .n}}{{define "a"}}{{end}}{{end}}"#,
        "t:1:10: `define` stands inside another action: it must be outside of all others",
    ),
    (
        "{{nil}}",
        "t:1:3: `nil` alone is not a command: use it as an argument",
    ),
    ("{{print(1)}}", "t:1:8: expected a blank before `(`"),
    (r#"{{regexMatch "(" "a"}}"#, ""),
];

#[test]
fn failures_say_where_and_what() {
    for (template, expected) in REFUSED {
        let message = rendered(template).unwrap_err();
        if expected.is_empty() {
            continue;
        }
        assert_eq!(&message.trim_end_matches('\n'), expected, "{template}");
    }
}
