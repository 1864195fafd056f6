//! The rights that a hub needs at the servers, as a set that can be printed, and the check that none is missing.
//!
//! A server answers nothing to a message that it does not permit; it reports an error beside it. Every right is
//! therefore tried when a hub starts.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use pinion_status::{Code, Failure};

use crate::bus::Epoch;
use crate::names::{ClusterName, ProcessId};
use crate::store::Store;

/// The time for all trials.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that the report of a server has after its silence.
const REPORT_DELAY: Duration = Duration::from_millis(100);

/// The subjects that a program may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    pub publish: Vec<String>,
    pub subscribe: Vec<String>,
}

impl Rights {
    /// Returns what a hub needs, and nothing else.
    pub fn of_hub(cluster: &ClusterName) -> Self {
        let bucket = cluster.control_bucket();
        let stream = bucket.stream();
        let api = |request: &str| format!("$JS.API.{request}.{stream}");
        Self {
            publish: vec![
                cluster.subject(">"),
                bucket.subjects(),
                api("STREAM.CREATE"),
                api("STREAM.INFO"),
                api("STREAM.MSG.GET"),
                api("DIRECT.GET"),
                format!("{}.>", api("DIRECT.GET")),
            ],
            subscribe: vec![cluster.subject(">"), "_INBOX.pn.>".to_owned()],
        }
    }

    /// Formats the rights for the configuration of a server.
    pub fn configuration(&self) -> String {
        let list = |subjects: &[String]| {
            let quoted: Vec<String> = subjects.iter().map(|it| format!("    \"{it}\"")).collect();
            quoted.join(",\n")
        };
        format!(
            "permissions {{\n  publish: [\n{}\n  ]\n  subscribe: [\n{}\n  ]\n}}\n",
            list(&self.publish),
            list(&self.subscribe)
        )
    }
}

/// Runs `work`, and fails by name as soon as the server reports a missing right.
pub(crate) async fn permitted<T>(
    epoch: &Epoch,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let outcome = tokio::select! {
        outcome = work => outcome,
        subject = epoch.denied() => return Err(missing(&subject)),
    };
    if outcome.is_err() {
        // The silence of a server may be noticed before its report is read.
        let report = tokio::time::timeout(REPORT_DELAY, epoch.denied());
        if let Ok(subject) = report.await {
            return Err(missing(&subject));
        }
    }
    outcome
}

/// Tries every right that a start does not use anyway.
pub(crate) async fn try_rights(
    epoch: &Arc<Epoch>,
    cluster: &ClusterName,
    me: &ProcessId,
    store: &Store,
) -> Result<(), Failure> {
    let lost = |_| Failure::new(Code::Unavailable, "the connection to the cluster was lost");
    let trial = async {
        let own = cluster.subject(format_args!("hub.{me}.trial"));
        let mut heard = epoch.subscribe(own.clone()).await.map_err(lost)?;
        epoch.flush().await.map_err(lost)?;
        epoch
            .publish(own, None, bytes::Bytes::new())
            .await
            .map_err(lost)?;
        heard.next().await;
        store.last(&crate::mirror::hub_key(me)).await?;
        store.next_at_leader(u64::from(u32::MAX)).await?;
        Ok(())
    };
    let tried = tokio::time::timeout(TRIAL_TIMEOUT, permitted(epoch, trial)).await;
    tried.unwrap_or_else(|_| {
        let message = "the servers of the cluster do not answer; `pinion cluster permissions` prints the rights that a hub needs";
        Err(Failure::new(Code::Unavailable, message))
    })
}

fn missing(report: &str) -> Failure {
    let message = format!(
        "the credentials of this hub do not permit what a hub does: {report}. `pinion cluster permissions` prints the rights \
         that it needs"
    );
    Failure::new(Code::PermissionDenied, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rights_of_a_hub_name_its_cluster_only() {
        let rights = Rights::of_hub(&"prod".parse().unwrap());
        let all = rights.publish.iter().chain(&rights.subscribe);
        for subject in all {
            assert!(
                subject.contains("prod") || subject == "_INBOX.pn.>",
                "{subject}"
            );
        }
        let text = rights.configuration();
        assert!(
            text.contains("\"$JS.API.STREAM.CREATE.KV_PN_prod\","),
            "{text}"
        );
    }

    #[test]
    fn the_shipped_configuration_has_exactly_these_rights() {
        let shipped = include_str!("../../../docs/cluster/nats.conf");
        let rights = Rights::of_hub(&ClusterName::default());
        for subject in rights.publish.iter().chain(&rights.subscribe) {
            assert!(shipped.contains(&format!("\"{subject}\"")), "{subject}");
        }
        let granted = |from: &str| {
            let (_, rest) = shipped.split_once(from).unwrap();
            rest.split(']').next().unwrap().matches('"').count() / 2
        };
        assert_eq!(granted("publish: ["), rights.publish.len());
        assert_eq!(granted("subscribe: ["), rights.subscribe.len());
    }
}
