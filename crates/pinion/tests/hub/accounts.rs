//! Logins at a registry, at the service of a hub and at a pinion hub, and the identity they give.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::server::{Answer, Request, Server};
use crate::stage::Home;

/// A registry where Ana has an account.
fn registry() -> Server {
    Server::start(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let answer = |value: Value| Answer::ok(value.to_string());
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/auth/register") => answer(json!({"user": {"username": body["username"]}})),
            ("POST", "/auth/login") if body["password"] == "letmein" => {
                answer(json!({"token": "tok-1", "user": {"username": "ana", "scope": "@ana"}}))
            }
            ("POST", "/auth/login") => Answer::status(401, r#"{"error":"wrong password"}"#),
            ("GET", "/auth/whoami") if is_shown(request) => answer(json!({"username": "ana"})),
            ("GET", "/auth/whoami") => Answer::status(401, r#"{"error":"who are you"}"#),
            ("GET", "/packages/@ana/todo") => answer(
                json!({"name": "@ana/todo", "dist_tags": {"latest": "1.0.0", "beta": "1.1.0"}}),
            ),
            ("PUT", "/packages/@ana/todo/dist-tags/beta") if is_shown(request) => answer(json!({})),
            _ => Answer::status(404, "{}"),
        }
    })
}

fn is_shown(request: &Request) -> bool {
    request.header("authorization") == Some("Bearer tok-1")
}

fn kept(home: &Home, name: &str) -> Value {
    let path = home.root().join(name);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{name}");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn an_account_at_a_registry_is_made_used_and_left() {
    let (home, registry) = (Home::new(), registry());
    let at = ["--registry", &registry.url];
    let pinix = |words: &[&str]| home.run_as("pinix", &[words, &at].concat());
    let said = pinix(&["registry", "whoami"]).failed(1);
    assert!(said.contains("you are not logged in"), "{said}");

    let account = ["--username", "ana", "--email", "ana@example.com"];
    let made = pinix(&[&["register"], &account[..], &["--password", "letmein"]].concat()).fine();
    assert!(
        made.contains("@ana") && made.contains("registry login"),
        "{made}"
    );

    let wrong = pinix(&["registry", "login", "--username", "ana", "--password", "x"]).failed(1);
    assert!(wrong.contains("wrong password"), "{wrong}");
    let login = ["registry", "login", "--username", "ana", at[0], at[1]];
    let said = home.run_fed("pinix", &login, b"letmein\n").fine();
    assert!(said.contains("Logged in as @ana"), "{said}");
    let credentials = kept(&home, "credentials.json");
    assert_eq!(credentials["registries"][&registry.url]["username"], "ana");

    assert_eq!(pinix(&["registry", "whoami"]).fine(), "@ana\n");
    let tags = pinix(&["dist-tag", "list", "@ana/todo"]).fine();
    assert_eq!(tags, "beta\t1.1.0\nlatest\t1.0.0\n");
    pinix(&["registry", "dist-tag", "add", "@ana/todo@1.0.0", "beta"]).fine();
    let put = registry.seen.lock().unwrap().last().cloned().unwrap();
    assert_eq!(put.body, br#"{"version":"1.0.0"}"#);

    assert!(pinix(&["registry", "logout"]).fine().contains("Logged out"));
    pinix(&["registry", "whoami"]).failed(1);
}

#[test]
fn an_account_of_a_registry_can_be_that_for_hubs() {
    let (home, registry) = (Home::new(), registry());
    let login = ["hub", "login", "--registry", &registry.url];
    let said = home.run_fed("pinix", &login, b"ana\nletmein\n").fine();
    assert_eq!(said, "Logged in as @ana.\n");
    let client = kept(&home, "client.json");
    assert_eq!(client["hub_token"], "tok-1");
    assert_eq!(client["user"], json!({"username": "ana", "scope": "@ana"}));
    for words in [&["whoami"][..], &["hub", "whoami"]] {
        assert_eq!(home.run_as("pinix", words).fine(), "@ana\n");
    }
    assert_eq!(
        home.run_as("pinix", &["hub", "logout"]).fine(),
        "Logged out.\n"
    );
    let said = home.run_as("pinix", &["whoami"]).failed(1);
    assert!(said.contains("you are not logged in"), "{said}");
    assert!(kept(&home, "client.json").get("hub_token").is_none());
}

#[test]
fn a_login_is_confirmed_in_a_browser() {
    let asked = AtomicUsize::new(0);
    let service = Server::start(move |request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let answer = match request.path.as_str() {
            "/auth/device/code" if body["client_id"] == "pinix-cli" => json!({
                "device_code": "d-1", "user_code": "AB CD", "interval": 1, "expires_in": 60,
                "verification_url": "https://accounts.example/confirm",
            }),
            "/auth/device/poll" if body["device_code"] == "d-1" => {
                match asked.fetch_add(1, Ordering::Relaxed) {
                    0 => json!({"status": "authorization_pending"}),
                    _ => json!({"status": "complete", "token": "tok-2", "username": "bo",
                        "scope": "@bo", "hub": "https://hub.example"}),
                }
            }
            _ => return Answer::status(404, "{}"),
        };
        Answer::ok(answer.to_string())
    });
    let home = Home::new();
    let login = home.run_as("pinix", &["login", "--server", &service.url]);
    assert!(
        login
            .stderr
            .contains("https://accounts.example/confirm?code=AB+CD"),
        "{login:?}"
    );
    assert_eq!(login.fine(), "Logged in as @bo.\n");
    let client = kept(&home, "client.json");
    assert_eq!(client["hub"], "https://hub.example");
    assert_eq!(client["hub_token"], "tok-2");
}

