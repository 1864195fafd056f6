// The path of the pinion binary, for programs that start it themselves: without the shim they save its start.
"use strict";

/** Returns the path of the pinion binary; PINION_BINARY names another one. */
function pinionPath() {
  const named = process.env.PINION_BINARY;
  if (named) {
    return named;
  }
  const name = `@pinion/${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/bin/pinion`);
  } catch {
    throw new Error(
      `the package ${name} is missing. Install again without --omit=optional, or set PINION_BINARY to a pinion binary.`,
    );
  }
}

module.exports = { pinionPath };
