//! A server that sends back each message it receives. Try it with `curl`:
//!
//! ```sh
//! cargo run -p pinion-connect --example echo &
//! curl -H 'Content-Type: application/json' -d '{"clip":"todo","input":{"a":1}}' http://127.0.0.1:9009/echo.v1.EchoService/Say
//! ```

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use pinion_connect::{Failure, IncomingCall, MethodKind, Server, ServerOptions, Service};
use pinion_proto::hub::InvokeRequest;

struct Echo;

impl Service for Echo {
    fn method(&self, name: &str) -> Option<MethodKind> {
        match name {
            "Say" => Some(MethodKind::Unary),
            "Talk" => Some(MethodKind::BidiOrSingle),
            _ => None,
        }
    }

    async fn serve(self: Arc<Self>, mut call: IncomingCall) -> Result<(), Failure> {
        while let Some(said) = call.requests.next::<InvokeRequest>().await? {
            call.answers.send(&said).await?;
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:9009").await?;
    let options = ServerOptions::at(["/echo.v1.EchoService/"]).loopback_and([""; 0]);
    let server = Server::new(Arc::new(Echo), options);
    server.run(listener, pending(), Duration::ZERO).await;
    Ok(())
}