#[test]
fn a_slip_that_nobody_confirms_ends() {
    let service = Server::start(|request| {
        let answer = match request.path.as_str() {
            "/auth/device/code" => json!({
                "device_code": "d", "interval": 1, "expires_in": 2,
                "verification_url": "https://accounts.example/",
            }),
            _ => json!({"status": "pending"}),
        };
        Answer::ok(answer.to_string())
    });
    let home = Home::new();
    let login = home.run_as("pinix", &["login", "--server", &service.url]);
    assert_eq!(login.code, 1);
    assert!(login.stderr.contains("not confirmed in time"), "{login:?}");
}

#[test]
fn a_hub_knows_whose_its_tokens_are() {
    let home = Home::new();
    let hub = home.serve_probe();
    let made = home
        .run(&["hub", "token", "create", "--scope", "@cy"])
        .json();
    let token = made["token"].as_str().unwrap();
    let login = ["login", "--server", &hub.url, "--token", token];
    assert_eq!(home.run_as("pinix", &login).fine(), "Logged in as @cy.\n");
    assert_eq!(home.run_as("pinix", &["whoami"]).fine(), "@cy\n");
    let client = kept(&home, "client.json");
    assert_eq!(client["hub"], hub.url, "calls go to the hub of the login");
    let login = ["login", "--server", &hub.url, "--token", "pnx_nobody"];
    let said = home.run_as("pinix", &login).failed(1);
    assert!(
        said.contains("401") && !said.contains("pnx_nobody"),
        "{said}"
    );
    let login = ["login", "--token", "pnx_unknown"];
    let said = home.run_as("pinix", &login).fine();
    assert!(said.contains("Its user is unknown"), "{said}");
}

#[test]
fn a_second_person_logs_in_and_later_commands_use_the_hub() {
    let owner = Home::new();
    let hub = owner.serve_probe();
    let made = owner.run(&["hub", "token", "create", "--scope", "@cy"]);
    let made = made.json();
    let token = made["token"].as_str().unwrap();

    let home = Home::new();
    let said = home.run(&["hub", "login"]).failed(2);
    assert!(said.contains("--server"), "{said}");
    let login = ["hub", "login", "--server", &hub.url];
    let wrong = home.run_fed("pinion", &login, b"pnx_nobody\n").failed(1);
    assert!(
        wrong.contains("does not accept this token") && !wrong.contains("pnx_nobody"),
        "{wrong}"
    );
    assert!(!home.root().join("client.json").exists());
    let fed = home.run_fed("pinion", &login, format!("{token}\n").as_bytes());
    assert_eq!(fed.fine(), "Logged in as @cy.\n");
    let client = kept(&home, "client.json");
    assert_eq!(
        (&client["hub"], &client["hub_token"]),
        (&json!(hub.url), &json!(token))
    );
    assert_eq!(home.run(&["hub", "whoami"]).fine(), "@cy\n");
    let echoed = home.run(&["invoke", "probe", "echo", "--title", "x"]);
    assert_eq!(echoed.json(), json!({"title": "x"}));

    // A new token goes to the hub of the last login.
    let again = home.run(&["hub", "login", "--token", token]);
    assert_eq!(again.fine(), "Logged in as @cy.\n");
    assert_eq!(home.run(&["hub", "logout"]).fine(), "Logged out.\n");
    let said = home.run(&["hub", "whoami"]).failed(1);
    assert!(said.contains("`pinion hub login`"), "{said}");
    let said = home.run(&["clip", "list"]).failed(1);
    assert!(said.contains("`pinion hub login`"), "{said}");
}

