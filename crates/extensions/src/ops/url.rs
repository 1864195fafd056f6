//! `ops.url`: parsing and building URLs.

use ::url::{Url, quirks};
use pinion_text::percent;
use rquickjs::prelude::{Func, Opt};
use rquickjs::{Ctx, Object, Result};

use super::group;
use crate::script::Host;

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, _host: &Host) -> Result<()> {
    let group = group(ctx, ops, "url")?;
    group.set("parse", Func::from(parse))?;
    group.set("set", Func::from(set))?;
    group.set("decode", Func::from(decode))?;
    Ok(())
}

fn parse<'js>(
    ctx: Ctx<'js>,
    text: String,
    base: Opt<Option<String>>,
) -> Result<Option<Object<'js>>> {
    let parsed = match base.0.flatten() {
        Some(base) => Url::parse(&base).and_then(|base| base.join(&text)),
        None => Url::parse(&text),
    };
    parsed.ok().map(|url| parts(&ctx, &url)).transpose()
}

/// Changes one part of `href`; null if that is impossible.
fn set<'js>(
    ctx: Ctx<'js>,
    href: String,
    part: String,
    value: String,
) -> Result<Option<Object<'js>>> {
    let Ok(mut url) = Url::parse(&href) else {
        return Ok(None);
    };
    let changed = match part.as_str() {
        "protocol" => quirks::set_protocol(&mut url, &value).is_ok(),
        "username" => quirks::set_username(&mut url, &value).is_ok(),
        "password" => quirks::set_password(&mut url, &value).is_ok(),
        "host" => quirks::set_host(&mut url, &value).is_ok(),
        "hostname" => quirks::set_hostname(&mut url, &value).is_ok(),
        "port" => quirks::set_port(&mut url, &value).is_ok(),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            true
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            true
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            true
        }
        _ => false,
    };
    if changed {
        parts(&ctx, &url).map(Some)
    } else {
        Ok(None)
    }
}

fn parts<'js>(ctx: &Ctx<'js>, url: &Url) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("href", url.as_str())?;
    object.set("origin", quirks::origin(url))?;
    object.set("protocol", quirks::protocol(url))?;
    object.set("username", quirks::username(url))?;
    object.set("password", quirks::password(url))?;
    object.set("host", quirks::host(url))?;
    object.set("hostname", quirks::hostname(url))?;
    object.set("port", quirks::port(url))?;
    object.set("pathname", quirks::pathname(url))?;
    object.set("search", quirks::search(url))?;
    object.set("hash", quirks::hash(url))?;
    Ok(object)
}

/// Decodes percent escapes; bytes that are not UTF-8 become replacement characters.
fn decode(text: String) -> String {
    String::from_utf8_lossy(&percent::decode(text.as_bytes())).into_owned()
}
