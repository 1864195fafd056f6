//! The output on a terminal, and the text that is not shown there.

use std::process::Command;

use crate::stage::Home;

/// Returns the output of a command on a terminal.
fn shown(home: &Home, line: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new("script");
    let line = format!("{} {line}", home.path("pinion").display());
    command
        .args(["-qec", &line, "/dev/null"])
        .current_dir(home.path("."));
    command
        .env_clear()
        .env("HOME", home.path(""))
        .env("TERM", "xterm");
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.envs(variables.iter().copied());
    command.stdin(std::process::Stdio::null());
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap().replace('\r', "")
}

#[test]
fn a_terminal_gets_tables_and_words() {
    let home = Home::new();
    let hub = home.serve_probe();
    let listed = shown(&home, "clip list", &[]);
    assert!(listed.starts_with("\x1b[1mALIAS"), "{listed:?}");
    let row = listed
        .lines()
        .find(|line| line.starts_with("probe "))
        .unwrap();
    let cells: Vec<&str> = row.split_whitespace().take(6).collect();
    assert_eq!(
        cells,
        [
            "probe",
            "sleeping",
            "local/probe",
            "1.2.0",
            "pinixd",
            "count,"
        ]
    );
    let plain = shown(&home, "clip list", &[("NO_COLOR", "1")]);
    assert!(plain.starts_with("ALIAS      STATUS"), "{plain:?}");
    let shown_clip = shown(&home, "clip show probe", &[("NO_COLOR", "1")]);
    assert!(
        shown_clip.starts_with("probe  local/probe 1.2.0\nShows what it was told\n\nCommands:\n"),
        "{shown_clip}"
    );
    assert!(
        shown_clip.contains("    --title string, required  What to show\n"),
        "{shown_clip}"
    );
    let status = shown(&home, "hub status", &[]);
    assert!(
        status.starts_with(&format!("A hub is running: {}", hub.url)),
        "{status}"
    );
    let tokens = shown(&home, "hub token list", &[]);
    assert!(
        tokens.contains("everything") && tokens.contains("local command line"),
        "{tokens}"
    );
    let json = shown(&home, "clip list --json", &[]);
    assert!(json.starts_with("[\n{\"name\":"), "{json}");
    let info = shown(&home, "hub info", &[]);
    assert!(info.contains("token needed  yes"), "{info}");
}

#[test]
fn what_clips_say_is_not_obeyed_by_a_terminal() {
    let home = Home::new();
    home.write_probe("probe");
    let text = std::fs::read_to_string(home.path("probe/clip.json")).unwrap();
    home.write(
        "probe/clip.json",
        &text.replace("Shows what", "\\u001b]0;gotcha\\u0007Shows what"),
    );
    let _hub = home.serve();
    home.run(&["clip", "add", "./probe"]).fine();
    let words = "\x1b[2J gone";
    home.run(&["invoke", "probe", "say", "--words", words])
        .fine();
    home.until("the line in the log", || {
        home.run(&["clip", "logs", "probe"]).fine().contains("gone")
    });
    for line in ["clip show probe", "clip logs probe"] {
        let shown = shown(&home, line, &[("NO_COLOR", "1")]);
        assert!(
            !shown.contains('\x1b') && !shown.contains('\x07'),
            "{shown:?}"
        );
    }
}

#[test]
fn the_prefix_of_an_error_is_red_on_a_terminal_that_shows_colours() {
    let home = Home::new();
    let message = "no hub is running here. Start one with `pinion hub serve`.\n";
    let red = shown(&home, "hub status", &[]);
    assert_eq!(red, format!("\x1b[1;31mError:\x1b[0m {message}"));
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = shown(&home, "hub status", &[variable]);
        assert_eq!(plain, format!("Error: {message}"), "{variable:?}");
    }
}
