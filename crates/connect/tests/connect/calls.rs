//! Client against server: every protocol, codec and version of HTTP.

use bytes::Bytes;
use pinion_connect::{
    Client, ClientOptions, Code, Codec, Failure, HttpVersion, Protocol, Receiver,
};
use pinion_proto::hub::{
    AddClipRequest, InvokeRequest, InvokeResponse, InvokeStreamMessage, ListClipsRequest,
    ListClipsResponse, invoke_stream_message,
};

use crate::hub::{self, SERVICE, Serving};

/// Returns every combination of protocol, codec and HTTP version.
pub fn ways() -> impl Iterator<Item = ClientOptions> {
    let protocols = [Protocol::Connect, Protocol::Grpc, Protocol::GrpcWeb];
    let codecs = [Codec::Json, Codec::Proto];
    let versions = [HttpVersion::One, HttpVersion::Two];
    protocols.into_iter().flat_map(move |protocol| {
        codecs.into_iter().flat_map(move |codec| {
            let possible = versions
                .into_iter()
                .filter(move |http| protocol != Protocol::Grpc || *http == HttpVersion::Two);
            possible.map(move |http| ClientOptions {
                protocol,
                codec,
                http,
                token: Some("pnx_example".into()),
                ..ClientOptions::default()
            })
        })
    })
}

pub fn client(server: &Serving, options: ClientOptions) -> Client {
    Client::new(&format!("http://{}", server.address), options).unwrap()
}

pub fn method(name: &str) -> String {
    format!("{SERVICE}/{name}")
}

pub fn invoke(clip: &str, command: &str, input: impl Into<Bytes>) -> InvokeRequest {
    InvokeRequest {
        clip_name: clip.to_owned().into(),
        command: command.to_owned().into(),
        input: input.into(),
        ..InvokeRequest::default()
    }
}

pub async fn all(mut receiver: Receiver<InvokeResponse>) -> Result<Vec<Bytes>, Failure> {
    let mut outputs = Vec::new();
    while let Some(answer) = receiver.next().await? {
        outputs.push(answer.output);
    }
    assert_eq!(receiver.next().await, Ok(None));
    Ok(outputs)
}

#[tokio::test]
async fn unary_calls_are_answered_in_every_way() {
    let server = hub::start(hub::options()).await;
    for options in ways() {
        let way = format!("{options:?}");
        let client = client(&server, options);
        let list = method("ListClips");
        let answer = client
            .unary(&list, &ListClipsRequest::default(), None)
            .await;
        assert_eq!(answer, Ok(ListClipsResponse::default()), "{way}");
        let request = AddClipRequest {
            source: "@acme/todo".into(),
            ..AddClipRequest::default()
        };
        let answer: AddClipRequest = client
            .unary(&method("AddClip"), &request, None)
            .await
            .unwrap();
        assert_eq!(answer, request, "{way}");
        let echo = invoke("echo", "once", "{\"a\":1}");
        let answer: InvokeResponse = client.unary(&method("Invoke"), &echo, None).await.unwrap();
        assert_eq!(answer.output, "{\"a\":1}", "{way}");
    }
}

