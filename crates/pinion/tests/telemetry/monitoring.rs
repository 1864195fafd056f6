//! The pages of a hub for monitoring, and the rights they need.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::stage::Home;

/// An answer over plain HTTP.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

fn get(url: &str, path: &str, token: Option<&str>) -> Answer {
    request("GET", url, path, token)
}

fn request(method: &str, url: &str, path: &str, token: Option<&str>) -> Answer {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let token = token.map_or(String::new(), |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{token}\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

fn token(home: &Home, flags: &[&str]) -> String {
    let created = home
        .run(&[&["hub", "token", "create"], flags].concat())
        .json();
    created["token"].as_str().unwrap().to_owned()
}

#[test]
fn metrics_need_a_token_of_their_own_and_it_opens_nothing_else() {
    let home = Home::new();
    let hub = home.serve();
    let url = hub.url.as_str();
    assert_eq!(get(url, "/metrics", None).status, 401);
    let user = token(&home, &["--scope", "@me", "--manage"]);
    let refused = get(url, "/metrics", Some(&user));
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("metrics token"), "{refused:?}");
    let monitor = token(&home, &["--kind", "metrics"]);
    assert!(monitor.starts_with("pnm_"));
    let page = get(url, "/metrics", Some(&monitor));
    assert_eq!(page.status, 200);
    assert!(
        page.head
            .contains("content-type: text/plain; version=0.0.4; charset=utf-8")
    );
    assert!(
        page.body.contains("pinion_build_info{version="),
        "{}",
        page.body
    );
    let head = request("HEAD", url, "/metrics", Some(&monitor));
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(request("POST", url, "/metrics", Some(&monitor)).status, 405);
    // The token reads metrics and nothing else.
    let call = |arguments: &[&str]| {
        let mut command = home.command("pinion", arguments);
        command.env("PINIX_TOKEN", &monitor).output().unwrap()
    };
    for arguments in [
        &["clip", "list", "--server", url][..],
        &["invoke", "--server", url, "scheduler", "list"],
    ] {
        let ran = call(arguments);
        let text = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_ne!(ran.status.code(), Some(0));
        assert!(text.contains("token does not allow"), "{text}");
    }
    assert_eq!(get(url, "/auth/tokens", Some(&monitor)).status, 403);
}

#[test]
fn calls_prompts_and_tools_are_counted() {
    let home = Home::new();
    let hub = home.serve_with(&["--model", "offline/demo"]);
    let monitor = token(&home, &["--kind", "metrics"]);
    let page = || get(&hub.url, "/metrics", Some(&monitor)).body;
    let value = |page: &str, sample: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(sample));
        line.unwrap_or_else(|| panic!("no {sample} in {page}"))
            .trim()
            .parse()
            .unwrap()
    };
    home.run(&["invoke", "scheduler", "list"]).fine();
    home.run(&["invoke", "scheduler", "list"]).fine();
    assert_ne!(home.run(&["invoke", "made-up", "list"]).code, 0);
    let before = page();
    let sample = "pinion_hub_calls_total{clip=\"scheduler\",command=\"list\",code=\"ok\"}";
    assert_eq!(value(&before, sample), 2.0);
    assert_eq!(
        value(
            &before,
            "pinion_hub_call_seconds_count{clip=\"scheduler\",command=\"list\"}"
        ),
        2.0
    );
    let unknown = "pinion_hub_calls_total{clip=\"unknown\",command=\"unknown\",code=\"not_found\"}";
    assert_eq!(value(&before, unknown), 1.0);
    assert!(!before.contains("made-up"));
    assert!(value(&before, "pinion_hub_clips{state=\"running\"}") >= 2.0);
    let prompt = "run `echo hi`";
    home.run(&["invoke", "agent", "chat", "--message", prompt])
        .fine();
    let after = page();
    assert_eq!(value(&after, "pinion_prompts_total{outcome=\"done\"}"), 1.0);
    let requests = "pinion_model_requests_total{provider=\"offline\",model=\"demo\",outcome=";
    assert_eq!(value(&after, &format!("{requests}\"toolUse\"}}")), 1.0);
    assert_eq!(
        value(
            &after,
            "pinion_tool_calls_total{tool=\"bash\",outcome=\"done\"}"
        ),
        1.0
    );
    assert!(!after.contains(prompt));
}

#[test]
fn health_and_readiness_need_no_token() {
    let home = Home::new();
    let hub = home.serve();
    for path in ["/healthz", "/readyz"] {
        let answer = get(&hub.url, path, None);
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, "ok\n"),
            "{path}"
        );
    }
    // A hub that cannot read its tokens refuses callers, so it is not ready.
    let tokens = home.root().join("tokens.json");
    assert!(tokens.exists());
    std::fs::write(&tokens, "{").unwrap();
    home.until("the hub notices its tokens", || {
        get(&hub.url, "/clips/x/", Some("pnx_x"));
        get(&hub.url, "/readyz", None).status == 503
    });
    assert_eq!(get(&hub.url, "/healthz", None).status, 200);
}
