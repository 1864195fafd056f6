// ReadableStream with its default reader. Byte streams deliver chunks as they come.
export class CountQueuingStrategy {
  constructor({ highWaterMark }) {
    this.highWaterMark = highWaterMark;
  }

  size() {
    return 1;
  }
}

export class ByteLengthQueuingStrategy {
  constructor({ highWaterMark }) {
    this.highWaterMark = highWaterMark;
  }

  size(chunk) {
    return chunk.byteLength;
  }
}

// State that a stream, its controller and its reader share.
class Queue {
  state = "readable";
  chunks = [];
  size = 0;
  waiting = [];
  closing = false;
  pulling = false;
  pullAgain = false;
  started = false;
  error = undefined;
  reader = null;
  disturbed = false;
  closed = Promise.withResolvers();

  constructor(source, strategy) {
    this.source = source;
    this.measure = strategy.size ? (chunk) => strategy.size(chunk) : () => 1;
    this.highWaterMark = strategy.highWaterMark ?? (source.type === "bytes" ? 0 : 1);
    this.closed.promise.catch(() => {});
  }

  desired() {
    if (this.state === "errored") return null;
    return this.state === "closed" ? 0 : this.highWaterMark - this.size;
  }

  enqueue(chunk) {
    if (this.closing || this.state !== "readable") throw new TypeError("Invalid state: Controller is already closed");
    const next = this.waiting.shift();
    if (next) {
      next.resolve({ value: chunk, done: false });
    } else {
      const size = Number(this.measure(chunk));
      this.chunks.push({ chunk, size });
      this.size += size;
    }
    this.pull();
  }

  close() {
    if (this.closing || this.state !== "readable") throw new TypeError("Invalid state: Controller is already closed");
    this.closing = true;
    if (this.chunks.length === 0) this.finish();
  }

  finish() {
    this.state = "closed";
    for (const next of this.waiting.splice(0)) next.resolve({ value: undefined, done: true });
    this.closed.resolve();
  }

  fail(error) {
    if (this.state !== "readable") return;
    this.state = "errored";
    this.error = error;
    this.chunks = [];
    this.size = 0;
    for (const next of this.waiting.splice(0)) next.reject(error);
    this.closed.reject(error);
  }

  read() {
    this.disturbed = true;
    if (this.state === "errored") return Promise.reject(this.error);
    const first = this.chunks.shift();
    if (first) {
      this.size -= first.size;
      if (this.closing && this.chunks.length === 0) this.finish();
      else this.pull();
      return Promise.resolve({ value: first.chunk, done: false });
    }
    if (this.state === "closed") return Promise.resolve({ value: undefined, done: true });
    const next = Promise.withResolvers();
    this.waiting.push(next);
    this.pull();
    return next.promise;
  }

  pull() {
    const wanted = this.started && this.state === "readable" && !this.closing && (this.waiting.length > 0 || this.desired() > 0);
    if (!wanted || !this.source.pull) return;
    if (this.pulling) {
      this.pullAgain = true;
      return;
    }
    this.pulling = true;
    const done = () => {
      this.pulling = false;
      if (this.pullAgain) {
        this.pullAgain = false;
        this.pull();
      }
    };
    try {
      Promise.resolve(this.source.pull(this.controller)).then(done, (error) => this.fail(error));
    } catch (error) {
      this.fail(error);
    }
  }

  async cancel(reason) {
    this.disturbed = true;
    if (this.state === "errored") throw this.error;
    if (this.state === "closed") return;
    this.chunks = [];
    this.size = 0;
    this.finish();
    await this.source.cancel?.(reason);
  }
}

export class ReadableStreamDefaultController {
  #queue;

  constructor(queue) {
    this.#queue = queue;
  }

  get desiredSize() {
    return this.#queue.desired();
  }

  get byobRequest() {
    return null;
  }

  enqueue(chunk) {
    this.#queue.enqueue(chunk);
  }

  close() {
    this.#queue.close();
  }

  error(reason) {
    this.#queue.fail(reason);
  }
}

const queues = new WeakMap();
const held = (reader) => reader ?? (() => { throw new TypeError("Invalid state: The reader is not attached to a stream"); })();

export class ReadableStreamDefaultReader {
  #queue;

