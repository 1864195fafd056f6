//! `ops.intl`: time zones and the segmentation of text.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Object, Result};
use unicode_segmentation::UnicodeSegmentation as _;

use super::group;
use crate::script::Host;

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, _host: &Host) -> Result<()> {
    let intl = group(ctx, ops, "intl")?;
    intl.set("timeZone", Func::from(time_zone))?;
    intl.set("offset", Func::from(offset))?;
    intl.set("segments", Func::from(segments))?;
    Ok(())
}

fn time_zone() -> String {
    TimeZone::system().iana_name().unwrap_or("UTC").to_owned()
}

/// Returns the minutes east of Greenwich in `zone` at a time.
fn offset(zone: String, milliseconds: f64) -> Option<f64> {
    if zone.eq_ignore_ascii_case("gmt") {
        return Some(0.0);
    }
    let zone = pinion_text::zone::named(&zone)?;
    let moment = Timestamp::from_millisecond(milliseconds as i64).ok()?;
    Some(f64::from(zone.to_offset(moment).seconds()) / 60.0)
}

fn segments(text: String, granularity: String) -> Vec<String> {
    match granularity.as_str() {
        "word" => text.split_word_bounds().map(str::to_owned).collect(),
        "sentence" => text.split_sentence_bounds().map(str::to_owned).collect(),
        _ => text.graphemes(true).map(str::to_owned).collect(),
    }
}
