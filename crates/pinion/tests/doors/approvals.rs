//! A command that is not on the allow list does not run, however it is disguised. The test also checks that the
//! disguises work: each of them does its harm without approvals.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Client, offline_sandbox, script};

/// The rules while the disguises are tried.
const ALLOWED: &[&str] = &[
    "bash(git status *)",
    "bash(echo *)",
    "bash(printf *)",
    "bash(test *)",
    "bash(true)",
    "write(out/**)",
];

/// Commands that each create the file `M`.
const DISGUISES: &[&str] = &[
    "touch M",
    "true; touch M",
    "true;touch M",
    "true && touch M",
    "false || touch M",
    "true | touch M",
    "true |& touch M",
    "true & touch M; wait",
    "true\ntouch M",
    "echo $(touch M)",
    "echo \"$(touch M)\"",
    "echo `touch M`",
    "echo \"`touch M`\"",
    "echo $(echo $(touch M))",
    "echo <(touch M); sleep 0.2",
    "echo a > >(touch M); sleep 0.2",
    "echo > M",
    "echo >> M",
    "echo >| M",
    "echo &> M",
    "echo >& M",
    "echo 2> M",
    "> M",
    "true > M",
    "echo a <> M",
    "X=$(touch M) true",
    "X=$(touch M)",
    "echo ${X:=$(touch M)}",
    "echo ${X:-`touch M`}",
    "echo $(( $(touch M) + 1 ))",
    "a=1; echo $((a[$(touch M)0]))",
    "printf -v 'a[$(touch M)]' x",
    "test -v 'a[$(touch M)]'",
    "(touch M)",
    "{ touch M; }",
    "! touch M",
    "time touch M",
    "if true; then touch M; fi",
    "if touch M; then true; fi",
    "while touch M; do break; done",
    "until touch M; do true; done",
    "for x in a; do touch M; done",
    "for x in $(touch M); do true; done",
    "for ((i=0;i<1;i++)); do touch M; done",
    "for x do true; done; touch M",
    "set -- a; for x do touch M; done",
    "case a in a) touch M;; esac",
    "f() { touch M; }; f",
    "function f { touch M; }; f",
    "git() { touch M; }; git status",
    "echo() { touch M; }; echo",
    "coproc touch M; wait",
    "eval touch M",
    "eval 'touch M'",
    "bash -c 'touch M'",
    "sh -c 'touch M'",
    "echo 'touch M' | sh",
    "sh <<< 'touch M'",
    "sh <<E\ntouch M\nE",
    "echo <<E\n$(touch M)\nE\ntrue <<E\n$(touch M)\nE",
    "env touch M",
    "command touch M",
    "exec touch M",
    "nohup touch M",
    "X=touch; $X M",
    "X='touch M'; $X",
    "X=ouch; t$X M",
    "$(echo touch) M",
    "`echo touch` M",
    "t''ouch M",
    "t\\ouch M",
    "'touch' M",
    "\"touch\" M",
    "$'touch' M",
    "$'\\x74ouch' M",
    "{touch,M}",
    "tou\\\nch M",
    "true \\\n; touch M",
    "echo a #\ntouch M",
    "# echo\ntouch M",
    "echo '# '\ntouch M",
    "echo '\n'; touch M",
    "echo \\'; touch M; echo \\'",
    "echo \"\\\"\"; touch M",
    "echo '\\'; touch M; echo ''",
    "PATH=.:$PATH touch M",
    "trap 'touch M' EXIT; true",
    "alias x=y; touch M",
    "[[ -n $(touch M) || a ]]",
    "[[ -v 'a[$(touch M)]' ]]; true",
    "((a[$(touch M)0]=1))",
    "let 'a[$(touch M)0]=1'",
    "declare -i x='a[$(touch M)0]'",
    "echo | xargs touch M",
    "find . -maxdepth 0 -exec touch M \\;",
    "git status; true && touch M",
    "echo\ttouch\t;\ttouch\tM",
    "echo é;touch M",
    "true\n\n\n\ttouch M",
    "i\\\nf true; then touch M; fi",
    "echo $\\\n(touch M)",
    "echo \"$\\\n(touch M)\"",
    "printf x | tee M",
    "cd . && touch M",
    ". /dev/stdin <<< 'touch M'",
    "source <(echo touch M)",
    "mapfile -C 'touch M #' -c 1 a <<< x",
];

