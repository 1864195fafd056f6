// JSON without losing numbers: what does not fit a double stays as it was written, where the browser can do that.

const LONG_NUMBER = /\d{16}/;

/** A number as it was written. */
export function exactNumber(written) {
  const value = Number(written);
  const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?[1-9]\d*$/.test(written);
  return isRounded && JSON.rawJSON ? JSON.rawJSON(written) : value;
}

/** Whether a value is a number that was kept as text; `JSON.stringify` prints it as it was. */
export const isRaw = (value) => JSON.isRawJSON?.(value) ?? false;

/** Reads JSON. */
export function parseJson(text) {
  // Looking at every value is slow, and next to never needed.
  return LONG_NUMBER.test(text) ? JSON.parse(text, exactly) : JSON.parse(text);
}

function exactly(key, value, context) {
  return typeof value === "number" && context?.source ? exactNumber(context.source) : value;
}
