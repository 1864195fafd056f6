//! Remote calls: Connect, gRPC and gRPC-Web on one port, over HTTP/1.1 and HTTP/2, server and client.
//!
//! A message is any type that implements [`pinion_proto::Message`], as JSON or as protobuf. The crate has no methods
//! and no users of its own: the owner's [`Service`] defines the methods, who may call them and the answers, and
//! receives tokens unchanged. The crate never logs and never follows a redirect.
//!
//! A complete service, and a call to it:
//!
//! ```
//! use std::{future::pending, sync::Arc, time::Duration};
//! use pinion_connect::{Client, ClientOptions, Failure, IncomingCall, MethodKind, Server, ServerOptions, Service};
//! use pinion_proto::hub::ListClipsRequest;
//!
//! struct Echo;
//!
//! impl Service for Echo {
//!     fn method(&self, name: &str) -> Option<MethodKind> {
//!         (name == "Say").then_some(MethodKind::Unary)
//!     }
//!
//!     async fn serve(self: Arc<Self>, mut call: IncomingCall) -> Result<(), Failure> {
//!         let request: ListClipsRequest = call.requests.message().await?;
//!         call.answers.send(&request).await
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

mod body;
mod call;
mod client;
mod envelope;
mod failures;
mod inbound;
mod incoming_body;
mod outbox;
mod protocol;
mod server;
mod timeout;

pub use body::{Body, Piece};
pub use call::{Answers, CallContext, IncomingCall, Peer, Requests};
pub use client::{CallOptions, Client, ClientOptions, HttpVersion, Receiver, Reply, Roots, Sender};
pub use failures::error_body;
pub use incoming_body::IncomingBody;
pub use pinion_status::{Code, Detail, Failure};
pub use protocol::{Codec, Protocol};
pub use server::{
    Limits, MethodKind, Origins, Server, ServerOptions, Service, Tls, authority, is_own_origin,
};
pub use timeout::timed_out;
