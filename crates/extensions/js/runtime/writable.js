// WritableStream and TransformStream.
class Sink {
  state = "writable";
  chain;
  size = 0;
  error = undefined;
  writer = null;
  ready = Promise.withResolvers();
  closed = Promise.withResolvers();
  abortController = new AbortController();

  constructor(sink, strategy) {
    this.sink = sink;
    this.measure = strategy.size ? (chunk) => strategy.size(chunk) : () => 1;
    this.highWaterMark = strategy.highWaterMark ?? 1;
    this.closed.promise.catch(() => {});
    this.ready.promise.catch(() => {});
    this.controller = { signal: this.abortController.signal, error: (reason) => this.fail(reason) };
    this.chain = Promise.resolve(sink.start?.(this.controller)).catch((error) => this.fail(error));
    if (this.highWaterMark > 0) this.ready.resolve();
  }

  desired() {
    if (this.state === "errored") return null;
    return this.state === "closed" ? 0 : this.highWaterMark - this.size;
  }

  write(chunk) {
    if (this.state !== "writable") return Promise.reject(this.error ?? new TypeError("Invalid state: WritableStream is closed"));
    const size = Number(this.measure(chunk));
    this.size += size;
    if (this.desired() <= 0) {
      this.ready = Promise.withResolvers();
      this.ready.promise.catch(() => {});
    }
    const done = this.chain.then(async () => {
      if (this.state === "errored") throw this.error;
      await this.sink.write?.(chunk, this.controller);
      this.size -= size;
      if (this.desired() > 0) this.ready.resolve();
    });
    this.chain = done.catch((error) => this.fail(error));
    return done;
  }

  close() {
    if (this.state !== "writable") return Promise.reject(this.error ?? new TypeError("Invalid state: WritableStream is closed"));
    this.state = "closing";
    const done = this.chain.then(async () => {
      if (this.state === "errored") throw this.error;
      await this.sink.close?.();
      this.state = "closed";
      this.closed.resolve();
    });
    this.chain = done.catch((error) => this.fail(error));
    return done;
  }

  async abort(reason) {
    if (this.state === "closed" || this.state === "errored") return;
    this.abortController.abort(reason);
    this.fail(reason);
    await this.sink.abort?.(reason);
  }

  fail(error) {
    if (this.state === "errored" || this.state === "closed") return;
    this.state = "errored";
    this.error = error;
    this.ready.reject(error);
    this.closed.reject(error);
  }
}

const sinks = new WeakMap();

export class WritableStreamDefaultWriter {
  #sink;

  constructor(stream) {
    const sink = sinks.get(stream);
    if (sink.writer) throw new TypeError("Invalid state: WritableStream is locked");
    sink.writer = this;
    this.#sink = sink;
  }

  get ready() {
    return this.#sink.ready.promise;
  }

  get closed() {
    return this.#sink.closed.promise;
  }

  get desiredSize() {
    return this.#sink.desired();
  }

  async write(chunk) {
    return this.#sink.write(chunk);
  }

  async close() {
    return this.#sink.close();
  }

  async abort(reason) {
    return this.#sink.abort(reason);
  }

  releaseLock() {
    this.#sink.writer = null;
  }
}

export class WritableStream {
  constructor(sink = {}, strategy = {}) {
    sinks.set(this, new Sink(sink ?? {}, strategy ?? {}));
  }

  get locked() {
    return sinks.get(this).writer !== null;
  }

  getWriter() {
    return new WritableStreamDefaultWriter(this);
  }

  async close() {
    if (this.locked) throw new TypeError("Invalid state: WritableStream is locked");
    return sinks.get(this).close();
  }

  async abort(reason) {
    if (this.locked) throw new TypeError("Invalid state: WritableStream is locked");
    return sinks.get(this).abort(reason);
  }

  get [Symbol.toStringTag]() {
    return "WritableStream";
  }
}

export class TransformStream {
  #readable;
  #writable;

  constructor(transformer = {}, writableStrategy = {}, readableStrategy = { highWaterMark: 0 }) {
    let output;
    let drained = Promise.withResolvers();
    this.#readable = new ReadableStream({
      start(controller) {
        output = controller;
      },
      pull() {
        drained.resolve();
      },
      cancel(reason) {
        drained.resolve();
        transformer.cancel?.(reason);
        ended = true;
      },
    }, readableStrategy);
    let ended = false;
    const controller = {
      enqueue(chunk) {
        output.enqueue(chunk);
      },
      error(reason) {
        output.error(reason);
      },
      terminate() {
        ended = true;
        output.close();
      },
      get desiredSize() {
        return output.desiredSize;
      },
    };
    this.#writable = new WritableStream({
      start: () => transformer.start?.(controller),
      async write(chunk) {
        if (ended) throw new TypeError("Invalid state: The stream has been terminated");
        if (output.desiredSize !== null && output.desiredSize <= 0) {
          await drained.promise;
          drained = Promise.withResolvers();
        }
        try {
          if (transformer.transform) await transformer.transform(chunk, controller);
          else controller.enqueue(chunk);
        } catch (error) {
          output.error(error);
          throw error;
        }
      },
      async close() {
        try {
          await transformer.flush?.(controller);
          if (!ended) output.close();
        } catch (error) {
          output.error(error);
          throw error;
        }
      },
      abort(reason) {
        output.error(reason);
      },
    }, writableStrategy);
  }

  get readable() {
    return this.#readable;
  }

  get writable() {
    return this.#writable;
  }
}
