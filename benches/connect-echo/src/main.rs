//! An echo server made with the Connect library alone, as the comparison for the hub.
//!
//! Prints its address, serves until it is killed. `Repeat` answers `input` = `"COUNT SIZE"` with COUNT chunks of SIZE
//! bytes.

use std::sync::Arc;

use connectrpc::{RequestContext, Response, Router, Server, ServiceRequest, ServiceResult, ServiceStream};

mod proto {
    connectrpc::include_generated!();
}
use proto::echo::v1::{Answered, Asked, EchoService};

struct Echo;

#[allow(refining_impl_trait, reason = "the concrete types are the ones the trait allows")]
impl EchoService for Echo {
    async fn say(
        &self,
        _: RequestContext,
        asked: ServiceRequest<'_, Asked>,
    ) -> ServiceResult<Answered> {
        let output = asked.input.to_vec().into();
        Response::ok(Answered { output, ..Default::default() })
    }

    async fn repeat(
        &self,
        _: RequestContext,
        asked: ServiceRequest<'_, Asked>,
    ) -> ServiceResult<ServiceStream<Answered>> {
        let wanted = String::from_utf8_lossy(&asked.input).into_owned();
        let (count, size) = wanted.split_once(' ').unwrap_or(("0", "0"));
        let (count, size): (usize, usize) = (count.parse().unwrap_or(0), size.parse().unwrap_or(0));
        let chunk = vec![b'x'; size];
        let answers = (0..count).map(move |_| {
            Ok(Answered { output: chunk.clone().into(), ..Default::default() })
        });
        Response::stream_ok(futures::stream::iter(answers))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let bound = Server::bind("127.0.0.1:0").await?;
    println!("{}", bound.local_addr()?);
    bound.serve(Router::new().add_service(Arc::new(Echo))).await
}
