//! Bodies of limited length.

use reqwest::Response;

/// A body that could not be read whole.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The body has more bytes than the limit.
    #[error("the body is too long")]
    TooLong,
    /// The connection failed before the end of the body.
    #[error(transparent)]
    Broken(#[from] reqwest::Error),
}

/// Reads a body of at most `limit` bytes. A body that decodes to more is not read to its end.
///
/// # Errors
///
/// When the body is longer than `limit` or the connection fails.
pub async fn read_body(mut response: Response, limit: usize) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await? {
        if body.len() + part.len() > limit {
            return Err(BodyError::TooLong);
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;
    use crate::{ClientOptions, Trust, Url, build};

    /// Sends `answer` to one request.
    async fn get(answer: &'static str) -> Response {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url: Url = format!("http://{}/", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.read(&mut [0; 4096]).unwrap();
            socket.write_all(answer.as_bytes()).unwrap();
        });
        let options = ClientOptions {
            trust: Trust::Nothing,
            proxies: false,
            ..ClientOptions::new(Duration::from_secs(5))
        };
        build(&options).unwrap().get(url).send().await.unwrap()
    }

    #[tokio::test]
    async fn the_limit_is_the_longest_body() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        assert_eq!(read_body(get(answer).await, 5).await.unwrap(), b"hello");
        let refused = read_body(get(answer).await, 4).await.unwrap_err();
        assert!(matches!(refused, BodyError::TooLong));
    }

    #[tokio::test]
    async fn a_body_that_ends_early_is_an_error() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello";
        let broken = read_body(get(answer).await, 100).await.unwrap_err();
        assert!(matches!(broken, BodyError::Broken(_)));
    }
}
