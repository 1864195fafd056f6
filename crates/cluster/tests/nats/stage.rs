//! A connection to a test's servers.

use std::sync::Arc;

use pinion_cluster::bus::{BusOptions, Epoch, TlsFiles};
use pinion_cluster::credentials::Credentials;
use pinion_cluster::names::ClusterName;
use pinion_cluster::servers::ServerList;
use pinion_cluster::store::Store;
use pinion_testkit::NatsServers;

pub fn options() -> BusOptions {
    BusOptions {
        name: "test".into(),
        inbox: "_INBOX.pn.test".into(),
        credentials: Credentials::None,
        tls: TlsFiles::default(),
    }
}

pub async fn connect(servers: &NatsServers, at: usize) -> Arc<Epoch> {
    let list = ServerList::parse(&servers.url(at)).unwrap();
    Epoch::open(&list.servers[0], &options()).await.unwrap()
}

/// Connects to a server and creates the control bucket.
pub async fn store(servers: &NatsServers, at: usize) -> Store {
    let epoch = connect(servers, at).await;
    let store = Store::new(epoch, ClusterName::default().control_bucket());
    store.ensure(None).await.unwrap();
    store
}
