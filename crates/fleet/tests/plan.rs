//! Reads plans, and reports the mistakes in them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use pinion_fleet::{
    AgentKind, BreakerRules, Failback, Isolation, Micros, OutputFormat, Plan, PlanError, Sharing,
    read_plan,
};
use tempfile::TempDir;

struct PlanDir(TempDir);

impl PlanDir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, text: &str) -> Result<Plan, PlanError> {
        let path = self.write("plan.yaml", text);
        read_plan(&path, &|model| {
            if model.starts_with("mock/") {
                Ok(())
            } else {
                Err(format!("model \"{model}\" is unknown"))
            }
        })
    }

    /// Every problem as `line: message`.
    fn problems(&self, text: &str) -> Vec<String> {
        let error = self
            .read(text)
            .err()
            .unwrap_or_else(|| panic!("nothing wrong with\n{text}"));
        let problems = error.problems.iter();
        problems
            .map(|problem| format!("{}: {}", problem.line, problem.message))
            .collect()
    }
}

#[test]
fn prompts_that_are_not_regular_files_are_refused_and_nothing_blocks() {
    let dir = PlanDir::new();
    let fifo = dir.0.path().join("prompt.md");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (path, why) in [
        ("prompt.md", "is a FIFO, not a regular file"),
        ("/dev/zero", "is a device, not a regular file"),
    ] {
        let text = format!("children: [{{ name: a, model: mock/a, prompt: {{ file: {path} }} }}]");
        let problems = dir.problems(&text);
        assert!(problems[0].contains(why), "{problems:?}");
    }
}

const WHOLE: &str = r#"
tiers:
  top:      [mock/large, mock/medium]
  standard: [mock/medium, mock/small]
defaults: { agent: pinion, tier: standard, timeout: 5m, inactivity: 60s, retries: 1 }
budget: { run: 4.00, child: 1.00 }
parallel: 3
breaker: { failures: 2, cooldown: 10s }
children:
  - { name: security,    prompt: { file: prompts/security.md } }
  - { name: performance, prompt: { text: "Look at {{ input }}" }, tier: top, budget: 0.25, output: json }
  - name: other
    agent: jsonl
    command: [sh, --model, "{{ model }}"]
    prompt: Say {{ name }}
    timeout: 10m
    failback: always
    env: { A: b }
judge:
  tier: top
  prompt: { file: prompts/security.md }
  verdict: { field: decision, exit: { approve: 0, block: 3 } }
"#;

#[test]
fn a_plan_is_read_with_its_defaults() {
    let dir = PlanDir::new();
    dir.write("prompts/security.md", "Find holes in {{ input_path }}.");
    let plan = dir.read(WHOLE).unwrap();
    assert_eq!((plan.name.as_str(), plan.parallel), ("plan", 3));
    assert_eq!(plan.timeout, Duration::from_secs(25 * 60));
    assert_eq!(plan.budget, Some(Micros(4_000_000)));
    let rules = BreakerRules {
        failures: 2,
        cooldown: Duration::from_secs(10),
        ..BreakerRules::default()
    };
    assert_eq!(plan.breaker, rules);
    let [security, performance, other] = &plan.children[..] else {
        panic!("three children");
    };
    assert_eq!(security.models, ["mock/medium", "mock/small"]);
    assert_eq!(security.prompt, "Find holes in {{ input_path }}.");
    assert_eq!(
        (security.retries, security.budget),
        (1, Some(Micros(1_000_000)))
    );
    assert_eq!(
        (security.agent, security.isolation),
        (AgentKind::Pinion, Isolation::Process)
    );
    assert_eq!(security.grace, Duration::from_secs(5));
    assert_eq!(performance.models, ["mock/large", "mock/medium"]);
    assert_eq!(performance.budget, Some(Micros(250_000)));
    assert_eq!(performance.output, OutputFormat::Json { schema: None });
    assert_eq!(other.failback, Failback::Always);
    assert_eq!(other.env, [("A".to_owned(), "b".to_owned())]);
    assert_eq!(other.timeout, Duration::from_secs(600));
    let judge = plan.judge.as_ref().unwrap();
    assert_eq!(
        (judge.name.as_str(), &judge.output),
        ("judge", &OutputFormat::Json { schema: None })
    );
    let verdict = plan.verdict.as_ref().unwrap();
    assert_eq!(
        verdict.exit,
        [("approve".to_owned(), 0), ("block".to_owned(), 3)]
    );
    let kept = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&kept).unwrap(), plan);
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_lines() {
    let dir = PlanDir::new();
    dir.write("prompts/odd.md", "One\ntwo {{ inptu }}\n");
    let problems = dir.problems(
        r#"tiers:
  top: [mock/a, anthropc/b]
defualts: { tier: top }
paralel: 4
budget: { run: lots }
children:
  - { name: a b, prompt: x, tier: botom }
  - { name: c, promt: { file: y } }
  - { name: d, prompt: { file: prompts/missing.md }, retries: -1, timeout: soon }
  - { name: d, prompt: { file: prompts/odd.md }, agent: pinon }
  - { name: judge, prompt: x, model: other/z }
  - { name: e, prompt: x, agent: jsonl, isolation: task }
"#,
    );
    let expected = [
        ("2: ", "model \"anthropc/b\" is unknown"),
        ("2: ", "there is no {{ inptu }}"),
        ("3: ", "did you mean \"defaults\"?"),
        ("4: ", "did you mean \"parallel\"?"),
        ("5: ", "US dollars"),
        ("7: ", "\"a b\" is not a valid name"),
        ("7: ", "there is no tier \"botom\"; use one of top"),
        ("8: ", "did you mean \"prompt\"?"),
        ("8: ", "has no prompt"),
        ("9: ", "\"prompts/missing.md\" cannot be read"),
        ("9: ", "retries must be a whole number"),
        ("9: ", "timeout must be a time"),
        ("10: ", "another child called \"d\""),
        ("10: ", "did you mean \"pinion\"?"),
        ("11: ", "cannot be called \"judge\""),
        ("11: ", "model \"other/z\" is unknown"),
        ("12: ", "needs a command"),
        ("12: ", "only agent pinion can run as a task"),
    ];
    for (line, words) in expected {
        let found = problems
            .iter()
            .any(|problem| problem.starts_with(line) && problem.contains(words));
        assert!(
            found,
            "{line}{words} is missing in\n{}",
            problems.join("\n")
        );
    }
    assert_eq!(problems.len(), expected.len(), "{}", problems.join("\n"));
}