#[tokio::test]
async fn every_failure_comes_back_as_it_was_in_every_way() {
    let server = hub::start(hub::options()).await;
    for options in ways() {
        let (way, protocol) = (format!("{options:?}"), options.protocol);
        let client = client(&server, options);
        for code in Code::all() {
            let expected = Failure::new(code, "50 % ünïcode\n\"quoted\"");
            let request = invoke("echo", &format!("code:{code}"), "");
            let answer = client
                .unary::<_, InvokeResponse>(&method("Invoke"), &request, None)
                .await;
            assert_eq!(answer, Err(expected.clone()), "{way}");
            let answer = match client
                .server_stream(&method("Invoke"), &request, None)
                .await
            {
                Ok(receiver) => all(receiver).await,
                Err(failure) => Err(failure),
            };
            assert_eq!(answer, Err(expected), "{way}");
        }
        let none = client
            .unary::<_, InvokeResponse>(&method("Nothing"), &invoke("", "", ""), None)
            .await;
        assert_eq!(none.unwrap_err().code, Code::Unimplemented, "{way}");
        let quiet = client
            .unary::<_, InvokeResponse>(&method("Invoke"), &invoke("quiet", "", ""), None)
            .await;
        let expected = match protocol {
            Protocol::Connect => Code::Internal,
            // Here the method is a stream, which may end without an answer. A unary call may not.
            Protocol::Grpc | Protocol::GrpcWeb => Code::Unimplemented,
        };
        assert_eq!(quiet.unwrap_err().code, expected, "{way}");
    }
}

#[tokio::test]
async fn streams_of_answers_arrive_in_every_way() {
    let server = hub::start(hub::options()).await;
    for options in ways() {
        let way = format!("{options:?}");
        let client = client(&server, options);
        let request = invoke("feed", "monitor", "");
        let receiver = client
            .server_stream(&method("Invoke"), &request, None)
            .await
            .unwrap();
        assert_eq!(
            all(receiver).await.unwrap(),
            ["{\"tick\":1}", "{\"tick\":2}"],
            "{way}"
        );
        let start = InvokeStreamMessage {
            payload: Some(invoke_stream_message::Payload::Start(request)),
            ..InvokeStreamMessage::default()
        };
        let receiver = client
            .server_stream(&method("InvokeStream"), &start, None)
            .await
            .unwrap();
        assert_eq!(all(receiver).await.unwrap().len(), 2, "{way}");
        let quiet = invoke("quiet", "", "");
        let receiver = client
            .server_stream(&method("Invoke"), &quiet, None)
            .await
            .unwrap();
        assert_eq!(all(receiver).await, Ok(Vec::new()), "{way}");
    }
}

#[tokio::test]
async fn large_messages_pass_whole_in_every_way() {
    let server = hub::start(hub::options()).await;
    let large: Bytes = (0..700_000_u32)
        .map(|n| (n % 251) as u8)
        .collect::<Vec<_>>()
        .into();
    for options in ways() {
        let way = format!("{options:?}");
        let codec = options.codec;
        let client = client(&server, options);
        for command in ["twice", "split"] {
            if command == "split" && codec == Codec::Json {
                continue;
            }
            let request = invoke("echo", command, large.clone());
            let receiver = client
                .server_stream(&method("Invoke"), &request, None)
                .await
                .unwrap();
            let outputs = all(receiver).await.unwrap();
            assert!(outputs.iter().all(|output| *output == large), "{way}");
            assert_eq!(
                outputs.len(),
                if command == "twice" { 2 } else { 1 },
                "{way}"
            );
        }
    }
}

#[tokio::test]
async fn both_sides_speak_at_a_time_over_http_2() {
    let server = hub::start(hub::options()).await;
    for options in ways() {
        let way = format!("{options:?}");
        let http = options.http;
        let client = client(&server, options);
        let stream = client.bidi(&method("ProviderStream"), None).await;
        if http == HttpVersion::One {
            assert_eq!(stream.unwrap_err().code, Code::FailedPrecondition, "{way}");
            continue;
        }
        let (mut sender, mut receiver) = stream.unwrap();
        for turn in 0..50 {
            let input = Bytes::from(format!("\"{turn}\"").repeat(turn * 20));
            sender.send(&invoke("", "", input.clone())).await.unwrap();
            let answer: InvokeResponse = receiver.next().await.unwrap().unwrap();
            assert_eq!(answer.output, input, "{way}");
        }
        sender.finish();
        assert_eq!(receiver.next().await, Ok(None), "{way}");
    }
}

