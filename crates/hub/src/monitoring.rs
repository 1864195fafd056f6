//! The pages for monitoring: `/healthz` and `/readyz`, which need no token, and `/metrics` in the format of Prometheus,
//! which needs a metrics token or a super token.

use std::collections::BTreeMap;

use http::{Method, Request, Response, StatusCode};
use pinion_clip::ClipState;
use pinion_connect::{Body, IncomingBody, Peer, authority};
use pinion_telemetry::metrics::{self, Kind, Page};

use crate::neighbours::Standing;
use crate::pages::{refusal, text};
use crate::{Hub, portal};

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// A page for monitoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MonitoringPage {
    /// The process answers.
    Health,
    /// The hub accepts calls.
    Readiness,
    Metrics,
}

/// Returns the page at a path.
pub(crate) fn page_of(path: &str) -> Option<MonitoringPage> {
    match path {
        "/healthz" => Some(MonitoringPage::Health),
        "/readyz" => Some(MonitoringPage::Readiness),
        "/metrics" => Some(MonitoringPage::Metrics),
        _ => None,
    }
}

pub(crate) async fn answer(
    hub: &Hub,
    page: MonitoringPage,
    request: Request<IncomingBody>,
    peer: &Peer,
) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let mut response = match page {
        MonitoringPage::Health => text(StatusCode::OK, PLAIN_TEXT, "ok\n"),
        MonitoringPage::Readiness => readiness(hub),
        MonitoringPage::Metrics => {
            let own = authority(&parts.uri, &parts.headers);
            let admitted = hub.admit(&parts.headers, own, peer).await;
            match admitted.and_then(|caller| caller.may_read_metrics()) {
                Ok(()) => text(StatusCode::OK, metrics::CONTENT_TYPE, &metrics_page(hub)),
                Err(failure) => refusal(failure.into()),
            }
        }
    };
    if parts.method == Method::HEAD {
        portal::leave_out_body(&mut response);
    }
    response
}

/// Answers 503 with the reasons as long as a caller should use another hub.
fn readiness(hub: &Hub) -> Response<Body> {
    let mut problems = String::new();
    if hub.is_stopping() {
        problems.push_str("the hub is stopping\n");
    }
    if hub.gate().store().read_error().is_some() {
        // The path of the file is in the hub's log; callers of this page are unknown.
        problems.push_str("the tokens cannot be read\n");
    }
    let standing = hub.standing();
    if standing == Some(Standing::Isolated) {
        problems.push_str("cluster: isolated\n");
    }
    if problems.is_empty() {
        let words = match standing {
            Some(_) => "ok\ncluster: ok\n",
            None => "ok\n",
        };
        text(StatusCode::OK, PLAIN_TEXT, words)
    } else {
        text(StatusCode::SERVICE_UNAVAILABLE, PLAIN_TEXT, &problems)
    }
}

fn metrics_page(hub: &Hub) -> String {
    let mut page = metrics::page();
    write_hub(hub, &mut page);
    page.into_text()
}

fn write_hub(hub: &Hub, page: &mut Page) {
    let mut clips = BTreeMap::from([("sleeping", 0), ("running", 0), ("error", 0)]);
    for route in hub.table().routes(|_| true) {
        let state = match route.endpoint.snapshot().status.state {
            ClipState::Sleeping => "sleeping",
            ClipState::Running => "running",
            ClipState::Error => "error",
        };
        *clips.entry(state).or_insert(0) += 1;
    }
    page.family(
        "pinion_hub_clips",
        "Clips of the hub, its own parts included.",
        Kind::Gauge,
    );
    for (state, count) in clips {
        page.sample(&[("state", state)], f64::from(count));
    }
    page.family(
        "pinion_hub_streams_open",
        "Connected providers and runtimes.",
        Kind::Gauge,
    );
    let sessions = hub.sessions();
    for (kind, count) in [
        ("provider", sessions.providers().len()),
        ("runtime", sessions.runtimes().len()),
    ] {
        page.sample(&[("kind", kind)], count as f64);
    }
}
