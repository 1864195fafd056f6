//! A server that answers as a vector records, and a browser and user that act as it records.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::BoxFuture;
use pinion_logins::{LoginConversation, LoginMessage, LoginQuestion};
use serde_json::{Value, json};
use url::Url;

/// Answers requests in the recorded order and compares them with the recorded ones.
pub struct Script {
    pub base: String,
    state: Arc<Mutex<ScriptState>>,
}

#[derive(Default)]
struct ScriptState {
    expected: Vec<(Value, Value)>,
    seen: Vec<(String, String, String)>,
    /// Replaces texts of recorded bodies.
    replacements: Vec<(String, String)>,
    nonce: String,
    claim: Option<(String, Value)>,
}

impl Script {
    pub fn start(expected: Vec<(Value, Value)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(ScriptState {
            expected,
            ..ScriptState::default()
        }));
        let (shared, own) = (Arc::clone(&state), base.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                serve(stream, &shared, &own);
            }
        });
        Self { base, state }
    }

    /// Compares the requests that arrived.
    pub fn finish(&self, name: &str, count: usize) {
        let state = self.state.lock().unwrap();
        assert_eq!(state.seen.len(), count, "{name}: requests");
        for ((expected, _), (line, headers, body)) in state.expected.iter().zip(&state.seen) {
            let url = Url::parse(expected["url"].as_str().unwrap()).unwrap();
            let method = expected["method"].as_str().unwrap();
            assert_eq!(line, &format!("{method} {} HTTP/1.1", url.path()), "{name}");
            for (header, value) in expected["headers"].as_object().unwrap() {
                let value = value.as_str().unwrap();
                assert!(
                    headers.contains(&format!("{header}: {value}\r\n")),
                    "{name}: {header} in {headers}"
                );
            }
            let mut recorded = expected["body"].as_str().unwrap().to_owned();
            for (from, to) in &state.replacements {
                recorded = recorded.replace(from, to);
            }
            // The verifier is random.
            let own = |text: &str| {
                let text = text.replace("AQgPFh0kKzI5QEdOVVxjanF4f4aNlJuiqbC3vsXM09o", "V");
                match text.find("code_verifier") {
                    None => text,
                    Some(at) => {
                        let start = at + text[at..].find(['=', ':']).unwrap() + 1;
                        let end = text[start..]
                            .find(['&', ','])
                            .map_or(text.len(), |end| start + end);
                        format!("{}{}", &text[..start], &text[end..])
                    }
                }
            };
            assert_eq!(own(body), own(&recorded), "{name}");
        }
    }
}

fn serve(stream: TcpStream, state: &Mutex<ScriptState>, base: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or_default() == 0 {
        return;
    }
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        if header == "\r\n" {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        headers.push_str(&header);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut state = state.lock().unwrap();
    let number = state.seen.len();
    state.seen.push((
        line.trim().to_owned(),
        headers,
        String::from_utf8(body).unwrap(),
    ));
    let response = state
        .expected
        .get(number)
        .map(|(_, response)| response.clone())
        .unwrap_or_default();
    let mut answer = response["body"].clone();
    if answer.get("id_token").is_some() && answer.get("scope").is_some() {
        let mut claims = json!({"iss": base, "aud": "issued-client-1", "nonce": state.nonce, "exp": 9_999_999_999_i64});
        if let Some((claim, value)) = state.claim.clone() {
            claims[claim] = value;
        }
        let token = format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()));
        answer["id_token"] = token.into();
    }
    drop(state);
    let status = response["status"].as_u64().unwrap_or(500);
    let text = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status} S\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    let _ = (&stream).write_all(format!("{head}{text}").as_bytes());
}

/// The user and the browser of a sign-in.
pub struct Browser {
    steps: Vec<Value>,
    state: Option<Arc<Mutex<ScriptState>>>,
    opened: Mutex<String>,
    visits: Mutex<Vec<JoinHandle<()>>>,
    cancels: bool,
}

impl Browser {
    pub fn new(vector: &Value, script: &Script) -> Self {
        Self {
            steps: vector["steps"].as_array().unwrap().clone(),
            state: Some(Arc::clone(&script.state)),
            opened: Mutex::default(),
            visits: Mutex::default(),
            cancels: false,
        }
    }

    pub fn cancelling() -> Self {
        Self {
            steps: Vec::new(),
            state: None,
            opened: Mutex::default(),
            visits: Mutex::default(),
            cancels: true,
        }
    }

    pub fn with_claim(self, claim: &str, value: Value) -> Self {
        let state = self.state.as_ref().unwrap();
        state.lock().unwrap().claim = Some((claim.to_owned(), value));
        self
    }