#[tokio::test]
async fn a_stream_is_read_and_written_faster_than_it_is_answered() {
    let server = hub::start(hub::options()).await;
    let client = client(&server, ClientOptions::default());
    let (mut sender, mut receiver) = client.bidi(&method("ProviderStream"), None).await.unwrap();
    let sending = async {
        for _ in 0..200 {
            sender
                .send(&invoke("", "", vec![b'1'; 40_000]))
                .await
                .unwrap();
        }
        sender.finish();
    };
    let receiving = async {
        let mut count = 0;
        while let Some(answer) = receiver.next().await.unwrap() {
            let InvokeResponse { output, .. } = answer;
            assert_eq!(output.len(), 40_000);
            count += 1;
        }
        count
    };
    let ((), count) = tokio::join!(sending, receiving);
    assert_eq!(count, 200);
}

#[tokio::test]
async fn headers_and_trailers_are_sent_where_they_belong() {
    let server = hub::start(hub::options()).await;
    for options in ways() {
        let client = client(&server, options);
        let request = invoke("echo", "once", "1");
        let mut receiver = client
            .server_stream::<_, InvokeResponse>(&method("Invoke"), &request, None)
            .await
            .unwrap();
        let headers = receiver.headers().await.unwrap().unwrap();
        assert_eq!(headers["x-before"], "b");
    }
    let headers = [("content-type", "application/json")];
    let request = hub::json(&invoke("echo", "once", "1"));
    let path = "/pinix.v2.HubService/Invoke";
    let answer = crate::raw::post(server.address, path, &headers, &request).await;
    assert_eq!(answer.header("x-before"), Some("b"));
    assert_eq!(answer.header("trailer-x-behind"), Some("t"));
    let headers = [("content-type", "application/connect+json")];
    let request = crate::raw::envelope(0, &request);
    let answer = crate::raw::post(server.address, path, &headers, &request).await;
    let end = crate::raw::envelopes(&answer.body).pop().unwrap();
    assert_eq!(end, (2, br#"{"metadata":{"x-behind":["t"]}}"#.to_vec()));
    let headers = [("content-type", "application/grpc-web+json")];
    let answer = crate::raw::post(server.address, path, &headers, &request).await;
    let end = crate::raw::envelopes(&answer.body).pop().unwrap();
    assert_eq!(end, (128, b"x-behind: t\r\ngrpc-status: 0\r\n".to_vec()));
}

#[tokio::test]
async fn answers_of_other_servers_are_told_from_ours() {
    let server = hub::start(hub::options()).await;
    let url = format!("http://{}/elsewhere", server.address);
    for options in ways() {
        let protocol = options.protocol;
        let client = Client::new(&url, options).unwrap();
        let answer = client
            .unary::<_, InvokeResponse>(&method("Invoke"), &invoke("", "", ""), None)
            .await;
        let failure = answer.unwrap_err();
        if protocol == Protocol::Connect {
            assert_eq!(failure.code, Code::Unknown);
            assert!(failure.message.contains("check the address"), "{failure}");
        } else {
            // The page at that address would be useless to a program that uses gRPC.
            assert_eq!(failure.code, Code::Unimplemented);
        }
    }
}

#[tokio::test]
async fn a_lost_connection_is_opened_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for http in [HttpVersion::One, HttpVersion::Two] {
        let options = ClientOptions {
            http,
            ..ClientOptions::default()
        };
        let client = Client::new(&format!("http://{address}"), options).unwrap();
        let ask = || async {
            let request = invoke("echo", "once", "1");
            client
                .unary::<_, InvokeResponse>(&method("Invoke"), &request, None)
                .await
        };
        assert_eq!(ask().await.unwrap_err().code, Code::Unavailable);
        for _ in 0..2 {
            let server = hub::start_at(address, hub::options()).await;
            assert_eq!(ask().await.unwrap().output, "1");
            assert_eq!(ask().await.unwrap().output, "1");
            server.end().await;
        }
    }
}
