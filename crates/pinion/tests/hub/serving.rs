//! The lifecycle of a hub: its start, the permission to start one, its end, and the files it leaves.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::stage::{Home, is_alive, mode};

#[test]
fn the_first_start_says_how_to_get_in_and_later_ones_do_not() {
    let home = Home::new();
    let mut hub = home.serve();
    let token = fs::read_to_string(home.root().join("local.token")).unwrap();
    assert_eq!(mode(&home.root().join("local.token")), 0o600);
    let said = hub.said();
    assert!(said.contains("local.token"), "{said}");
    assert!(said.contains(&hub.url), "{said}");
    assert!(!said.contains(token.trim()), "the token is shown");
    hub.stop();
    let again = home.serve();
    assert!(!again.said().contains("local.token"), "{}", again.said());
    assert_eq!(
        fs::read_to_string(home.root().join("local.token")).unwrap(),
        token
    );
}

#[test]
fn the_pid_file_says_where_it_is_and_goes_with_it() {
    let home = Home::new();
    let mut hub = home.serve();
    let path = home.root().join("pinixd.pid");
    let told: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(told["pid"], hub.id());
    assert_eq!(told["hubURL"], hub.url);
    assert!(hub.url.ends_with(&format!(":{}", told["port"])));
    assert!(told["startedAt"].as_str().unwrap().ends_with('Z'));
    let status = home.run(&["hub", "status"]).json();
    assert_eq!(status["running"], true);
    assert_eq!(status["hubURL"], hub.url);
    hub.stop();
    assert!(!path.exists());
    let none = home.run(&["hub", "status"]);
    assert_eq!(
        (none.code, none.stdout.as_str()),
        (1, "{\"running\":false}\n")
    );
    assert!(none.stderr.contains("pinion hub serve"), "{}", none.stderr);
}

#[test]
fn one_directory_has_one_hub() {
    let home = Home::new();
    let hub = home.serve();
    for elsewhere in [&[][..], &["--pid", "other.pid"]] {
        let mut words = vec!["hub", "serve", "--port", "0"];
        words.extend(elsewhere);
        let said = home.run(&words).failed(1);
        assert!(
            said.contains("running already") || said.contains("just starting"),
            "{said}"
        );
    }
    let said = home.run(&["hub", "serve", "--port", "0"]).failed(1);
    assert!(
        said.contains(&hub.url) && said.contains("pinion hub stop"),
        "{said}"
    );
    let _other = home.serve_with(&["--root", "other"]);
}

#[test]
fn what_a_killed_hub_leaves_does_not_stand_in_the_way() {
    let home = Home::new();
    let mut hub = home.serve();
    hub.signal(Signal::SIGKILL);
    hub.end();
    assert!(home.root().join("pinixd.pid").exists());
    assert_eq!(home.run(&["hub", "status"]).code, 1);
    let said = home.run(&["hub", "stop"]).failed(1);
    assert!(said.contains("no hub is running"), "{said}");
    let again = home.serve();
    let status = home.run(&["hub", "status"]).json();
    assert_eq!(status["pid"], again.id());
    // The id of a process that runs, but is not a hub.
    drop(again);
    let foreign = json!({"pid": std::process::id(), "port": 1, "hubURL": "http://127.0.0.1:1"});
    home.write(".pinion/hub/pinixd.pid", &foreign.to_string());
    home.serve();
}

#[test]
fn stop_ends_it_and_all_it_has_started() {
    let home = Home::new();
    let mut hub = home.serve_probe();
    let family = home.run(&["invoke", "probe", "family"]).json();
    let stopped = home.run(&["hub", "stop"]).json();
    assert_eq!(stopped["stopped"], hub.id());
    assert_eq!(hub.end(), 0);
    for process in family.as_array().unwrap() {
        assert!(!is_alive(process.as_i64().unwrap()), "{process} lives");
    }
}

#[test]
fn a_killed_hub_leaves_no_process() {
    let home = Home::new();
    let mut hub = home.serve_probe();
    let family = home.run(&["invoke", "probe", "family"]).json();
    for process in family.as_array().unwrap() {
        assert!(is_alive(process.as_i64().unwrap()));
    }
    hub.signal(Signal::SIGKILL);
    hub.end();
    for process in family.as_array().unwrap() {
        let process = process.as_i64().unwrap();
        home.until("the end of the clip", || !is_alive(process));
    }
}

#[test]
fn clips_and_tokens_are_there_after_a_restart() {
    let home = Home::new();
    let mut hub = home.serve_probe();
    let token = home
        .run(&["hub", "token", "create", "--scope", "@ann"])
        .json();
    let token = token["token"].as_str().unwrap();
    hub.stop();
    let _hub = home.serve();
    assert_eq!(home.names(), ["probe"]);
    let echoed = home.run(&[
        "invoke",
        "--auth-token",
        token,
        "probe",
        "echo",
        "--title",
        "x",
    ]);
    assert_eq!(echoed.json(), json!({"title": "x"}));
    let refused = home
        .run(&["clip", "remove", "probe", "--auth-token", token])
        .failed(1);
    assert!(refused.contains("Error:"), "{refused}");
}