fn does_harm(command: &str, directory: &Path) -> bool {
    let mark = directory.join("M");
    let mut bash = Command::new("bash");
    bash.args(["-c", command]).current_dir(directory);
    let _ = bash.output().unwrap();
    let done = mark.exists();
    let _ = fs::remove_file(mark);
    done
}

fn tool_results(mut messages: Vec<Value>) -> Vec<Value> {
    messages.retain(|message| message["role"] == "toolResult");
    messages
}

#[test]
fn h7_what_is_not_on_the_allow_list_is_not_run() {
    let plain = tempfile::tempdir().unwrap();
    let mut harmless = DISGUISES.to_vec();
    harmless.retain(|command| !does_harm(command, plain.path()));
    assert_eq!(harmless, [""; 0], "these show nothing: they make no file");

    let sandbox = offline_sandbox(&json!({"approvals": {"mode": "deny", "allow": ALLOWED}}));
    let work = sandbox.work();
    let arguments = ["--mode", "rpc", "--model", "offline/demo"];
    let mut client = Client::start(sandbox, &arguments);
    for commands in DISGUISES.chunks(20) {
        let calls: Vec<Value> = commands
            .iter()
            .map(|command| json!({"tool": "bash", "args": {"command": command}}))
            .collect();
        let turns = json!({"turns": [calls, {"text": "Done."}]});
        let from = client.prompt(&script(&turns));
        let results = tool_results(client.wait_end(from));
        assert_eq!(results.len(), commands.len());
        for (command, result) in commands.iter().zip(&results) {
            let outcome = &result["details"]["approval"]["outcome"];
            assert_eq!(outcome, "not-allowed", "{command:?}: {result}");
        }
        assert!(!work.join("M").exists());
    }
}

/// Each path leads out of `out`, the only directory that may be written to.
#[test]
fn h7_no_path_leads_out_of_what_is_allowed() {
    let sandbox = offline_sandbox(&json!({"approvals": {"mode": "deny", "allow": ALLOWED}}));
    let work = sandbox.work();
    let outside = sandbox.root().join("outside");
    fs::create_dir_all(work.join("out/sub")).unwrap();
    fs::create_dir(&outside).unwrap();
    for (link, target) in [
        ("out/up", ".."),
        ("out/away", "../../outside"),
        ("out/file", "../M"),
        ("out/chain", "up"),
        ("out/sub/new", "../../../outside/new"),
    ] {
        std::os::unix::fs::symlink(target, work.join(link)).unwrap();
    }
    let absolute = format!("{}/out/../M", work.display());
    let through = format!("{}/out/away/../work/M", work.display());
    let paths = [
        "M",
        "./M",
        "out/../M",
        "out/sub/../../M",
        "@M",
        "@out/../M",
        "out/up/M",
        "out/away/M",
        "out/file",
        "out/chain/M",
        "out/chain/out/up/M",
        "out/sub/new",
        "outer/M",
        "Out/M",
        "out/none/../../M",
        "../work/M",
        "out\u{a0}/../M",
        "~/M",
        &absolute,
        &through,
    ];
    let calls: Vec<Value> = paths
        .iter()
        .map(|path| json!({"tool": "write", "args": {"path": path, "content": "M"}}))
        .chain([json!({"tool": "write", "args": {"path": "out/sub/fine", "content": "M"}})])
        .collect();
    let mut client = Client::start(sandbox, &["--mode", "rpc", "--model", "offline/demo"]);
    let from = client.prompt(&script(&json!({"turns": [calls, {"text": "Done."}]})));
    let results = tool_results(client.wait_end(from));
    assert_eq!(results.len(), paths.len() + 1);
    for (path, result) in paths.iter().zip(&results) {
        let outcome = &result["details"]["approval"]["outcome"];
        assert_eq!(outcome, "not-allowed", "{path:?}: {result}");
    }
    assert_eq!(results[paths.len()]["isError"], false);
    assert!(!work.join("M").exists() && fs::read_dir(outside).unwrap().next().is_none());
}
