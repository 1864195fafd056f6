// The stream of events of one answer, and its final result.

/** A queue of events from a writer to a reader; the event that completes it also sets the result. */
export class EventStream {
  #isComplete;
  #extractResult;
  #queue = [];
  #waiting = [];
  #ended = false;
  #result = Promise.withResolvers();

  constructor(isComplete, extractResult) {
    this.#isComplete = isComplete;
    this.#extractResult = extractResult;
  }

  push(event) {
    if (this.#ended) return;
    if (this.#isComplete(event)) {
      this.#ended = true;
      this.#result.resolve(this.#extractResult(event));
    }
    const reader = this.#waiting.shift();
    if (reader) reader({ value: event, done: false });
    else this.#queue.push(event);
    if (this.#ended) this.#release();
  }

  end(result) {
    this.#ended = true;
    if (result !== undefined) this.#result.resolve(result);
    this.#release();
  }

  #release() {
    for (const reader of this.#waiting.splice(0)) reader({ value: undefined, done: true });
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      if (this.#queue.length > 0) {
        yield this.#queue.shift();
      } else if (this.#ended) {
        return;
      } else {
        const { value, done } = await new Promise((resolve) => this.#waiting.push(resolve));
        if (done) return;
        yield value;
      }
    }
  }

  result() {
    return this.#result.promise;
  }
}

/** The events of an assistant's answer. */
export class AssistantMessageEventStream extends EventStream {
  constructor() {
    super(
      (event) => event.type === "done" || event.type === "error",
      (event) => {
        if (event.type === "done") return event.message;
        if (event.type === "error") return event.error;
        throw new Error("the event does not end an answer");
      },
    );
  }
}

export const createAssistantMessageEventStream = () => new AssistantMessageEventStream();

export const noUsage = () => ({
  input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
});

/** Creates the empty answer of a model. */
export const emptyAnswer = (model) => ({
  role: "assistant", content: [], api: model.api, provider: model.provider, model: model.id,
  usage: noUsage(), stopReason: "stop", timestamp: Date.now(),
});

/** Ends a stream with a failure. */
export function failWith(stream, model, error, signal) {
  const stopReason = signal?.aborted ? "aborted" : "error";
  const errorMessage = error instanceof Error ? error.message : String(error);
  stream.push({ type: "error", reason: stopReason, error: { ...emptyAnswer(model), stopReason, errorMessage } });
}
