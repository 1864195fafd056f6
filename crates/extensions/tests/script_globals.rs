//! The global scope of scripts.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::Bench;

async fn value(body: &str) -> Value {
    let bench = Bench::new().await;
    bench.eval(body).await.unwrap()
}

#[tokio::test]
async fn timers_fire_in_order_and_can_be_stopped() {
    let seen = value(
        "const seen = [];
         setTimeout(() => seen.push('late'), 500);
         setTimeout((...words) => seen.push(...words), 250, 'early', 'argument');
         setImmediate(() => seen.push('immediate'));
         queueMicrotask(() => seen.push('micro'));
         const never = setTimeout(() => seen.push('never'), 1); clearTimeout(never);
         let count = 0; const ticking = setInterval(() => { if (++count === 3) clearInterval(ticking); }, 1);
         const handle = setTimeout(() => {}, 1000); seen.push(handle.unref() === handle, handle.hasRef(), handle.ref().hasRef(), typeof +handle);
         clearTimeout(+handle);
         await new Promise((resolve) => setTimeout(resolve, 700));
         return [seen, count];",
    )
    .await;
    assert_eq!(
        seen,
        json!([
            [
                true,
                false,
                true,
                "number",
                "micro",
                "immediate",
                "early",
                "argument",
                "late"
            ],
            3
        ])
    );
}

#[tokio::test]
async fn uncaught_errors_are_reported_and_the_script_continues() {
    let bench = Bench::new().await;
    bench
        .eval(
            "setTimeout(() => { throw new TypeError('in a timer') }, 1);
             Promise.reject(new Error('rejected'));
             const late = Promise.reject(new Error('late')); late.catch(() => {});
             await new Promise((resolve) => setTimeout(resolve, 20));",
        )
        .await
        .unwrap();
    let mut messages: Vec<String> = bench
        .uncaught
        .lock()
        .unwrap()
        .iter()
        .map(|one| one.message.clone())
        .collect();
    messages.sort();
    assert_eq!(messages, ["in a timer", "rejected"]);
    assert_eq!(bench.eval("return 'alive'").await.unwrap(), json!("alive"));
}

#[tokio::test]
async fn signals_abort_once_with_their_reason() {
    let seen = value(
        "const seen = [];
         const controller = new AbortController();
         controller.signal.addEventListener('abort', () => seen.push(controller.signal.reason));
         controller.signal.onabort = () => seen.push('handler');
         const any = AbortSignal.any([controller.signal, new AbortController().signal]);
         controller.abort('why'); controller.abort('again');
         seen.push(any.aborted, any.reason);
         try { any.throwIfAborted() } catch (error) { seen.push(error) }
         const timeout = AbortSignal.timeout(1);
         await new Promise((resolve) => timeout.addEventListener('abort', resolve));
         seen.push(timeout.reason.name, AbortSignal.abort().reason.name);
         return seen;",
    )
    .await;
    assert_eq!(
        seen,
        json!([
            "why",
            "handler",
            true,
            "why",
            "why",
            "TimeoutError",
            "AbortError"
        ])
    );
}

#[tokio::test]
async fn events_reach_their_listeners() {
    let seen = value(
        "const seen = []; const target = new EventTarget();
         const listener = { handleEvent(event) { seen.push(event.type, event.detail, event.target === target) } };
         target.addEventListener('x', listener, { once: true });
         target.addEventListener('x', (event) => { event.preventDefault(); event.stopImmediatePropagation() });
         target.addEventListener('x', () => seen.push('not reached'));
         seen.push(target.dispatchEvent(new CustomEvent('x', { detail: 7, cancelable: true })));
         target.dispatchEvent(new Event('x'));
         return seen;",
    )
    .await;
    assert_eq!(seen, json!(["x", 7, true, false]));
}

