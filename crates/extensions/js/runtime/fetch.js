// fetch: the request is sent natively, and the body is returned as a stream.
import { ops } from "pinion:ops";
import { concat } from "pinion:runtime/blob";
import { Request, Response, sentBody } from "pinion:runtime/messages";

async function collected(request) {
  const { stream, bytes } = sentBody(request);
  if (stream === null) return undefined;
  if (bytes !== null) return await bytes;
  const parts = [];
  for await (const part of stream) parts.push(typeof part === "string" ? new TextEncoder().encode(part) : part);
  return concat(parts);
}

function failed(reason) {
  const cause = new Error(reason.message);
  if (reason.code) cause.code = reason.code;
  return new TypeError("fetch failed", { cause });
}

function dataResponse(url) {
  const [, type, base64, data] = /^data:([^,]*?)(;base64)?,(.*)$/s.exec(url) ?? [];
  if (data === undefined) throw new TypeError("fetch failed", { cause: new Error("invalid data: URL") });
  const text = decodeURIComponent(data);
  const body = base64 ? Uint8Array.from(atob(text), (character) => character.charCodeAt(0)) : text;
  return new Response(body, { headers: { "content-type": type || "text/plain;charset=US-ASCII" } });
}

export async function fetch(input, init) {
  const request = new Request(input, init);
  const { signal } = request;
  signal.throwIfAborted();
  if (request.url.startsWith("data:")) return dataResponse(request.url);
  if (!/^https?:/.test(request.url)) {
    throw new TypeError("fetch failed", { cause: new Error(`unknown scheme: ${new URL(request.url).protocol}`) });
  }
  const body = await collected(request);
  const exchange = ops.http.open();
  const abort = () => exchange.abort();
  signal.addEventListener("abort", abort, { once: true });
  let head;
  try {
    head = await exchange.send(request.method, request.url, [...request.headers].flat(), body, request.redirect);
  } catch (error) {
    signal.removeEventListener("abort", abort);
    if (signal.aborted) throw signal.reason;
    throw failed(error);
  }
  signal.throwIfAborted();
  const done = () => signal.removeEventListener("abort", abort);
  const stream = [101, 204, 205, 304].includes(head.status) || request.method === "HEAD" ? null : new ReadableStream({
    start(controller) {
      signal.addEventListener("abort", () => controller.error(signal.reason), { once: true });
    },
    async pull(controller) {
      try {
        const chunk = await exchange.read();
        if (signal.aborted) return;
        if (chunk === undefined) {
          done();
          controller.close();
        } else {
          controller.enqueue(chunk);
        }
      } catch (error) {
        done();
        controller.error(signal.aborted ? signal.reason : new TypeError("terminated", { cause: failed(error).cause }));
      }
    },
    cancel() {
      done();
      exchange.abort();
    },
  }, { highWaterMark: 0 });
  const headers = [];
  for (let at = 0; at < head.headers.length; at += 2) headers.push([head.headers[at], head.headers[at + 1]]);
  return Response.received({ ...head, headers, redirected: head.url !== request.url }, stream);
}
