//! One request and its answer as a stream: sends the request, retries if that may help, then turns
//! each piece of the body into events as it arrives. Every wait can be cancelled and has a limit.
//! Nothing runs unless the stream is polled, and dropping it closes the connection.

use std::time::Duration;

use futures_util::stream;
use pinion_http::{Client, Response, Url, is_loopback};
use pinion_message::StopReason;
use secrecy::ExposeSecret;
use tracing::{Span, debug, warn};

use crate::answer::blank;
use crate::cassette::{Recorder, Recording};
use crate::connections::Connections;
use crate::deadlines::{Deadlines, Interruption};
use crate::decoder::ResponseDecoder;
use crate::http_request::HttpRequest;
use crate::identity::CloudIdentity;
use crate::request::{EventStream, Request, StreamEvent};
use crate::transport::{Cause, Failure, backoff, send, status_failure};
use crate::wire::build_request;

/// The error text when the caller cancels before the answer begins; over Anthropic's protocol,
/// always.
const ABORTED_EARLY: &str = "Request was aborted.";
/// The error text when the caller cancels while the answer is read.
const ABORTED: &str = "Request was aborted";
/// Time to read the rest of a finished response. After it the connection is closed instead of
/// reused.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Shorter values are placeholders for servers that need no key, and may be ordinary words: they
/// are not masked.
const MIN_SECRET_LENGTH: usize = 8;

/// The events of `request`, sent through `connections` and recorded by `recorder`.
pub(crate) fn exchange(
    request: Request,
    connections: Connections,
    recorder: Option<&Recorder>,
) -> EventStream {
    let Some(mut decoder) = ResponseDecoder::new(&request) else {
        let mut message = blank(&request.model);
        message.stop_reason = StopReason::Error;
        let api = &request.model.api;
        message.error_message = Some(format!("No API provider registered for api: {api}"));
        return Box::pin(stream::iter([StreamEvent::End(message)]));
    };
    let tap = request.options.tap.as_ref();
    if tap.is_some_and(|tap| tap.wants_events()) {
        decoder.collect_events();
    }
    let deadlines = Deadlines::new(&request);
    let recording = recorder.map(|recorder| recorder.begin(&request));
    let exchange = Box::new(Exchange {
        request,
        connections,
        decoder,
        recording,
        deadlines,
        phase: Phase::Ask,
    });
    Box::pin(stream::unfold(exchange, |mut exchange| async move {
        let event = exchange.next().await?;
        Some((event, exchange))
    }))
}

struct Exchange {
    request: Request,
    connections: Connections,
    decoder: ResponseDecoder,
    /// Present while the answer is written to a cassette.
    recording: Option<Recording>,
    deadlines: Deadlines,
    phase: Phase,
}

enum Phase {
    Ask,
    Read(Response),
    Over,
}