#[test]
fn tokens_are_listed_without_themselves_and_revoked_while_it_runs() {
    let home = Home::new();
    let hub = home.serve();
    let made = home.run(&[
        "hub", "token", "create", "--scope", "@ann", "--manage", "--ttl", "2w", "--label", "laptop",
    ]);
    let made = made.json();
    let (id, token) = (
        made["id"].as_str().unwrap(),
        made["token"].as_str().unwrap(),
    );
    assert!(token.starts_with("pnx_"), "{made}");
    let listed = home.run(&["hub", "token", "list"]).fine();
    assert!(
        listed.contains("laptop") && listed.contains(id) && !listed.contains(token),
        "{listed}"
    );
    assert!(
        !fs::read_to_string(home.root().join("tokens.json"))
            .unwrap()
            .contains(token)
    );
    home.run(&["clip", "list", "--auth-token", token]).fine();
    home.run(&["hub", "token", "revoke", id]).fine();
    hub.signal(Signal::SIGHUP);
    home.until("the revocation", || {
        home.run(&["clip", "list", "--auth-token", token]).code == 1
    });
    let said = home.run(&["clip", "list", "--auth-token", token]).failed(1);
    assert!(said.contains("does not accept this token"), "{said}");
    let said = home.run(&["hub", "token", "revoke", id]).failed(1);
    assert!(said.contains("hub token list"), "{said}");
    // The hub handled the signal and continued.
    home.run(&["clip", "list"]).fine();
}

#[test]
fn tokens_expire_after_ninety_days_unless_told_otherwise() {
    let home = Home::new();
    let _hub = home.serve();
    let days = |flags: &[&str]| {
        let mut words = vec!["hub", "token", "create", "--scope", "@ann"];
        words.extend(flags);
        let made = home.run(&words).json();
        let time = |name: &str| made[name].as_str()?.parse::<jiff::Timestamp>().ok();
        let (created, expires) = (time("created").unwrap(), time("expires")?);
        Some(expires.duration_since(created).as_hours() / 24)
    };
    assert_eq!(days(&[]), Some(90));
    assert_eq!(days(&["--expires", "30d"]), Some(30));
    assert_eq!(days(&["--ttl", "2w"]), Some(14));
    assert_eq!(days(&["--expires", "never"]), None);
    for (flags, hint) in [
        (&["--expires", "nevr"][..], "30m, 12h, 90d, 2w or never"),
        (&["--expires", "1d", "--ttl", "1d"], "one of them"),
    ] {
        let mut words = vec!["hub", "token", "create", "--scope", "@ann"];
        words.extend(flags);
        let said = home.run(&words).failed(2);
        assert!(said.contains(hint), "{said}");
    }
    let listed = home.run(&["hub", "token", "list"]).json();
    let local = &listed[0];
    assert_eq!(local["label"], "local command line", "{listed}");
    assert!(local.get("expires").is_none(), "{listed}");
}

#[test]
fn tokens_of_a_hub_elsewhere_are_kept_with_a_super_token() {
    let home = Home::new();
    let hub = home.serve();
    let local = fs::read_to_string(home.root().join("local.token")).unwrap();
    let far = |words: &[&str], token: &str| {
        let mut all = vec!["hub", "token"];
        all.extend(words);
        all.extend([
            "--server",
            &hub.url,
            "--root",
            "elsewhere",
            "--auth-token",
            token,
        ]);
        home.run(&all)
    };
    let create = ["create", "--scope", "@ann", "--ttl", "1h", "--label", "far"];
    let made = far(&create, local.trim()).json();
    let token = made["token"].as_str().unwrap();
    assert!(far(&create, token).failed(1).contains("Error:"));
    let listed = far(&["list"], local.trim()).json();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(listed[1]["label"], "far");
    let id = made["id"].as_str().unwrap();
    far(&["revoke", id], local.trim()).fine();
    assert!(far(&["revoke", id], local.trim()).failed(1).contains(id));
    assert!(
        far(&["revoke", "../x"], local.trim())
            .failed(1)
            .contains("not the id of a token")
    );
    assert!(far(&["list"], token).failed(1).contains("does not accept"));
}