    pub fn opened(&self) -> String {
        self.opened.lock().unwrap().clone()
    }

    pub async fn finish(self) {
        let visits = self.visits.into_inner().unwrap();
        tokio::task::spawn_blocking(move || {
            for visit in visits {
                visit.join().unwrap();
            }
        })
        .await
        .unwrap();
    }

    /// The value of a parameter in the address that was opened.
    fn parameter(&self, name: &str) -> Option<String> {
        let url = Url::parse(&self.opened()).unwrap();
        let mut pairs = url.query_pairs();
        pairs
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.into_owned())
    }

    /// A recorded address with the state and the callback of this run.
    fn of_this_run(&self, recorded: &str) -> String {
        let callback = self
            .parameter("redirect_uri")
            .or_else(|| self.parameter("callback_url"));
        let callback = Url::parse(&callback.unwrap()).unwrap();
        let Ok(mut url) = Url::parse(recorded) else {
            return recorded.to_owned();
        };
        url.set_port(callback.port()).unwrap();
        url.set_path(callback.path());
        let state = self.parameter("state").unwrap_or_default();
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        url.query_pairs_mut().clear();
        for (name, value) in pairs {
            let value = match name.as_str() {
                "state" if value.len() > 10 => &state,
                _ => &value,
            };
            url.query_pairs_mut().append_pair(&name, value);
        }
        url.to_string()
    }
}

impl LoginConversation for Browser {
    fn show(&self, message: LoginMessage) {
        let LoginMessage::Open { url, .. } = message else {
            return;
        };
        self.opened.lock().unwrap().clone_from(&url);
        let Some(state) = &self.state else { return };
        let recorded = self
            .steps
            .iter()
            .find_map(|step| step["notify"]["url"].as_str())
            .unwrap();
        // The same parameters in the same order, apart from random values and our name.
        let names = |url: &str| -> Vec<String> {
            let url = Url::parse(url).unwrap();
            url.query_pairs()
                .map(|(name, _)| name.into_owned())
                .collect()
        };
        assert_eq!(names(&url), names(recorded));
        assert_eq!(
            Url::parse(&url).unwrap().path(),
            Url::parse(recorded).unwrap().path()
        );
        for fixed in [
            "scope",
            "resource",
            "response_type",
            "code_challenge_method",
            "ext_agent_host_id",
        ] {
            let recorded = Url::parse(recorded).unwrap();
            let mut pairs = recorded.query_pairs();
            let expected = pairs
                .find(|(name, _)| name == fixed)
                .map(|(_, value)| value.into_owned());
            assert_eq!(self.parameter(fixed), expected, "{fixed}");
        }
        {
            let mut state = state.lock().unwrap();
            state.nonce = self.parameter("nonce").unwrap_or_default();
            if let Some(callback) = self.parameter("redirect_uri") {
                let encoded = |text: &str| -> String {
                    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
                };
                let from = encoded("http://127.0.0.1:1455/auth/callback");
                state.replacements.push((from, encoded(&callback)));
            }
        }
        let visits: Vec<(String, u64)> = self
            .steps
            .iter()
            .filter_map(|step| {
                let address = self.of_this_run(step["browserGets"].as_str()?);
                Some((address, step["status"].as_u64()?))
            })
            .collect();
        self.visits
            .lock()
            .unwrap()
            .push(std::thread::spawn(move || {
                for (address, status) in visits {
                    let answer = get(&Url::parse(&address).unwrap());
                    assert!(
                        answer.starts_with(&format!("HTTP/1.1 {status} ")),
                        "{address}: {answer}"
                    );
                    assert!(
                        answer.contains("content-type: text/html; charset=utf-8"),
                        "{answer}"
                    );
                }
            }));
    }

    fn ask(&self, question: LoginQuestion) -> BoxFuture<'_, Option<String>> {
        assert!(
            matches!(question, LoginQuestion::PastedAnswer { .. }),
            "{question:?}"
        );
        if self.cancels {
            return Box::pin(std::future::ready(None));
        }
        let answer = self
            .steps
            .iter()
            .find_map(|step| step["prompt"].as_object().map(|_| step["answer"].clone()));
        match answer.as_ref().and_then(Value::as_str) {
            Some(text) => Box::pin(std::future::ready(Some(self.of_this_run(text)))),
            None => Box::pin(std::future::pending()),
        }
    }
}

fn get(url: &Url) -> String {
    let mut stream = TcpStream::connect((url.host_str().unwrap(), url.port().unwrap())).unwrap();
    let target = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    stream
        .write_all(format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
