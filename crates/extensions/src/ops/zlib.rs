//! Compression, for `node:zlib`.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use flate2::write::{DeflateEncoder, GzEncoder, MultiGzDecoder, ZlibEncoder};
use flate2::{Compression, Decompress, FlushDecompress, Status};
use rquickjs::prelude::{Async, Func};
use rquickjs::{Ctx, Exception, Object};

use super::bytes::{Bytes, MAX_BYTES};

/// Bytes of output space that a decoder gets at a time.
const ROOM: usize = 64 * 1024;

/// Compressed bytes that are unpacked before the size of the output is checked. Gzip expands at most 1032 times.
const PIECE: usize = 16 * 1024;

/// Fails beyond the limit, because a few kilobytes may unpack to gigabytes.
fn check_size(length: usize) -> io::Result<()> {
    if length > MAX_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(())
}

/// A stream in one format and one direction. Its output collects in the inner vector.
enum Codec {
    Gzip(GzEncoder<Vec<u8>>),
    Gunzip(MultiGzDecoder<Vec<u8>>, Head),
    Deflate(ZlibEncoder<Vec<u8>>),
    DeflateRaw(DeflateEncoder<Vec<u8>>),
    Inflate(Inflater, Head),
    InflateRaw(Inflater),
    /// The format is unknown until the first byte: gzip or deflate.
    Unzip,
}

/// The first two bytes, which show whether the format is the right one.
#[derive(Default)]
struct Head(Vec<u8>);

