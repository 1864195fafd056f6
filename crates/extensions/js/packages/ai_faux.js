// A provider for tests: it answers with given responses, in order.

import { createProvider } from "pinion:packages/ai_collections";
import { AssistantMessageEventStream, failWith, noUsage } from "pinion:packages/ai_events";
import { registerApiProvider, unregisterApiProviders } from "pinion:packages/ai_stream";

export const fauxText = (text) => ({ type: "text", text });
export const fauxThinking = (thinking) => ({ type: "thinking", thinking });
export const fauxToolCall = (name, arguments_, options = {}) => ({
  type: "toolCall", id: options.id ?? `tool:${Date.now()}:${Math.random().toString(36).slice(2, 12)}`, name, arguments: arguments_,
});

export function fauxAssistantMessage(content, options = {}) {
  const blocks = typeof content === "string" ? [fauxText(content)] : Array.isArray(content) ? content : [content];
  const message = {
    role: "assistant", content: blocks, api: "faux", provider: "faux", model: "faux-1", usage: noUsage(),
    stopReason: options.stopReason ?? "stop", timestamp: options.timestamp ?? Date.now(),
  };
  if (options.errorMessage !== undefined) message.errorMessage = options.errorMessage;
  if (options.responseId !== undefined) message.responseId = options.responseId;
  return message;
}

const PER_TOKEN = 4;
const tokens = (text) => Math.ceil(text.length / PER_TOKEN);

function piecesOf(text, { min = 3, max = 5 } = {}) {
  const pieces = [];
  for (let at = 0; at < text.length;) {
    const size = PER_TOKEN * (min + Math.floor(Math.random() * (max - min + 1)));
    pieces.push(text.slice(at, at + size));
    at += size;
  }
  return pieces.length > 0 ? pieces : [""];
}

const textOf = (block) => (block.type === "text" ? block.text : block.type === "thinking" ? block.thinking : JSON.stringify(block.arguments));

async function play(stream, message, { tokenSize, tokensPerSecond, signal }) {
  const partial = { ...message, content: [] };
  const push = (type, members) => stream.push({ type, ...members, partial });
  const pause = (text) => (tokensPerSecond > 0 ? new Promise((resolve) => setTimeout(resolve, (1000 * tokens(text)) / tokensPerSecond)) : undefined);
  push("start", {});
  for (const [contentIndex, block] of message.content.entries()) {
    const word = block.type === "toolCall" ? "toolcall" : block.type;
    const growing = block.type === "toolCall" ? { ...block, arguments: {} } : { ...block, [block.type]: "" };
    partial.content.push(growing);
    push(`${word}_start`, { contentIndex });
    for (const delta of piecesOf(textOf(block), tokenSize)) {
      await pause(delta);
      if (signal?.aborted) {
        stream.push({ type: "error", reason: "aborted", error: { ...partial, stopReason: "aborted", errorMessage: "Request was aborted" } });
        return;
      }
      if (block.type !== "toolCall") growing[block.type] += delta;
      push(`${word}_delta`, { contentIndex, delta });
    }
    if (block.type === "toolCall") growing.arguments = block.arguments;
    push(`${word}_end`, block.type === "toolCall" ? { contentIndex, toolCall: growing } : { contentIndex, content: textOf(block) });
  }
  const reason = message.stopReason;
  const failed = reason === "error" || reason === "aborted";
  stream.push(failed ? { type: "error", reason, error: message } : { type: "done", reason, message });
}

/** Creates the models and the answers of the provider. */
export function createFauxCore(options = {}) {
  const api = options.api ?? `faux:${Date.now()}:${Math.random().toString(36).slice(2, 12)}`;
  const provider = options.provider ?? "faux";
  const definitions = options.models?.length > 0 ? options.models : [{ id: "faux-1", name: "Faux Model" }];
  const models = definitions.map((definition) => ({
    id: definition.id, name: definition.name ?? definition.id, api, provider, baseUrl: "http://localhost:0",
    reasoning: definition.reasoning ?? false, input: definition.input ?? ["text", "image"],
    cost: definition.cost ?? { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: definition.contextWindow ?? 128000, maxTokens: definition.maxTokens ?? 16384,
  }));
  const state = { callCount: 0 };
  let responses = [];

  const answer = (model, context, request) => {
    const stream = new AssistantMessageEventStream();
    const step = responses.shift();
    state.callCount += 1;
    const run = async () => {
      if (step === undefined) throw new Error("No more faux responses queued");
      const given = typeof step === "function" ? await step(context, request, state, model) : step;
      const input = tokens(JSON.stringify(context.messages ?? []) + (context.systemPrompt ?? ""));
      const output = given.content.reduce((sum, block) => sum + tokens(textOf(block)), 0);
      const message = { ...JSON.parse(JSON.stringify(given)), api, provider, model: model.id, usage: { ...noUsage(), input, output, totalTokens: input + output } };
      await play(stream, message, { ...options, signal: request?.signal });
    };
    run().catch((error) => failWith(stream, model, error, request?.signal)).finally(() => stream.end());
    return stream;
  };
  return {
    api, provider, models, state, stream: answer, streamSimple: answer,
    getModel: (id) => (id === undefined ? models[0] : models.find((model) => model.id === id)),
    setResponses: (steps) => { responses = [...steps]; },
    appendResponses: (steps) => { responses.push(...steps); },
    getPendingResponseCount: () => responses.length,
  };
}

/** Registers the provider under its own api. */
export function registerFauxProvider(options) {
  const { provider, stream, streamSimple, ...handle } = createFauxCore(options);
  const sourceId = `faux:${handle.api}`;
  registerApiProvider({ api: handle.api, stream, streamSimple }, sourceId);
  return { ...handle, unregister: () => unregisterApiProviders(sourceId) };
}

/** Creates the provider for a collection of models. */
export function fauxProvider(options) {
  const { provider: id, stream, streamSimple, ...handle } = createFauxCore(options);
  const auth = { apiKey: { name: "Faux", check: async () => ({ type: "api_key" }), resolve: async () => ({ auth: {} }) } };
  return { ...handle, provider: createProvider({ id, name: id, auth, models: handle.models, api: { stream, streamSimple } }) };
}
