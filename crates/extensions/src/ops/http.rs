//! `ops.http`: the operations behind `fetch`.

use std::rc::Rc;

use bytes::Bytes;
use pinion_http::{FetchError, FetchRequest, FetchResponse, Fetcher, Redirect};
use rquickjs::prelude::{Async, Func};
use rquickjs::{Array, Ctx, Error, Exception, Object, Result, TypedArray};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::{bytes_of, group};
use crate::script::Host;

thread_local! {
    // Connections belong to the runtime of this thread.
    static FETCHER: Fetcher = Fetcher::default();
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> Result<()> {
    let http = group(ctx, ops, "http")?;
    let shared = host.clone();
    http.set("open", Func::from(move |ctx: Ctx<'js>| open(&ctx, &shared)))?;
    Ok(())
}

/// One request and its response.
struct Exchange {
    answer: Mutex<Option<FetchResponse>>,
    cancel: CancellationToken,
}

fn open<'js>(ctx: &Ctx<'js>, host: &Host) -> Result<Object<'js>> {
    let exchange = Rc::new(Exchange {
        answer: Mutex::new(None),
        cancel: host.closed().child_token(),
    });
    let object = Object::new(ctx.clone())?;
    let own = Rc::clone(&exchange);
    object.set(
        "send",
        Func::from(Async(
            move |ctx: Ctx<'js>,
                  method: String,
                  url: String,
                  headers: Vec<String>,
                  body: Option<TypedArray<'js, u8>>,
                  redirect: String| {
                let exchange = Rc::clone(&own);
                async move {
                    let body = body.map(|body| bytes_of(&ctx, &body)).transpose()?;
                    let request = FetchRequest {
                        method,
                        url,
                        headers: headers
                            .chunks_exact(2)
                            .map(|pair| (pair[0].clone(), pair[1].clone()))
                            .collect(),
                        body: body.map(Bytes::from),
                        redirect: match redirect.as_str() {
                            "manual" => Redirect::Manual,
                            "error" => Redirect::Refuse,
                            _ => Redirect::Follow,
                        },
                    };
                    exchange.send(&ctx, request).await
                }
            },
        )),
    )?;
    let own = Rc::clone(&exchange);
    object.set(
        "read",
        Func::from(Async(move |ctx: Ctx<'js>| {
            let exchange = Rc::clone(&own);
            async move { exchange.read(&ctx).await }
        })),
    )?;
    object.set("abort", Func::from(move || exchange.cancel.cancel()))?;
    Ok(object)
}

impl Exchange {
    async fn send<'js>(&self, ctx: &Ctx<'js>, request: FetchRequest) -> Result<Object<'js>> {
        let fetcher = FETCHER.with(Fetcher::clone);
        let answered = tokio::select! {
            answered = fetcher.fetch(request) => answered,
            () = self.cancel.cancelled() => return Err(aborted(ctx)),
        };
        let response = answered.map_err(|error| thrown(ctx, &error))?;
        let head = Object::new(ctx.clone())?;
        head.set("status", response.status)?;
        head.set("statusText", response.status_text.as_str())?;
        head.set("url", response.url.as_str())?;
        let headers = Array::new(ctx.clone())?;
        for (at, (name, value)) in response.headers.iter().enumerate() {
            headers.set(2 * at, name.as_str())?;
            headers.set(2 * at + 1, value.as_str())?;
        }
        head.set("headers", headers)?;
        *self.answer.lock().await = Some(response);
        Ok(head)
    }

    async fn read<'js>(&self, ctx: &Ctx<'js>) -> Result<Option<TypedArray<'js, u8>>> {
        let mut answer = self.answer.lock().await;
        let Some(response) = answer.as_mut() else {
            return Ok(None);
        };
        let read = tokio::select! {
            read = response.chunk() => read,
            () = self.cancel.cancelled() => {
                *answer = None;
                return Err(aborted(ctx));
            }
        };
        match read {
            Ok(Some(chunk)) => TypedArray::new_copy(ctx.clone(), chunk).map(Some),
            Ok(None) => {
                *answer = None;
                Ok(None)
            }
            Err(error) => {
                *answer = None;
                Err(thrown(ctx, &error))
            }
        }
    }
}

fn aborted(ctx: &Ctx<'_>) -> Error {
    Exception::throw_message(ctx, "This operation was aborted")
}

fn thrown(ctx: &Ctx<'_>, error: &FetchError) -> Error {
    let made = Exception::from_message(ctx.clone(), &error.message).and_then(|exception| {
        exception.as_object().set("code", error.code)?;
        Ok(exception)
    });
    match made {
        Ok(exception) => exception.throw(),
        Err(error) => error,
    }
}