#[tokio::test]
async fn urls_are_parsed_and_changed() {
    let seen = value(
        "const url = new URL('../b?x=1&y=a%20b#frag', 'https://user:pw@example.com:8443/a/c');
         url.searchParams.append('z', 'ä &'); url.hash = '';
         url.port = '443'; url.pathname = '/p q';
         const params = new URLSearchParams({ a: '1', b: 'x y' }); params.append('a', '2'); params.sort();
         let failed; try { new URL('nowhere') } catch (error) { failed = [error.name, error.code, error.message] }
         return [url.href, url.origin, url.host, url.searchParams.get('y'), [...params], String(params), params.getAll('a'), URL.canParse('x:'), failed, JSON.stringify({ url: new URL('http://h') })];",
    )
    .await;
    assert_eq!(
        seen,
        json!([
            "https://user:pw@example.com/p%20q?x=1&y=a+b&z=%C3%A4+%26",
            "https://example.com",
            "example.com",
            "a b",
            [["a", "1"], ["a", "2"], ["b", "x y"]],
            "a=1&a=2&b=x+y",
            ["1", "2"],
            true,
            ["TypeError", "ERR_INVALID_URL", "Invalid URL"],
            r#"{"url":"http://h/"}"#
        ])
    );
}

#[tokio::test]
async fn text_becomes_bytes_and_comes_back() {
    let seen = value(
        "const bytes = new TextEncoder().encode('aé€😀');
         const decoder = new TextDecoder(); let text = '';
         for (const byte of bytes) text += decoder.decode(new Uint8Array([byte]), { stream: true });
         text += decoder.decode();
         let fatal; try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xff])) } catch (error) { fatal = error.name }
         return [Array.from(bytes), text, new TextDecoder('latin1').decode(new Uint8Array([0xe9, 0x80])),
           new TextDecoder('utf-16le').decode(new Uint8Array([0x61, 0, 0x3d, 0xd8, 0, 0xde])), fatal,
           new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61])), new TextDecoder().decode(new Uint8Array([0x61, 0xff])),
           btoa('hi'), atob('aGk='), new TextEncoder().encodeInto('é1', new Uint8Array(2))];",
    )
    .await;
    assert_eq!(
        seen,
        json!([
            [97, 195, 169, 226, 130, 172, 240, 159, 152, 128],
            "aé€😀",
            "é€",
            "a😀",
            "TypeError",
            "a",
            "a\u{fffd}",
            "aGk=",
            "hi",
            { "read": 1, "written": 2 }
        ])
    );
}

#[tokio::test]
async fn clones_share_nothing() {
    let seen = value(
        "const original = { date: new Date(0), map: new Map([[1, { deep: true }]]), set: new Set([1]), list: [1, , 3], re: /x/gi, error: new RangeError('far'), bytes: new Uint8Array([1, 2]) };
         original.self = original;
         const copy = structuredClone(original);
         let refused; try { structuredClone(() => {}) } catch (error) { refused = error.name }
         return [copy !== original, copy.self === copy, copy.date.getTime(), copy.map.get(1).deep, copy.map.get(1) !== original.map.get(1), [...copy.set], copy.list.length, 1 in copy.list, String(copy.re), copy.error instanceof RangeError, copy.error.message, copy.bytes[1], refused];",
    )
    .await;
    assert_eq!(
        seen,
        json!([
            true,
            true,
            0,
            true,
            true,
            [1],
            3,
            false,
            "/x/gi",
            true,
            "far",
            2,
            "DataCloneError"
        ])
    );
}

#[tokio::test]
async fn streams_flow_and_can_be_iterated() {
    let seen = value(
        "const source = new ReadableStream({ start(c) { c.enqueue('a'); c.enqueue('b'); c.enqueue('c'); c.close(); } });
         const upper = new TransformStream({ transform(chunk, c) { c.enqueue(chunk.toUpperCase()) }, flush(c) { c.enqueue('!') } });
         const got = []; for await (const chunk of source.pipeThrough(upper)) got.push(chunk);
         const written = []; await ReadableStream.from([1, 2]).pipeTo(new WritableStream({ write(chunk) { written.push(chunk) }, close() { written.push('closed') } }));
         const [left, right] = ReadableStream.from(['x', 'y']).tee();
         const both = []; for await (const c of left) both.push(c); for await (const c of right) both.push(c);
         const text = await new Response(ReadableStream.from(['h', 'i'])).text();
         let cancelled; const endless = new ReadableStream({ pull(c) { c.enqueue(1) }, cancel(reason) { cancelled = reason } });
         const reader = endless.getReader(); await reader.read(); await reader.cancel('enough');
         return [got, written, both, text, cancelled, (await reader.read()).done];",
    )
    .await;
    assert_eq!(
        seen,
        json!([
            ["A", "B", "C", "!"],
            [1, 2, "closed"],
            ["x", "y", "x", "y"],
            "hi",
            "enough",
            true
        ])
    );
}

