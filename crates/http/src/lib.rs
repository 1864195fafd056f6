//! HTTP clients for every part of pinion that sends requests.
//!
//! [`build`] makes a client from [`ClientOptions`], and [`Clients`] and [`Fetcher`] make theirs on the first request, so a
//! process that sends none never reads certificates. [`SseParser`] reads streams of events, and [`read_body`] limits the
//! length of a body. This crate has no servers and does not depend on models, keys or clips.

#![warn(missing_docs)]

mod address;
mod body;
mod cause;
mod client;
mod clients;
mod fetch;
mod sse;
mod tls;

pub use address::is_loopback;
pub use body::{BodyError, read_body};
pub use cause::{causes, root_cause};
pub use client::{ClientOptions, Redirects, Trust, build};
pub use clients::Clients;
pub use fetch::{FetchError, FetchRequest, FetchResponse, Fetcher, Redirect};
pub use reqwest::{Client, Error, Method, RequestBuilder, Response, StatusCode, Url, header};
pub use sse::{Frame, FrameTooLong, SseParser};