#[test]
fn sharing_of_breakers_is_a_boolean() {
    let dir = PlanDir::new();
    let plan = |breaker: &str| {
        format!("breaker: {breaker}\nchildren: [{{ name: a, prompt: x, model: mock/a }}]\n")
    };
    for (breaker, sharing) in [
        ("{ failures: 2 }", Sharing::UnderHub),
        ("{ shared: true }", Sharing::Always),
        ("{ shared: false }", Sharing::Never),
    ] {
        let read = dir.read(&plan(breaker)).unwrap();
        assert_eq!(read.sharing, sharing, "{breaker}");
        let mut kept = serde_json::to_value(&read).unwrap();
        assert_eq!(serde_json::from_value::<Plan>(kept.clone()).unwrap(), read);
        // Runs from before this setting existed can be resumed.
        kept.as_object_mut().unwrap().remove("sharing").unwrap();
        let old: Plan = serde_json::from_value(kept).unwrap();
        assert_eq!(old.sharing, Sharing::UnderHub);
    }
    for (value, found) in [("yes", "text"), ("1", "a number"), ("[true]", "a list")] {
        assert_eq!(
            dir.problems(&plan(&format!("{{ shared: {value} }}"))),
            [format!(
                "1: shared must be true or false, but this is {found}"
            )]
        );
    }
    let misspelt = dir.problems(&plan("{ sharde: true }"));
    assert!(
        misspelt[0].contains("did you mean \"shared\"?"),
        "{misspelt:?}"
    );
}

#[test]
fn invalid_plans_are_rejected() {
    let dir = PlanDir::new();
    assert!(dir.problems("a: [")[0].contains("not valid YAML"));
    assert!(dir.problems("")[0].contains("no children"));
    assert!(dir.problems("- 1")[0].contains("must be a mapping"));
    assert!(dir.problems("children: []")[0].contains("at least one"));
    let missing = read_plan(&dir.0.path().join("none.yaml"), &|_| Ok(()));
    assert!(missing.unwrap_err().to_string().contains("cannot be read"));
}

#[test]
fn a_problem_in_a_prompt_names_the_file() {
    let dir = PlanDir::new();
    dir.write("p.md", "\n\n{{ results }}");
    let error = dir
        .read("children:\n  - { name: a, prompt: { file: p.md } }\n")
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "p.md:3: there is no {{ results }}; use one of input, input_path, name, run_dir"
    );
}

#[test]
fn a_problem_in_a_long_text_names_its_own_line() {
    let dir = PlanDir::new();
    let wrong = "there is no {{ nme }}; use one of input, input_path, name, run_dir";
    for (text, lines) in [
        (
            "children:\n  - name: a\n    prompt:\n      text: |\n        One\n        {{ name }}\n        {{ nme }}\n\n        again {{ nme }}\n",
            &[7, 9][..],
        ),
        (
            "children:\n  - name: a\n    prompt: >-\n      One\n      two {{nme}}\n",
            &[5],
        ),
        (
            "children:\n  - { name: a, prompt: \"One\\n\\n{{ nme }}\" }\n",
            &[2],
        ),
        (
            "children:\n  - { name: a, prompt: \"\\x7b{ nme }}\" }\n",
            &[2],
        ),
    ] {
        let expected: Vec<String> = lines
            .iter()
            .map(|line| format!("{line}: {wrong}"))
            .collect();
        assert_eq!(dir.problems(text), expected, "{text}");
    }
}
