//! Digests and random bytes, for `node:crypto` and the global `crypto`.

use std::cell::RefCell;
use std::rc::Rc;

use hmac::digest::DynDigest;
use hmac::{Mac, SimpleHmac};
use rquickjs::prelude::{Async, Func};
use rquickjs::{Ctx, Exception, Object, TypedArray};

use super::bytes::{Bytes, LARGEST, with_bytes};

/// Something that eats bytes and gives a digest; one per hash or key.
trait Eater {
    fn eat(&mut self, bytes: &[u8]);
    fn digest(&mut self) -> Vec<u8>;
    fn copy(&self) -> Box<dyn Eater>;
}

struct Plain(Box<dyn DynDigest>);

impl Eater for Plain {
    fn eat(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn digest(&mut self) -> Vec<u8> {
        self.0.finalize_reset().into_vec()
    }
    fn copy(&self) -> Box<dyn Eater> {
        Box::new(Plain(self.0.box_clone()))
    }
}

struct Keyed<M>(M);

impl<M: Mac + Clone + 'static> Eater for Keyed<M> {
    fn eat(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn digest(&mut self) -> Vec<u8> {
        self.0.clone().finalize().into_bytes().to_vec()
    }
    fn copy(&self) -> Box<dyn Eater> {
        Box::new(Keyed(self.0.clone()))
    }
}

fn plain(algorithm: &str) -> Option<Box<dyn Eater>> {
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

fn keyed(algorithm: &str, key: &[u8]) -> Option<Box<dyn Eater>> {
    fn made<M: Mac + hmac::digest::KeyInit + Clone + 'static>(
        key: &[u8],
    ) -> Option<Box<dyn Eater>> {
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

fn stretch(algorithm: &str, password: &[u8], salt: &[u8], rounds: u32, key: &mut [u8]) -> bool {
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

/// The object a script feeds: `update`, `digest`, `copy`.
fn feeder<'js>(ctx: &Ctx<'js>, eater: Box<dyn Eater>) -> rquickjs::Result<Object<'js>> {
    let eater = Rc::new(RefCell::new(eater));
    let object = Object::new(ctx.clone())?;
    let fed = eater.clone();
    object.set(
        "update",
        Func::from(move |bytes: TypedArray<'js, u8>| {
            with_bytes(&bytes, |bytes| fed.borrow_mut().eat(bytes));
        }),
    )?;
    let fed = eater.clone();
    object.set(
        "digest",
        Func::from(move || Bytes(fed.borrow_mut().digest())),
    )?;
    object.set(
        "copy",
        Func::from(move |ctx: Ctx<'js>| feeder(&ctx, eater.borrow().copy())),
    )?;
    Ok(object)
}

/// How many iterations `pbkdf2Sync` runs at most, over all blocks of the key: a few seconds. The engine cannot interrupt
/// them.
const MOST_ROUNDS: usize = 5_000_000;
/// The size of the shortest digest, SHA-1, in bytes.
const SHORTEST_DIGEST: usize = 20;

fn random(length: usize) -> std::io::Result<Bytes> {
    if length > LARGEST {
        let reason = format!("more than {} MiB at once", LARGEST >> 20);
        return Err(std::io::Error::other(reason));
    }
    let mut bytes = vec![0; length];
    let mut source = std::fs::File::open("/dev/urandom")?;
    std::io::Read::read_exact(&mut source, &mut bytes)?;
    Ok(Bytes(bytes))
}

/// Adds the group `crypto`.
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
                .map(|eater| feeder(&ctx, eater))
                .transpose()
        }),
    )?;
    group.set(
        "hmac",
        Func::from(|ctx: Ctx<'js>, algorithm: String, key: Bytes| {
            keyed(&algorithm, &key.0)
                .map(|eater| feeder(&ctx, eater))
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
                if (rounds as usize).saturating_mul(blocks) > MOST_ROUNDS {
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
    let mut key = vec![0; length.min(LARGEST)];
    stretch(&algorithm, &password.0, &salt.0, rounds, &mut key).then_some(Bytes(key))
}