impl Exchange {
    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some(event) = self.decoder.next_event() {
                let event = self.without_secrets(event);
                if let StreamEvent::End(message) = &event
                    && let Some(recording) = self.recording.take()
                {
                    recording.end(message);
                }
                return Some(event);
            }
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Over => return None,
                Phase::Ask => {
                    if let Some(response) = self.ask().await {
                        if let Some(recording) = &mut self.recording {
                            recording.response(&response);
                        }
                        self.decoder.begin();
                        self.phase = Phase::Read(response);
                    }
                }
                Phase::Read(response) => self.read(response).await,
            }
        }
    }

    /// The response, once its headers report success; `None` when the decoder has ended the answer.
    async fn ask(&mut self) -> Option<Response> {
        if self.request.cancel.is_cancelled() {
            self.decoder.abort(ABORTED_EARLY);
            return None;
        }
        let outgoing = match build_request(&self.request) {
            Ok(outgoing) => self.apply_tap(outgoing).await,
            Err(text) => return self.give_up(text),
        };
        let url = match Url::parse(&outgoing.url) {
            Ok(url) => url,
            Err(_) => {
                let model = &self.request.model;
                return self.give_up(format!(
                    "The baseUrl {:?} of provider {:?} is not a URL. Write it like \"https://api.example.com/v1\", in \
                     models.json or wherever the provider is configured.",
                    model.base_url, model.provider
                ));
            }
        };
        let connect = self.request.options.timeouts.connect;
        let client = match self.connections.clients.get(&url, connect).await {
            Ok(client) => client,
            Err(text) => return self.give_up(text),
        };
        let mut retry = 0;
        loop {
            debug!(
                host = url.host_str(),
                attempt = retry + 1,
                "sending the request"
            );
            let failure = match self.attempt(&client, &outgoing, &url).await {
                Ok(response) => {
                    let status = response.status().as_u16();
                    debug!(status, attempt = retry + 1, "the response begins");
                    // The engine's span of the request reports them at its end.
                    Span::current().record("status", status);
                    Span::current().record("retries", retry);
                    self.connections.unreachable.clear();
                    self.report_response(&response).await;
                    return Some(response);
                }
                Err(Ok(failure)) => failure,
                Err(Err(interruption)) => return self.interrupted(&interruption),
            };
            let cause = failure.cause.as_ref();
            warn!(
                host = url.host_str(),
                attempt = retry + 1,
                status = failure.status,
                cause = cause.map(|cause| cause.description.as_str()),
                "the request failed"
            );
            Span::current().record("retries", retry);
            if let Some(status) = failure.status {
                Span::current().record("status", status);
            }
            match cause {
                Some(cause) => self
                    .connections
                    .unreachable
                    .add(&url, cause.description.clone()),
                None => self.connections.unreachable.clear(),
            }
            // A port of this machine on which no program listens does not open within the second that a retry waits.
            let nothing_listens =
                is_loopback(&url) && failure.cause.as_ref().is_some_and(|it| it.refused);
            if !failure.retryable || nothing_listens || retry >= self.max_retries() {
                return self.give_up(self.vendor_error_text(failure.text));
            }
            let delay = failure.delay.unwrap_or_else(|| backoff(retry));
            let longest = self.request.options.retry.max_delay;
            if delay > longest && !longest.is_zero() {
                let (asked, most) = (delay.as_secs_f64().ceil(), longest.as_secs_f64());
                let text = failure.text;
                return self.give_up(format!(
                    "Server requested {asked}s retry delay (max: {most}s). {text}"
                ));
            }
            retry += 1;
            let pause = tokio::time::sleep(delay);
            if let Err(interruption) = self.deadlines.within(Duration::ZERO, pause).await {
                return self.interrupted(&interruption);
            }
        }
    }

    /// Passes the request through its tap, if it has one.
    async fn apply_tap(&self, mut outgoing: HttpRequest) -> HttpRequest {
        self.tap_headers(&mut outgoing.headers).await;
        let tap = self.request.options.tap.as_ref();
        let Some(tap) = tap.filter(|tap| tap.wants_payload()) else {
            return outgoing;
        };
        let Ok(payload) = serde_json::from_slice(&outgoing.body) else {
            return outgoing;
        };
        if let Ok(payload) = self
            .deadlines
            .within(Duration::ZERO, tap.payload(payload))
            .await
            && let Ok(body) = serde_json::to_vec(&payload)
        {
            outgoing.body = body.into();
        }
        outgoing
    }

    /// Passes the headers of the request through its tap. Keys are left out, but the tap may set them.
    async fn tap_headers(&self, headers: &mut Vec<(String, String)>) {
        let tap = self.request.options.tap.as_ref();
        let Some(tap) = tap.filter(|tap| tap.wants_headers()) else {
            return;
        };
        let shown = headers.iter().filter(|(name, _)| !holds_secret(name));
        let shown = shown.map(|(name, value)| (name.clone(), Some(value.clone())));
        let changed = self
            .deadlines
            .within(Duration::ZERO, tap.headers(shown.collect()));
        for (name, value) in changed.await.unwrap_or_default() {
            let name = name.to_ascii_lowercase();
            let known = headers.iter().position(|(known, _)| *known == name);
            match (known, value) {
                (Some(at), Some(value)) => headers[at].1 = value,
                (Some(at), None) => drop(headers.remove(at)),
                (None, Some(value)) => headers.push((name, value)),
                (None, None) => {}
            }
        }
    }

    /// Passes the events of the body that were just read to the tap.
    async fn report_events(&mut self) {
        for data in self.decoder.take_events() {
            if let Some(tap) = &self.request.options.tap {
                // An abort is noticed when the body is read.
                let _ = self.deadlines.within(Duration::ZERO, tap.event(data)).await;
            }
        }
    }

    async fn report_response(&self, response: &Response) {
        let Some(tap) = &self.request.options.tap else {
            return;
        };
        let headers = response.headers().iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), value.into_owned())
        });
        let reported = tap.response(response.status().as_u16(), headers.collect());
        // An abort is noticed when the body is read.
        let _ = self.deadlines.within(Duration::ZERO, reported).await;
    }

    /// One attempt: a response that succeeds, a failure, or an interruption.
    async fn attempt(
        &self,
        client: &Client,
        outgoing: &HttpRequest,
        url: &Url,
    ) -> Result<Response, Result<Failure, Interruption>> {
        let wait = self.request.options.timeouts.first_byte;
        let exchanged = async {
            let response = match &outgoing.signer {
                Some(signer) => {
                    let signed = HttpRequest {
                        url: outgoing.url.clone(),
                        headers: signer.signed(outgoing, url),
                        body: outgoing.body.clone(),
                        signer: None,
                    };
                    send(client, &signed).await?
                }
                None => send(client, outgoing).await?,
            };
            if response.status().is_success() {
                return Ok(response);
            }
            Err(status_failure(&self.request.model.api, response).await)
        };
        match self.deadlines.within(wait, exchanged).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(failure)) => Err(Ok(failure)),
            Err(Interruption::TimedOut) => Err(Ok(Failure {
                text: "Request timed out.".to_owned(),
                retryable: true,
                delay: None,
                status: None,
                cause: Some(Cause {
                    description: format!("no response within {} s", wait.as_secs_f64()),
                    refused: false,
                }),
            })),
            Err(interruption) => Err(Err(interruption)),
        }
    }

    /// Google's and Mistral's own libraries do not retry, and that of AWS always does twice; the loop above this layer does.
    fn max_retries(&self) -> u32 {
        match self.request.model.api.as_str() {
            "google-generative-ai" | "google-vertex" | "mistral-conversations" => 0,
            "bedrock-converse-stream" => 2,
            _ => self.request.options.retry.max_retries,
        }
    }

    /// Replaces the text of a connection error by the one of Google's library, which clients expect
    /// from Google.
    fn vendor_error_text(&self, text: String) -> String {
        match (
            self.request.model.api.as_str(),
            text.strip_prefix("Connection error."),
        ) {
            ("google-generative-ai" | "google-vertex", Some(rest)) => format!("fetch failed{rest}"),
            _ => text,
        }
    }

    async fn read(&mut self, mut response: Response) {
        let idle = self.request.options.timeouts.idle;
        match self.deadlines.within(idle, response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                if let Some(recording) = &mut self.recording {
                    recording.chunk(&bytes);
                }
                self.decoder.push(&bytes);
                self.report_events().await;
                if self.decoder.is_ended() {
                    tokio::spawn(drain(response));
                } else {
                    self.phase = Phase::Read(response);
                }
            }
            Ok(Ok(None)) => {
                if let Some(recording) = &mut self.recording {
                    recording.body_ended();
                }
                self.decoder.finish();
                self.report_events().await;
            }
            Ok(Err(_)) => self.decoder.fail("terminated".to_owned()),
            Err(Interruption::Cancelled) => {
                // Clients distinguish these texts by protocol.
                let text = match self.request.model.api.as_str() {
                    "anthropic-messages" => ABORTED_EARLY,
                    _ => ABORTED,
                };
                self.decoder.abort(text);
            }
            Err(Interruption::TimedOut) => self.decoder.fail(self.deadlines.idle_text()),
            Err(interruption @ Interruption::DeadlinePassed) => {
                self.interrupted(&interruption);
            }
        }
    }

    fn give_up(&mut self, text: String) -> Option<Response> {
        self.decoder.fail(text);
        None
    }

    fn interrupted(&mut self, interruption: &Interruption) -> Option<Response> {
        match interruption {
            Interruption::Cancelled => self.decoder.abort(ABORTED_EARLY),
            Interruption::TimedOut | Interruption::DeadlinePassed => {
                self.decoder.fail(self.deadlines.deadline_text());
            }
        }
        None
    }

    /// Masks keys: error texts may echo parts of the request.
    fn without_secrets(&self, event: StreamEvent) -> StreamEvent {
        let StreamEvent::End(mut message) = event else {
            return event;
        };
        if let Some(text) = &mut message.error_message {
            let key = self
                .request
                .options
                .api_key
                .as_ref()
                .map(ExposeSecret::expose_secret);
            let own = self.request.options.headers.iter();
            let headers = own.chain(self.request.model.headers.iter().flatten());
            let values = headers
                .filter(|(name, _)| holds_secret(name))
                .map(|(_, value)| value.strip_prefix("Bearer ").unwrap_or(value));
            let identity = self.request.options.identity.as_ref();
            let identity = identity.map(CloudIdentity::secrets).unwrap_or_default();
            let identity = identity.iter().map(ExposeSecret::expose_secret);
            for secret in key.into_iter().chain(values).chain(identity) {
                if secret.len() >= MIN_SECRET_LENGTH && text.contains(secret) {
                    *text = text.replace(secret, "***");
                }
            }
        }
        StreamEvent::End(message)
    }
}

fn holds_secret(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie"]
        .iter()
        .any(|word| header.contains(word))
}

/// Reads the rest of the response, so that the connection can serve the next request.
async fn drain(mut response: Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, rest).await;
}