#[test]
fn tokens_are_made_by_the_hub_that_a_client_is_logged_in_to() {
    let owner = Home::new();
    let hub = owner.serve_probe();
    let make = |kind: &[&str]| {
        let words = [&["hub", "token", "create"], kind].concat();
        owner.run(&words).json()["token"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let home = Home::new();
    let create = ["hub", "token", "create", "--scope", "@dee"];
    let log_in = |token: &str| {
        let login = ["hub", "login", "--server", &hub.url, "--token", token];
        home.run(&login).fine()
    };
    // The settings of a client do not make a hub.
    std::fs::create_dir_all(home.root()).unwrap();
    let said = home.run(&create).failed(1);
    assert!(
        said.contains("no hub in") && said.contains("`pinion hub login`"),
        "{said}"
    );

    log_in(&make(&["--scope", "@cy"]));
    let said = home.run(&create).failed(1);
    assert!(said.contains("requires a super token"), "{said}");

    log_in(&make(&["--kind", "super"]));
    let made = home.run(&create).json();
    let token = made["token"].as_str().unwrap();
    let echoed = owner.run(&[
        "invoke",
        "--auth-token",
        token,
        "probe",
        "echo",
        "--title",
        "x",
    ]);
    assert_eq!(echoed.json(), json!({"title": "x"}));
    assert!(!home.root().join("tokens.json").exists());
}

#[test]
fn passwords_and_tokens_do_not_travel_in_clear() {
    let home = Home::new();
    let account = ["--username", "a", "--password", "b", "--registry"];
    let login = [
        &["registry", "login"],
        &account[..],
        &["http://registry.example"],
    ]
    .concat();
    let said = home.run_as("pinix", &login).failed(1);
    assert!(said.contains("would be sent unencrypted"), "{said}");
    let login = [
        "login",
        "--token",
        "t",
        "--server",
        "http://accounts.example",
    ];
    let said = home.run_as("pinix", &login).failed(1);
    assert!(said.contains("would be sent unencrypted"), "{said}");
    home.write("files/index.json", r#"{"packages":{}}"#);
    let files = home.path("files");
    let login = [
        &["registry", "login"],
        &account[..],
        &[files.to_str().unwrap()],
    ]
    .concat();
    let said = home.run_as("pinix", &login).failed(1);
    assert!(said.contains("no accounts"), "{said}");
}

#[test]
fn what_is_missing_is_named() {
    let home = Home::new();
    let said = home.run_as("pinix", &["login"]).failed(1);
    assert!(
        said.contains("--server") && said.contains("PINIX_AUTH_SERVER"),
        "{said}"
    );
    let said = home.run_as("pinix", &["registry", "login"]).failed(1);
    assert!(said.contains("no registry is configured"), "{said}");
    let registry = registry();
    let login = ["registry", "login", "--registry", &registry.url];
    let said = home.run_as("pinix", &login).failed(1);
    assert!(said.contains("the username is missing"), "{said}");
    let said = home.run_as("pinix", &["org", "list"]).failed(1);
    assert!(said.contains("organisations"), "{said}");
}

#[test]
fn the_agent_is_talked_to_line_by_line() {
    let home = Home::new();
    let hub = home.serve_with(&["--model", "offline/demo"]);
    let talked = home.run_fed("pinix", &["chat"], b"hello there\n\nand again\n");
    let said = talked.fine();
    assert!(!said.trim().is_empty(), "{said}");
    let topics = home.run_as("pinix", &["agent", "topic", "list"]).json();
    let topics = topics["topics"].as_array().cloned().unwrap_or_default();
    assert_eq!(
        topics.len(),
        1,
        "both lines are one conversation: {topics:?}"
    );
    let unknown = home.run_fed("pinix", &["chat", "--agent-id", "nobody"], b"hi\n");
    assert_eq!(unknown.code, 1);
    drop(hub);
    let said = home.run_fed("pinix", &["chat"], b"hi\n");
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("no hub answers"), "{said:?}");
}
