//! Remote calls: the Connect protocol and gRPC (and gRPC-Web) on one port, over HTTP/1.1 and HTTP/2, server and client.
//!
//! Messages are anything that implements [`pinion_proto::Message`], as JSON or as protobuf. The crate knows no service and no
//! user: which methods there are, who may call them and what they answer is the owner's [`Service`]; tokens are handed over as
//! they came. It never logs and never follows a redirect.
//!
//! A whole service, and a call to it:
//!
//! ```
//! use std::{future::pending, sync::Arc, time::Duration};
//! use pinion_connect::{Call, Client, ClientOptions, Failure, Kind, Server, ServerOptions, Service};
//! use pinion_proto::hub::ListClipsRequest;
//!
//! struct Echo;
//!
//! impl Service for Echo {
//!     fn method(&self, name: &str) -> Option<Kind> {
//!         (name == "Say").then_some(Kind::Unary)
//!     }
//!
//!     async fn serve(self: Arc<Self>, mut call: Call) -> Result<(), Failure> {
//!         let said: ListClipsRequest = call.requests.message().await?;
//!         call.answers.send(&said).await
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
//! let address = listener.local_addr().unwrap();
//! let server = Server::new(Arc::new(Echo), ServerOptions::at(["/echo.v1.EchoService/"]));
//! tokio::spawn(async move { server.run(listener, pending(), Duration::ZERO).await });
//!
//! let client = Client::new(&format!("http://{address}"), ClientOptions::default()).unwrap();
//! let question = ListClipsRequest::default();
//! let answer: ListClipsRequest = client.unary("echo.v1.EchoService/Say", &question, None).await.unwrap();
//! assert_eq!(answer, question);
//! # });
//! ```

#![warn(missing_docs)]

mod arriving;
mod body;
mod call;
mod client;
mod envelope;
mod failures;
mod inbound;
mod outbox;
mod protocol;
mod server;
mod timeout;

pub use arriving::Arriving;
pub use body::{Body, Piece};
pub use call::{Answers, Call, Context, Peer, Requests};
pub use client::{CallOptions, Client, ClientOptions, HttpVersion, Receiver, Reply, Roots, Sender};
pub use failures::error_body;
pub use pinion_status::{Code, Detail, Failure};
pub use protocol::{Codec, Protocol};
pub use server::{
    Kind, Limits, Origins, Server, ServerOptions, Service, Tls, authority, is_own_origin,
};
pub use timeout::timed_out;
