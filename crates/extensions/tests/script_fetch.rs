//! `fetch` against a server on this machine.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use support::Bench;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Answers every request by its path, with one task per connection.
async fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !complete(&request) {
                    let count = socket.read(&mut buffer).await.unwrap_or(0);
                    if count == 0 {
                        return;
                    }
                    request.extend_from_slice(&buffer[..count]);
                }
                let text = String::from_utf8_lossy(&request).into_owned();
                let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
                let answer = match path.as_str() {
                    "/redirect" => {
                        "HTTP/1.1 302 Found\r\nlocation: /echo?from=redirect\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                            .to_owned()
                    }
                    "/stream" | "/endless" => {
                        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n5\r\nfirst\r\n".to_owned()
                    }
                    "/teapot" => {
                        "HTTP/1.1 418 I'm a teapot\r\ncontent-length: 5\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nconnection: close\r\n\r\nshort"
                            .to_owned()
                    }
                    _ => format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                        text.len()
                    ),
                };
                let _ = socket.write_all(answer.as_bytes()).await;
                if path == "/stream" {
                    let _ = socket.write_all(b"6\r\nsecond\r\n0\r\n\r\n").await;
                } else if path == "/endless" {
                    // Until the client hangs up.
                    let _ = socket.read(&mut buffer).await;
                }
            });
        }
    });
    format!("http://{address}")
}

fn complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")
                .map(str::to_owned)
        })
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    body.len() >= length
}

#[tokio::test]
async fn requests_are_sent_and_responses_received() {
    let bench = Bench::new().await;
    let base = server().await;
    let seen = bench
        .eval(&format!(
            "const response = await fetch('{base}/echo', {{ method: 'post', headers: {{ 'X-Test': 'yes' }}, body: JSON.stringify({{ a: 1 }}) }});
             const text = await response.text();
             const followed = await fetch(new URL('/redirect', '{base}'));
             const kept = await fetch('{base}/redirect', {{ redirect: 'manual' }});
             const chunks = []; for await (const chunk of (await fetch('{base}/stream')).body) chunks.push(new TextDecoder().decode(chunk));
             const teapot = await fetch('{base}/teapot');
             return [response.ok, response.status, response.headers.get('content-type'), text.startsWith('POST /echo'), /x-test: yes/i.test(text), text.endsWith('{{\"a\":1}}'),
               followed.redirected, followed.url, (await followed.text()).split(' ')[1], kept.status, kept.headers.get('location'), chunks.join('|').replace('t|s', 'ts'), teapot.ok, teapot.status, await teapot.text(), teapot.headers.getSetCookie()];"
        ))
        .await
        .unwrap();
    assert_eq!(
        seen,
        json!([
            true,
            200,
            "text/plain",
            true,
            true,
            true,
            true,
            format!("{base}/echo?from=redirect"),
            "/echo?from=redirect",
            302,
            "/echo?from=redirect",
            "firstsecond",
            false,
            418,
            "short",
            ["a=1", "b=2"]
        ])
    );
}

#[tokio::test]
async fn a_request_can_be_aborted_and_a_refused_connection_has_a_cause() {
    let bench = Bench::new().await;
    let base = server().await;
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let seen = bench
        .eval(&format!(
            "const seen = [];
             const controller = new AbortController();
             const response = await fetch('{base}/endless', {{ signal: controller.signal }});
             const reader = response.body.getReader();
             seen.push(new TextDecoder().decode((await reader.read()).value));
             setTimeout(() => controller.abort(), 10);
             try {{ await reader.read() }} catch (error) {{ seen.push(error.name) }}
             try {{ await fetch('{base}/endless', {{ signal: AbortSignal.timeout(30) }}).then((response) => response.text()) }} catch (error) {{ seen.push(error.name) }}
             try {{ await fetch('http://{closed}/') }} catch (error) {{ seen.push(error.message, error.cause.code) }}
             try {{ await fetch('ftp://x/') }} catch (error) {{ seen.push(error.message) }}
             return seen;"
        ))
        .await
        .unwrap();
    assert_eq!(
        seen,
        json!([
            "first",
            "AbortError",
            "TimeoutError",
            "fetch failed",
            "ECONNREFUSED",
            "fetch failed"
        ])
    );
}

#[tokio::test]
async fn bodies_can_be_forms_blobs_and_json() {
    let bench = Bench::new().await;
    let base = server().await;
    let seen = bench
        .eval(&format!(
            "const form = new FormData(); form.append('field', 'value'); form.append('file', new File(['data'], 'a.txt', {{ type: 'text/plain' }}));
             const sent = await (await fetch('{base}/echo', {{ method: 'POST', body: form }})).text();
             const query = await (await fetch('{base}/echo', {{ method: 'POST', body: new URLSearchParams({{ a: 'b c' }}) }})).text();
             const clone = Response.json({{ x: [1] }}); const copy = clone.clone();
             const request = new Request('{base}/r', {{ method: 'PUT', body: 'text' }});
             let again; await clone.json(); try {{ await clone.text() }} catch (error) {{ again = error.name }}
             return [/multipart\\/form-data; boundary=/.test(sent), /name=\"file\"; filename=\"a.txt\"\\r\\nContent-Type: text\\/plain\\r\\n\\r\\ndata/.test(sent), query.endsWith('a=b+c'),
               (await copy.json()).x, clone.bodyUsed, again, await new Blob(['a', new Uint8Array([98])]).text(), request.method, await request.text()];"
        ))
        .await
        .unwrap();
    assert_eq!(
        seen,
        json!([
            true,
            true,
            true,
            [1],
            true,
            "TypeError",
            "ab",
            "PUT",
            "text"
        ])
    );
}