#[test]
fn a_hub_is_not_opened_by_accident() {
    let home = Home::new();
    for (flags, hint) in [
        (&["--bind", "0.0.0.0"][..], "--tls-cert"),
        (
            &["--bind", "0.0.0.0", "--insecure-bind", "--auth", "none"],
            "loopback",
        ),
        (&["--auth", "open"], "token, manage or none"),
        (&["--tls-cert", "x.pem"], "go together"),
        (&["--super-token", "short"], "16"),
        (&["--port", "70000"], "65535"),
        (&["--call-timeout", "soon"], "30s"),
        (&["--prot", "1"], "--port"),
        (&["word"], "--help"),
    ] {
        let mut words = vec!["hub", "serve"];
        words.extend(flags);
        let ran = home.run(&words);
        assert!(ran.code == 2 || ran.code == 1, "{flags:?}: {ran:?}");
        assert!(ran.stderr.contains(hint), "{flags:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
    assert!(!home.root().join("tokens.json").exists());
}

#[test]
fn doors_are_as_wide_as_was_said() {
    let home = Home::new();
    let mut hub = home.serve_with(&["--auth", "none"]);
    fs::remove_file(home.root().join("local.token")).unwrap();
    home.run(&["clip", "list"]).fine();
    hub.stop();
    let hub = home.serve_with(&["--auth", "manage", "--hub-only", "--root", "other"]);
    let server = hub.url.as_str();
    home.run(&["clip", "list", "--server", server]).fine();
    home.write_probe("probe");
    let said = home
        .run(&["clip", "add", "./probe", "--server", server])
        .failed(1);
    assert!(said.contains("needs a token"), "{said}");
    let said = home
        .run(&["clip", "add", "./probe", "--root", "other"])
        .failed(1);
    assert!(said.contains("runs no clips"), "{said}");
    let info = home.run(&["hub", "info", "--root", "other"]).json();
    assert_eq!(info["mode"], "hub-only");
}

#[test]
fn a_super_token_may_be_given() {
    let home = Home::new();
    let mut command = home.command("pinion", &["hub", "serve", "--port", "0"]);
    command.env("PINION_SUPER_TOKEN", "correct horse battery");
    let hub = crate::stage::Hub::start(command, home.path("serve.err"));
    let server = ["--server", &hub.url, "--root", "elsewhere"];
    let mut words = vec!["clip", "list", "--auth-token", "correct horse battery"];
    words.extend(server);
    home.run(&words).fine();
    words[3] = "correct horse batterz";
    home.run(&words).failed(1);
    assert!(
        !fs::read_to_string(home.root().join("tokens.json"))
            .unwrap()
            .contains("correct horse")
    );
}

#[test]
fn it_speaks_tls_and_is_believed_by_those_who_know_its_certificate() {
    let home = Home::new();
    let made = std::process::Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=hub", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args([
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ])
        .current_dir(home.path("."))
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("not tried: there is no openssl to make a certificate with");
        return;
    }
    let mut hub = home.serve_with(&["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    assert!(hub.url.starts_with("https://127.0.0.1:"), "{}", hub.url);
    home.run(&["clip", "list", "--ca", "cert.pem"]).fine();
    let said = home.run(&["clip", "list"]).failed(1);
    assert!(said.contains("ertificate"), "{said}");
    let plain = hub.url.replace("https:", "http:");
    home.run(&["clip", "list", "--server", &plain]).failed(1);
    hub.stop();
}

#[test]
fn a_taken_port_is_said() {
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let said = home.run(&["hub", "serve", "--port", &port]).failed(1);
    assert!(said.contains(&port) && said.contains("--port 0"), "{said}");
}

#[test]
fn a_pinix_directory_is_taken_over_and_left_as_it_is() {
    let home = Home::new();
    home.write_probe("theirs/clips/probe");
    let name = fs::read_to_string(home.path("theirs/clips/probe/clip.json")).unwrap();
    home.write(
        "theirs/clips/probe/clip.json",
        &name.replace("theirs/clips/", ""),
    );
    home.write("theirs/data/probe/notes/a.txt", "kept");
    let config = json!({
        "super_token": "the token of theirs",
        "clips": {"probe": {"name": "probe", "token": "open sesame", "source": "local/probe"}},
    });
    home.write("theirs/config.json", &config.to_string());
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(home.path("theirs/config.json"), private).unwrap();
    let before = fs::read_to_string(home.path("theirs/config.json")).unwrap();
    let mut hub = home.serve_with(&["--import-pinix", "theirs"]);
    home.until("the import", || {
        hub.said().contains("\"probe\" is imported")
    });
    let call = [
        "invoke",
        "--auth-token",
        "the token of theirs",
        "--clip-token",
        "open sesame",
        "probe",
        "echo",
        "x",
    ];
    assert_eq!(home.run(&call).json(), json!({"title": "x"}));
    home.run(&["invoke", "probe", "echo", "x"]).failed(1);
    assert_eq!(
        home.run(&["clip", "data", "probe", "read", "notes/a.txt"])
            .fine(),
        "kept"
    );
    assert_eq!(
        fs::read_to_string(home.path("theirs/config.json")).unwrap(),
        before
    );
    assert!(!home.root().join("imported.json").exists());
    hub.stop();
    let again = home.serve_with(&["--import-pinix", "theirs"]);
    home.until("what is here stays", || {
        again.said().contains("is here already")
    });
    let said = home
        .run(&[
            "hub",
            "serve",
            "--root",
            "other",
            "--import-pinix",
            "nowhere",
        ])
        .failed(1);
    assert!(said.contains("nowhere/config.json"), "{said}");
}
