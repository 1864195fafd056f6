//! Digests and random bytes, for `node:crypto` and the global `crypto`.

use std::cell::RefCell;
use std::rc::Rc;

use hmac::digest::DynDigest;
use hmac::{Mac, SimpleHmac};
use rquickjs::prelude::{Async, Func};
use rquickjs::{Ctx, Exception, Object, TypedArray};

use super::bytes::{Bytes, MAX_BYTES, with_bytes};

/// A digest that is computed piece by piece, with or without a key.
trait IncrementalDigest {
    fn update(&mut self, bytes: &[u8]);
    fn digest(&mut self) -> Vec<u8>;
    fn copy(&self) -> Box<dyn IncrementalDigest>;
}

struct Plain(Box<dyn DynDigest>);

impl IncrementalDigest for Plain {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn digest(&mut self) -> Vec<u8> {
        self.0.finalize_reset().into_vec()
    }
    fn copy(&self) -> Box<dyn IncrementalDigest> {
        Box::new(Plain(self.0.box_clone()))
    }
}

struct Keyed<M>(M);

impl<M: Mac + Clone + 'static> IncrementalDigest for Keyed<M> {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn digest(&mut self) -> Vec<u8> {
        self.0.clone().finalize().into_bytes().to_vec()
    }
    fn copy(&self) -> Box<dyn IncrementalDigest> {
        Box::new(Keyed(self.0.clone()))
    }
}

fn plain(algorithm: &str) -> Option<Box<dyn IncrementalDigest>> {
    let digest: Box<dyn DynDigest> = match algorithm {
        "md5" => Box::new(md5::Md5::default()),
        "sha1" => Box::new(sha1::Sha1::default()),
        "sha224" => Box::new(sha2::Sha224::default()),
        "sha256" => Box::new(sha2::Sha256::default()),
        "sha384" => Box::new(sha2::Sha384::default()),
        "sha512" => Box::new(sha2::Sha512::default()),
        _ => return None,
    };
    Some(Box::new(Plain(digest)))
}

fn keyed(algorithm: &str, key: &[u8]) -> Option<Box<dyn IncrementalDigest>> {
    fn made<M: Mac + hmac::digest::KeyInit + Clone + 'static>(
        key: &[u8],
    ) -> Option<Box<dyn IncrementalDigest>> {
        let mac = <M as Mac>::new_from_slice(key).ok()?;
        Some(Box::new(Keyed(mac)))
    }
    match algorithm {
        "md5" => made::<SimpleHmac<md5::Md5>>(key),
        "sha1" => made::<SimpleHmac<sha1::Sha1>>(key),
        "sha224" => made::<SimpleHmac<sha2::Sha224>>(key),
        "sha256" => made::<SimpleHmac<sha2::Sha256>>(key),
        "sha384" => made::<SimpleHmac<sha2::Sha384>>(key),
        "sha512" => made::<SimpleHmac<sha2::Sha512>>(key),
        _ => None,
    }
}

fn derive_key(algorithm: &str, password: &[u8], salt: &[u8], rounds: u32, key: &mut [u8]) -> bool {
    use pbkdf2::pbkdf2_hmac;
    match algorithm {
        "sha1" => pbkdf2_hmac::<sha1::Sha1>(password, salt, rounds, key),
        "sha256" => pbkdf2_hmac::<sha2::Sha256>(password, salt, rounds, key),
        "sha384" => pbkdf2_hmac::<sha2::Sha384>(password, salt, rounds, key),
        "sha512" => pbkdf2_hmac::<sha2::Sha512>(password, salt, rounds, key),
        _ => return false,
    }
    true
}

/// Returns the object that a script passes bytes to: `update`, `digest`, `copy`.
fn digest_object<'js>(
    ctx: &Ctx<'js>,
    digest: Box<dyn IncrementalDigest>,
) -> rquickjs::Result<Object<'js>> {
    let digest = Rc::new(RefCell::new(digest));
    let object = Object::new(ctx.clone())?;
    let updated = digest.clone();
    object.set(
        "update",
        Func::from(move |bytes: TypedArray<'js, u8>| {
            with_bytes(&bytes, |bytes| updated.borrow_mut().update(bytes));
        }),
    )?;
    let updated = digest.clone();
    object.set(
        "digest",
        Func::from(move || Bytes(updated.borrow_mut().digest())),
    )?;
    object.set(
        "copy",
        Func::from(move |ctx: Ctx<'js>| digest_object(&ctx, digest.borrow().copy())),
    )?;
    Ok(object)
}

/// The most iterations that `pbkdf2Sync` runs over all blocks of the key: a few seconds. The engine cannot interrupt
/// them.
const MAX_ROUNDS: usize = 5_000_000;
/// The size of the shortest digest, SHA-1, in bytes.
const SHORTEST_DIGEST: usize = 20;

fn random(length: usize) -> std::io::Result<Bytes> {
    if length > MAX_BYTES {
        let reason = format!("more than {} MiB at once", MAX_BYTES >> 20);
        return Err(std::io::Error::other(reason));
    }
    let mut bytes = vec![0; length];
    let mut source = std::fs::File::open("/dev/urandom")?;
    std::io::Read::read_exact(&mut source, &mut bytes)?;
    Ok(Bytes(bytes))
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>) -> rquickjs::Result<()> {
    let group = super::group(ctx, ops, "crypto")?;
    group.set(
        "random",
        Func::from(|ctx: Ctx<'js>, length: usize| {
            random(length).map_err(|error| Exception::throw_message(&ctx, &error.to_string()))
        }),
    )?;
    group.set("uuid", Func::from(|| uuid::Uuid::new_v4().to_string()))?;
    group.set(
        "hash",
        Func::from(|ctx: Ctx<'js>, algorithm: String| {
            plain(&algorithm)
                .map(|digest| digest_object(&ctx, digest))
                .transpose()
        }),
    )?;
    group.set(
        "hmac",
        Func::from(|ctx: Ctx<'js>, algorithm: String, key: Bytes| {
            keyed(&algorithm, &key.0)
                .map(|digest| digest_object(&ctx, digest))
                .transpose()
        }),
    )?;
    group.set(
        "pbkdf2",
        Func::from(
            |ctx: Ctx<'js>,
             password: Bytes,
             salt: Bytes,
             rounds: u32,
             length: usize,
             algorithm: String| {
                let blocks = length.div_ceil(SHORTEST_DIGEST);
                if (rounds as usize).saturating_mul(blocks) > MAX_ROUNDS {
                    let reason = "too many iterations for pbkdf2Sync; use pbkdf2";
                    return Err(Exception::throw_range(&ctx, reason));
                }
                Ok(derive(password, salt, rounds, length, algorithm))
            },
        ),
    )?;
    group.set(
        "pbkdf2Async",
        Func::from(Async(
            |password: Bytes, salt: Bytes, rounds: u32, length: usize, algorithm: String| async move {
                let work = move || derive(password, salt, rounds, length, algorithm);
                tokio::task::spawn_blocking(work).await.ok().flatten()
            },
        )),
    )
}

fn derive(
    password: Bytes,
    salt: Bytes,
    rounds: u32,
    length: usize,
    algorithm: String,
) -> Option<Bytes> {
    let mut key = vec![0; length.min(MAX_BYTES)];
    derive_key(&algorithm, &password.0, &salt.0, rounds, &mut key).then_some(Bytes(key))
}
