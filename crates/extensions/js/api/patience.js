// A time limit for handlers: the program does not wait for one that takes too long.
//
// One timer watches all handlers, so that a handler that returns immediately needs no timer. Time in which the
// extension waits for the user or for the program does not count.

let limit = 5 * 60 * 1000;
const waiting = new Set();
let timer;

/** Sets the time limit of a handler, in milliseconds. */
export function setPatience(milliseconds) {
  limit = milliseconds;
}

/** Resolves with the result of `promise`, or rejects when it takes too long. */
export function patiently(extension, promise) {
  return new Promise((resolve, reject) => {
    const entry = { extension, since: Date.now(), reject };
    waiting.add(entry);
    timer ??= setTimeout(sweep, limit);
    promise.then(
      (result) => {
        waiting.delete(entry);
        resolve(result);
      },
      (error) => {
        waiting.delete(entry);
        reject(error);
      },
    );
  });
}

/** Resolves with the result of `promise`, or rejects with the message `words` after `milliseconds`. */
export function within(milliseconds, promise, words) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(words)), milliseconds);
    promise.then(resolve, reject).finally(() => clearTimeout(late));
  });
}

/** Stops counting time until the returned function is called. */
export function pause(extension) {
  extension.pauses += 1;
  return () => {
    extension.pauses -= 1;
    extension.pausedUntil = Date.now();
  };
}

/** Runs `task` without counting its time. */
export async function pausing(extension, task) {
  const finish = pause(extension);
  try {
    return await task();
  } finally {
    finish();
  }
}

function sweep() {
  const now = Date.now();
  let next = limit;
  for (const entry of [...waiting]) {
    const since = Math.max(entry.since, entry.extension.pausedUntil);
    const left = entry.extension.pauses > 0 ? limit : since + limit - now;
    if (left > 0) {
      next = Math.min(next, left);
    } else {
      waiting.delete(entry);
      entry.reject(new Error(`The handler did not finish within ${limit / 1000} seconds`));
    }
  }
  timer = waiting.size > 0 ? setTimeout(sweep, next) : undefined;
}
