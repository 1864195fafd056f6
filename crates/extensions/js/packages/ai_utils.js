// Small helpers of the modules below `pi-ai/utils`.

import { ops } from "pinion:ops";

export const uuidv7 = () => ops.tools.uuid();
export const sanitizeSurrogates = (text) => text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "");
export const headersToRecord = (headers) => Object.fromEntries(headers.entries());

export function providerHeadersToRecord(...sources) {
  const merged = Object.entries(Object.assign({}, ...sources)).filter(([, value]) => value !== null && value !== undefined);
  return merged.length > 0 ? Object.fromEntries(merged) : undefined;
}

/** Waits, and rejects when the signal aborts first. */
export const sleep = (milliseconds, signal) => new Promise((resolve, reject) => {
  const stop = () => { clearTimeout(timer); reject(signal.reason); };
  const timer = setTimeout(() => { signal?.removeEventListener("abort", stop); resolve(); }, milliseconds);
  if (signal?.aborted) stop(); else signal?.addEventListener("abort", stop, { once: true });
});

const escaped = (text) => String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
const page = (title, message, details) =>
  `<!doctype html><meta charset="utf-8"><title>${title}</title><h1>${title}</h1><p>${escaped(message)}</p>${details ? `<pre>${escaped(details)}</pre>` : ""}`;
export const oauthSuccessHtml = (message) => page("Signed in", message);
export const oauthErrorHtml = (message, details) => page("Sign-in failed", message, details);
