// The Connect protocol with the JSON codec, as far as a browser needs it: unary calls and server streams.
// It does not depend on the page; failures are `RpcError`s with the code the hub gave.

const SERVICE = "/pinix.v2.HubService/";
const END_OF_STREAM = 2;
const COMPRESSED = 1;
/** A longer message is treated as a broken stream. */
const LONGEST_MESSAGE = 64 * 1024 * 1024;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A call that failed: `code` is Connect's name of the reason. */
export class RpcError extends Error {
  constructor(code, message) {
    super(message || code);
    this.name = "RpcError";
    this.code = code;
  }
}

/** Reports whether this page cancelled the call, which is not a failure. */
export function isAbort(error) {
  return error?.name === "AbortError";
}

/** One request, one answer. */
export async function unary(method, request = {}, { signal } = {}) {
  const response = await post(SERVICE + method, "application/json", JSON.stringify(request), signal);
  if (!response.ok) throw await failure(response);
  return response.json();
}

/** One request, many answers, yielded as they come. Leaving the loop early cancels the call. */
export async function* stream(method, request = {}, { signal } = {}) {
  const gone = new AbortController();
  const stop = () => gone.abort();
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop);
  try {
    const body = envelope(encoder.encode(JSON.stringify(request)));
    const response = await post(SERVICE + method, "application/connect+json", body, gone.signal);
    if (!response.ok) throw await failure(response);
    for await (const { flags, payload } of envelopes(response.body)) {
      const message = JSON.parse(decoder.decode(payload));
      if (flags & END_OF_STREAM) {
        if (message.error) throw new RpcError(message.error.code ?? "unknown", message.error.message);
        return;
      }
      yield message;
    }
    throw new RpcError("unavailable", "the connection ended before the answer was complete");
  } catch (error) {
    if (signal?.aborted) throw new DOMException("the call was cancelled", "AbortError");
    throw unreachable(error);
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

/** A plain route of the hub: JSON in, JSON out; `null` where there is no body. */
export async function plain(method, path, body, { signal } = {}) {
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["Content-Type"] = "application/json";
  const text = body === undefined ? undefined : JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, { method, headers, body: text, signal, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    throw unreachable(error);
  }
  if (!response.ok) throw await failure(response);
  return response.status === 204 ? null : response.json();
}

async function post(path, type, body, signal) {
  const headers = { "Content-Type": type, "Connect-Protocol-Version": "1" };
  try {
    return await fetch(path, { method: "POST", headers, body, signal, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    throw unreachable(error);
  }
}

/** Translates an error of `fetch` into an `RpcError`. */
function unreachable(error) {
  if (error instanceof RpcError || error.name === "AbortError") return error;
  if (error instanceof TypeError) return new RpcError("unavailable", "the hub cannot be reached");
  return new RpcError("internal", `the hub's answer cannot be read: ${error.message}`);
}

const CODE_OF_STATUS = {
  400: "internal", 401: "unauthenticated", 403: "permission_denied", 404: "unimplemented",
  429: "unavailable", 502: "unavailable", 503: "unavailable", 504: "unavailable",
};

async function failure(response) {
  let body = null;
  try {
    body = await response.json();
  } catch {
    // Not JSON: the status gives the code.
  }
  const reported = typeof body?.code === "string" ? body : body?.error;
  if (typeof reported?.code === "string") return new RpcError(reported.code.toLowerCase(), reported.message);
  return new RpcError(CODE_OF_STATUS[response.status] ?? "unknown", `the hub answered with status ${response.status}`);
}

/** Puts the five bytes in front of a message. */
export function envelope(payload, flags = 0) {
  const bytes = new Uint8Array(5 + payload.length);
  bytes[0] = flags;
  new DataView(bytes.buffer).setUint32(1, payload.length);
  bytes.set(payload, 5);
  return bytes;
}

/** Cuts a body into messages, wherever the network cut it. */
export async function* envelopes(body) {
  const reader = body.getReader();
  let pieces = [];
  let held = 0;
  const take = (count) => {
    const taken = new Uint8Array(count);
    let at = 0;
    while (at < count) {
      const piece = pieces[0];
      const used = Math.min(piece.length, count - at);
      taken.set(piece.subarray(0, used), at);
      at += used;
      if (used === piece.length) pieces.shift();
      else pieces[0] = piece.subarray(used);
    }
    held -= count;
    return taken;
  };
  const fill = async (count) => {
    while (held < count) {
      const { done, value } = await reader.read();
      if (done) return false;
      pieces.push(value);
      held += value.length;
    }
    return true;
  };
  try {
    while (await fill(5)) {
      const head = take(5);
      const length = new DataView(head.buffer).getUint32(1);
      if (head[0] & COMPRESSED) throw new RpcError("unimplemented", "the hub sent a compressed message, which this page cannot read");
      if (length > LONGEST_MESSAGE) throw new RpcError("resource_exhausted", `a message of ${length} bytes is too long for this page`);
      if (!(await fill(length))) return;
      yield { flags: head[0], payload: take(length) };
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** JSON text as a field of type bytes. */
export function toBytesField(text) {
  return bytesToBase64(encoder.encode(text));
}

/** A field of type bytes as text. */
export function textOf(base64) {
  return decoder.decode(base64ToBytes(base64 ?? ""));
}

export function base64ToBytes(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

export function bytesToBase64(bytes) {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(binary);
}
