// JSON without losing numbers: what does not fit a double stays as it was written, where the browser can do that.

const LONG_NUMBER = /\d{16}/;

/** A number as it was written. */
export function exactNumber(written) {
  const value = Number(written);
  const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?[1-9]\d*$/.test(written);
  return isRounded && JSON.rawJSON ? JSON.rawJSON(written) : value;
}

/** Reports whether a value is a number stored as text; `JSON.stringify` prints it unchanged. */
export const isRaw = (value) => JSON.isRawJSON?.(value) ?? false;

/** Reads JSON. */
export function parseJson(text) {
  // The reviver is slow and rarely needed.
  return LONG_NUMBER.test(text) ? JSON.parse(text, exactly) : JSON.parse(text);
}

function exactly(key, value, context) {
  return typeof value === "number" && context?.source ? exactNumber(context.source) : value;
}