  constructor(stream) {
    const queue = queues.get(stream);
    if (queue === undefined) throw new TypeError("The \"stream\" argument must be an instance of ReadableStream");
    if (queue.reader) throw new TypeError("Invalid state: ReadableStream is locked");
    queue.reader = this;
    this.#queue = queue;
  }

  get closed() {
    return this.#queue ? this.#queue.closed.promise : Promise.reject(new TypeError("Invalid state: Reader released"));
  }

  async read() {
    return held(this.#queue).read();
  }

  async cancel(reason) {
    return held(this.#queue).cancel(reason);
  }

  releaseLock() {
    if (!this.#queue) return;
    const released = new TypeError("Invalid state: Reader released");
    for (const next of this.#queue.waiting.splice(0)) next.reject(released);
    this.#queue.reader = null;
    this.#queue = undefined;
  }
}

export class ReadableStream {
  constructor(source = {}, strategy = {}) {
    const queue = new Queue(source ?? {}, strategy ?? {});
    queue.controller = new ReadableStreamDefaultController(queue);
    queues.set(this, queue);
    const started = () => {
      queue.started = true;
      queue.pull();
    };
    const result = queue.source.start?.(queue.controller);
    Promise.resolve(result).then(started, (error) => queue.fail(error));
  }

  static from(iterable) {
    const iterator = iterable[Symbol.asyncIterator]?.() ?? iterable[Symbol.iterator]();
    return new ReadableStream({
      async pull(controller) {
        const { value, done } = await iterator.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel(reason) {
        await iterator.return?.(reason);
      },
    }, { highWaterMark: 0 });
  }

  get locked() {
    return queues.get(this).reader !== null;
  }

  getReader() {
    return new ReadableStreamDefaultReader(this);
  }

  async cancel(reason) {
    if (this.locked) throw new TypeError("Invalid state: ReadableStream is locked");
    return queues.get(this).cancel(reason);
  }

  tee() {
    const reader = this.getReader();
    const branches = [];
    const gone = [false, false];
    let reading = false;
    const pull = async () => {
      if (reading) return;
      reading = true;
      try {
        const { value, done } = await reader.read();
        reading = false;
        branches.forEach((controller, at) => {
          if (gone[at]) return;
          if (done) controller.close();
          else controller.enqueue(value);
        });
      } catch (error) {
        branches.forEach((controller) => controller.error(error));
      }
    };
    const branch = (at) => new ReadableStream({
      start(controller) {
        branches[at] = controller;
      },
      pull,
      async cancel(reason) {
        gone[at] = true;
        if (gone[0] && gone[1]) await reader.cancel(reason);
      },
    });
    return [branch(0), branch(1)];
  }

  async pipeTo(target, { preventClose = false, preventAbort = false, preventCancel = false, signal } = {}) {
    const reader = this.getReader();
    const writer = target.getWriter();
    const aborted = Promise.withResolvers();
    aborted.promise.catch(() => {});
    signal?.addEventListener("abort", () => aborted.reject(signal.reason), { once: true });
    try {
      signal?.throwIfAborted();
      for (;;) {
        await Promise.race([writer.ready, aborted.promise]);
        const { value, done } = await Promise.race([reader.read(), aborted.promise]);
        if (done) break;
        writer.write(value).catch(() => {});
      }
      if (!preventClose) await writer.close();
    } catch (error) {
      if (!preventAbort) await writer.abort(error).catch(() => {});
      if (!preventCancel) await reader.cancel(error).catch(() => {});
      throw error;
    } finally {
      reader.releaseLock();
      writer.releaseLock();
    }
  }

  pipeThrough({ readable, writable }, options) {
    this.pipeTo(writable, options).catch(() => {});
    return readable;
  }

  values({ preventCancel = false } = {}) {
    const reader = this.getReader();
    return {
      async next() {
        const result = await reader.read();
        if (result.done) reader.releaseLock();
        return result;
      },
      async return(value) {
        if (!preventCancel) await reader.cancel(value);
        reader.releaseLock();
        return { value, done: true };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  [Symbol.asyncIterator](options) {
    return this.values(options);
  }

  get [Symbol.toStringTag]() {
    return "ReadableStream";
  }
}

// Reports whether `stream` has been read from or cancelled.
export function isDisturbed(stream) {
  return queues.get(stream).disturbed;
}