#[tokio::test]
async fn dates_are_formatted_in_named_time_zones() {
    // Not every machine has the time zone database.
    if !std::path::Path::new("/usr/share/zoneinfo/Asia/Tokyo").exists() {
        return;
    }
    let seen = value(
        "const date = new Date(Date.UTC(2026, 0, 5, 14, 7, 9));
         return date.toLocaleString('en-US', { timeZone: 'Asia/Tokyo' });",
    )
    .await;
    assert_eq!(seen, json!("1/5/2026, 11:07:09 PM"));
}

#[tokio::test]
async fn numbers_and_dates_read_as_people_write_them() {
    let seen = value(
        "const date = new Date(Date.UTC(2026, 0, 5, 14, 7, 9));
         const utc = { timeZone: 'UTC' };
         return [(1234567.891).toLocaleString(), (0.5).toLocaleString('en-US', { style: 'percent' }), new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' }).format(1234.5),
           new Intl.NumberFormat('en', { notation: 'compact' }).format(15300), (12.345).toLocaleString(undefined, { maximumFractionDigits: 2 }), 10n.toLocaleString(),
           date.toLocaleString('en-US', utc), date.toLocaleDateString('en-US', utc), date.toLocaleTimeString('en-US', { ...utc, hour: '2-digit', minute: '2-digit' }),
           date.toLocaleDateString('en-US', { ...utc, weekday: 'long', month: 'long', day: 'numeric', year: 'numeric' }), date.toLocaleTimeString('en-GB', { ...utc, hour12: false }),
           new Intl.DateTimeFormat('en-US', { ...utc, dateStyle: 'medium', timeStyle: 'short' }).format(date),
           ['b', 'a', 'B', 'ä', 'A', '10', '9', '_'].sort((x, y) => x.localeCompare(y)), ['x10', 'x9'].sort(new Intl.Collator(undefined, { numeric: true }).compare),
           [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment('e\\u0301👨‍👩‍👧!')].map((piece) => piece.index),
           new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(-1, 'day'), new Intl.RelativeTimeFormat('en').format(3, 'hours'), 'a'.localeCompare('A', undefined, { sensitivity: 'base' })];",
    )
    .await;
    assert_eq!(
        seen,
        json!([
            "1,234,567.891",
            "50%",
            "$1,234.50",
            "15K",
            "12.35",
            "10",
            "1/5/2026, 2:07:09 PM",
            "1/5/2026",
            "02:07 PM",
            "Monday, January 5, 2026",
            "14:07:09",
            "Jan 5, 2026, 2:07 PM",
            ["_", "10", "9", "a", "A", "ä", "b", "B"],
            ["x9", "x10"],
            [0, 2, 10],
            "yesterday",
            "in 3 hours",
            0
        ])
    );
}

#[tokio::test]
async fn a_stack_begins_with_its_error() {
    let bench = Bench::new().await;
    let path = bench.write(
        "a.js",
        "class Odd extends Error { name = 'Odd' }\nfunction fail() { throw new Odd('why') }\n\
         export default () => { try { fail() } catch (error) { const kept = error.stack; error.stack = 'mine'; return [kept, error.stack] } }",
    );
    let seen = bench.run("a.js").await.unwrap();
    let stack = seen[0].as_str().unwrap();
    let frame = format!("\n    at fail ({}:2:", path.display());
    assert!(
        stack.starts_with("Odd: why\n    at ") && stack.contains(&frame),
        "{stack}"
    );
    assert_eq!(seen[1], "mine");
}