impl Head {
    fn check(&mut self, bytes: &[u8], fits: impl Fn(u8, u8) -> bool) -> io::Result<()> {
        if self.0.len() < 2 {
            self.0.extend(bytes.iter().take(2 - self.0.len()));
            if let [first, second] = self.0[..]
                && !fits(first, second)
            {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
        Ok(())
    }
}

/// A decoder that records whether its data has ended.
struct Inflater {
    state: Decompress,
    ended: bool,
}

impl Inflater {
    fn new(header: bool) -> Self {
        Self {
            state: Decompress::new(header),
            ended: false,
        }
    }

    fn push(&mut self, mut bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        while !self.ended {
            check_size(out.len())?;
            out.reserve(ROOM);
            let (before, made) = (self.state.total_in(), out.len());
            let status = self
                .state
                .decompress_vec(bytes, &mut out, FlushDecompress::None)?;
            let eaten = (self.state.total_in() - before) as usize;
            bytes = bytes.get(eaten..).unwrap_or_default();
            self.ended = status == Status::StreamEnd;
            if eaten == 0 && out.len() == made {
                break;
            }
        }
        Ok(out)
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        if self.ended {
            Ok(Vec::new())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

impl Codec {
    fn new(format: &str, level: i32) -> Option<Self> {
        let level = match u32::try_from(level) {
            Ok(level) => Compression::new(level.min(9)),
            Err(_) => Compression::default(),
        };
        let out = Vec::new();
        Some(match format {
            "gzip" => Self::Gzip(GzEncoder::new(out, level)),
            "gunzip" => Self::Gunzip(MultiGzDecoder::new(out), Head::default()),
            "deflate" => Self::Deflate(ZlibEncoder::new(out, level)),
            "inflate" => Self::Inflate(Inflater::new(true), Head::default()),
            "deflateRaw" => Self::DeflateRaw(DeflateEncoder::new(out, level)),
            "inflateRaw" => Self::InflateRaw(Inflater::new(false)),
            "unzip" => Self::Unzip,
            _ => return None,
        })
    }

    /// Processes `bytes` and returns the output that is available.
    fn push(&mut self, bytes: &[u8], flush: bool) -> io::Result<Vec<u8>> {
        if let (Self::Unzip, Some(&first)) = (&*self, bytes.first()) {
            *self = match first {
                0x1f => Self::Gunzip(MultiGzDecoder::new(Vec::new()), Head::default()),
                _ => Self::Inflate(Inflater::new(true), Head::default()),
            };
        }
        match self {
            Self::Gzip(inner) => fed(inner, bytes, flush, GzEncoder::get_mut),
            Self::Deflate(inner) => fed(inner, bytes, flush, ZlibEncoder::get_mut),
            Self::DeflateRaw(inner) => fed(inner, bytes, flush, DeflateEncoder::get_mut),
            Self::Gunzip(inner, head) => {
                head.check(bytes, |first, second| (first, second) == (0x1f, 0x8b))?;
                for piece in bytes.chunks(PIECE) {
                    inner.write_all(piece)?;
                    check_size(inner.get_ref().len())?;
                }
                Ok(std::mem::take(inner.get_mut()))
            }
            Self::Inflate(inner, head) => {
                let sum = |first, second| u16::from_be_bytes([first, second]) % 31 == 0;
                head.check(bytes, |first, second| first & 15 == 8 && sum(first, second))?;
                inner.push(bytes)
            }
            Self::InflateRaw(inner) => inner.push(bytes),
            Self::Unzip => Ok(Vec::new()),
        }
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(inner) => inner.finish(),
            Self::Deflate(inner) => inner.finish(),
            Self::DeflateRaw(inner) => inner.finish(),
            // Invalid data was reported by `push`; here only the end can be missing.
            Self::Gunzip(inner, _) => inner
                .finish()
                .map_err(|_| io::ErrorKind::UnexpectedEof.into()),
            Self::Inflate(inner, _) | Self::InflateRaw(inner) => inner.finish(),
            Self::Unzip => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn fed<W: Write>(
    codec: &mut W,
    bytes: &[u8],
    flush: bool,
    done: fn(&mut W) -> &mut Vec<u8>,
) -> io::Result<Vec<u8>> {
    codec.write_all(bytes)?;
    if flush {
        codec.flush()?;
    }
    Ok(std::mem::take(done(codec)))
}

fn whole(format: &str, level: i32, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut codec = Codec::new(format, level).ok_or(io::ErrorKind::Unsupported)?;
    let mut out = codec.push(bytes, false)?;
    out.extend(codec.finish()?);
    Ok(out)
}

fn throw(ctx: &Ctx<'_>, error: &io::Error) -> rquickjs::Error {
    let too_large = format!("Cannot create a Buffer larger than {MAX_BYTES} bytes");
    let (code, errno, message) = match error.kind() {
        io::ErrorKind::FileTooLarge => ("ERR_BUFFER_TOO_LARGE", -5, too_large.as_str()),
        io::ErrorKind::UnexpectedEof => ("Z_BUF_ERROR", -5, "unexpected end of file"),
        io::ErrorKind::InvalidInput => ("Z_DATA_ERROR", -3, "incorrect header check"),
        _ => ("Z_DATA_ERROR", -3, "incorrect data check"),
    };
    let made = Exception::from_message(ctx.clone(), message).and_then(|exception| {
        exception.set("errno", errno)?;
        exception.set("code", code)?;
        Ok(exception)
    });
    match made {
        Ok(exception) => ctx.throw(exception.into_value()),
        Err(error) => error,
    }
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>) -> rquickjs::Result<()> {
    let group = super::group(ctx, ops, "zlib")?;
    group.set(
        "whole",
        Func::from(|ctx: Ctx<'js>, format: String, level: i32, bytes: Bytes| {
            whole(&format, level, &bytes.0)
                .map(Bytes)
                .map_err(|error| throw(&ctx, &error))
        }),
    )?;
    group.set(
        "wholeAsync",
        Func::from(Async(
            |ctx: Ctx<'js>, format: String, level: i32, bytes: Bytes| async move {
                let work = move || whole(&format, level, &bytes.0);
                let done = tokio::task::spawn_blocking(work).await;
                done.unwrap_or_else(|error| Err(io::Error::other(error)))
                    .map(Bytes)
                    .map_err(|error| throw(&ctx, &error))
            },
        )),
    )?;
    group.set(
        "stream",
        Func::from(|ctx: Ctx<'js>, format: String, level: i32| {
            let codec = Rc::new(RefCell::new(Codec::new(&format, level)));
            let stream = Object::new(ctx)?;
            let pushed = codec.clone();
            stream.set(
                "push",
                Func::from(move |ctx: Ctx<'js>, bytes: Bytes, flush: bool| {
                    let mut codec = pushed.borrow_mut();
                    let Some(codec) = codec.as_mut() else {
                        return Ok(Bytes::default());
                    };
                    codec
                        .push(&bytes.0, flush)
                        .map(Bytes)
                        .map_err(|error| throw(&ctx, &error))
                }),
            )?;
            stream.set(
                "finish",
                Func::from(move |ctx: Ctx<'js>| match codec.take() {
                    Some(codec) => codec
                        .finish()
                        .map(Bytes)
                        .map_err(|error| throw(&ctx, &error)),
                    None => Ok(Bytes::default()),
                }),
            )?;
            rquickjs::Result::Ok(stream)
        }),
    )
}
