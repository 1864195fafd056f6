//! The output of children: stored to the last byte, parsed as it arrives, never fatal.

use std::fs;

use crate::stage::{Stage, script};

#[test]
fn many_children_lose_no_line() {
    let stage = Stage::offline();
    let (children, lines) = (60, 1000);
    let body = format!(
        r#"for i in $(seq {lines}); do echo "{{\"type\":\"tick\",\"child\":\"$PINION_FLEET_CHILD\",\"n\":$i,\"pad\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}}"; done; echo '{{"type":"done"}}'"#
    );
    let scripts: String = (0..children)
        .map(|index| script(&format!("c{index}"), &body))
        .collect();
    let ran = stage.run(&format!("parallel: 16\nchildren:\n{scripts}"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for index in 0..children {
        let mut expected = String::new();
        for n in 1..=lines {
            expected.push_str(&format!("{{\"type\":\"tick\",\"child\":\"c{index}\",\"n\":{n},\"pad\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}}\n"));
        }
        expected.push_str("{\"type\":\"done\"}\n");
        assert!(
            ran.log(&format!("c{index}.jsonl")) == expected.as_bytes(),
            "c{index} is not what was printed"
        );
        let child = ran.child(&format!("c{index}"));
        let printed = &child["attempts"][0]["printed"];
        assert_eq!(
            (printed["lines"].as_u64(), printed["noise"].as_u64()),
            (Some(lines + 1), Some(0))
        );
    }
}

#[test]
fn children_killed_in_the_middle_of_a_line_cost_that_line() {
    let stage = Stage::offline();
    let body = |n: usize| {
        format!(
            r#"for i in $(seq {n}); do echo '{{"type":"tick"}}'; done; printf '{{"type":"text","text":"half'; kill -9 $$"#
        )
    };
    let scripts: String = (0..20)
        .map(|index| script(&format!("c{index}"), &body(index * 7)))
        .collect();
    let ran = stage.run(&format!(
        "defaults: {{ retries: 0 }}\nparallel: 8\nchildren:\n{scripts}"
    ));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for index in 0..20 {
        let child = ran.child(&format!("c{index}"));
        assert_eq!(child["failure"]["kind"], "crashed", "{child:#}");
        assert_eq!(child["failure"]["signal"], 9);
        let printed = &child["attempts"][0]["printed"];
        assert_eq!(printed["truncated"], 1);
        assert_eq!(printed["lines"], index * 7 + 1);
        assert!(ran.log(&format!("c{index}.jsonl")).ends_with(b"half"));
    }
}

#[test]
fn a_line_without_end_is_cut_and_noise_is_counted() {
    let stage = Stage::offline();
    let endless =
        r#"head -c 100000000 /dev/zero | tr '\0' x; echo; echo warning; echo '{"type":"done"}'"#;
    let ran = stage.run(&format!("children:\n{}", script("a", endless)));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let printed = ran.child("a")["attempts"][0]["printed"].clone();
    assert_eq!(
        (
            printed["cut"].as_u64(),
            printed["noise"].as_u64(),
            printed["lines"].as_u64()
        ),
        (Some(1), Some(1), Some(3))
    );
    assert_eq!(printed["bytes"].as_u64(), Some(100_000_000 + 1 + 8 + 16));
    let log = fs::metadata(ran.directory.join("children/a.jsonl"))
        .unwrap()
        .len();
    assert_eq!(log, 64 * 1024 * 1024 + 1 + 8 + 16);
}

#[test]
fn a_prompt_of_eight_megabytes_arrives() {
    let stage = Stage::offline();
    let body =
        r#"n=$(wc -c); echo "{\"type\":\"text\",\"text\":\"$n bytes\"}"; echo '{"type":"done"}'"#;
    let plan =
        format!("children:\n{}", script("a", body)).replace("prompt: go", "prompt: '{{ input }}'");
    let ran = stage.run_with(&plan, &"x".repeat(8 << 20), &[]);
    assert_eq!(
        ran.child("a")["result"],
        format!("{} bytes", 8 << 20),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_answer_that_is_too_long_to_keep_is_shortened_and_that_is_told() {
    let stage = Stage::offline();
    let body = r#"printf '{"type":"text","text":"'; head -c 5000000 /dev/zero | tr '\0' x; echo '"}'; echo '{"type":"done"}'"#;
    let ran = stage.run(&format!("children:\n{}", script("a", body)));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report = ran.report();
    let warning = report["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("the answer of \"a\" has 5000000 bytes"),
        "{warning}"
    );
    assert!(warning.contains("children/a.jsonl"), "{warning}");
    let result = report["children"][0]["result"].as_str().unwrap();
    assert_eq!(result.len(), 4 << 20);
}
