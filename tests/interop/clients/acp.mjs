// Drives an adapter from the Agent Client Protocol to pi, as an editor would: `acp.mjs ADAPTER EXTENSION`, with `dialogs` behind
// it for an adapter that passes dialogs of extensions on.
// Working directory, agent directory and PATH are those of the test.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync } from "node:fs";
import { ANSWER, assert, make, prompts, script, step, STORY, untilFile, within } from "./steps.mjs";

const [adapter, extension, offers] = process.argv.slice(2);
const cwd = process.cwd();

/** An editor: JSON-RPC over the pipes of the adapter. */
class Editor {
  updates = [];
  #pending = new Map();
  #listeners = new Set();
  #id = 0;

  constructor(adapter) {
    this.process = spawn("node", [adapter], { stdio: ["pipe", "pipe", "inherit"] });
    let rest = "";
    this.process.stdout.setEncoding("utf8").on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.trim()) this.#take(JSON.parse(line));
    });
  }

  #take(message) {
    if (message.method === "session/update") {
      const { update } = message.params;
      this.updates.push(update);
      for (const listener of this.#listeners) listener(update);
    } else if (message.method) {
      this.#write({ id: message.id, result: this.answer(message) });
    } else {
      const { resolve, reject } = this.#pending.get(message.id);
      if (message.error) reject(new Error(JSON.stringify(message.error)));
      else resolve(message.result);
    }
  }

  #write(message) {
    this.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  /** What the user says when the adapter asks for permission; replaced where a step wants something else. */
  answer() {
    return { outcome: { outcome: "cancelled" } };
  }

  ask(method, params) {
    const id = ++this.#id;
    this.#write({ id, method, params });
    return within(new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject })), method);
  }

  tell(method, params) {
    this.#write({ method, params });
  }

  next(fits) {
    return within(
      new Promise((resolve) => {
        const listener = (update) => fits(update) && (this.#listeners.delete(listener), resolve(update));
        this.#listeners.add(listener);
      }),
      `waiting for ${fits}`,
    );
  }

  /** Sends a prompt; its outcome, and the updates that came with it. */
  async prompt(sessionId, text) {
    const from = this.updates.length;
    const { stopReason } = await this.ask("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
    const updates = this.updates.slice(from);
    const chunks = updates.filter(({ sessionUpdate }) => sessionUpdate === "agent_message_chunk");
    return { stopReason, updates, chunks, text: chunks.map(({ content }) => content.text).join("") };
  }

  async end() {
    this.process.stdin.end();
    await once(this.process, "exit");
  }
}

const start = async () => {
  const editor = new Editor(adapter);
  const { agentCapabilities } = await editor.ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
  assert.equal(agentCapabilities.loadSession, true);
  return editor;
};

/** Newer adapters have options in place of a command for each. */
const set = ({ sessionId, configOptions }, category, command) => {
  const option = configOptions?.find((option) => option.category === category);
  if (!option) return editor.ask(...command);
  const [value] = Object.values(command[1]).slice(-1);
  return editor.ask("session/set_config_option", { sessionId, configId: option.id, value });
};
const setModel = (session, modelId) =>
  set(session, "model", ["session/set_model", { sessionId: session.sessionId, modelId }]);
const setLevel = (session, modeId) =>
  set(session, "thought_level", ["session/set_mode", { sessionId: session.sessionId, modeId }]);

let editor = await start();
let session;
let sessionId;

await step("session", async () => {
  session = await editor.ask("session/new", { cwd, mcpServers: [] });
  sessionId = session.sessionId;
  assert.ok(sessionId);
  assert.equal(session.models.currentModelId, "offline/demo");
});

await step("prompt", async () => {
  const { stopReason, text } = await editor.prompt(sessionId, "think about names");
  assert.equal(stopReason, "end_turn");
  assert.match(text, /offline\/demo/);
});

await step("stream", async () => {
  const { chunks, text } = await editor.prompt(sessionId, prompts.story);
  assert.ok(chunks.length > 1, "the answer came in pieces");
  assert.equal(text, STORY);
});

await step("tool call", async () => {
  const running = editor.next(({ status }) => status === "in_progress");
  const over = editor.prompt(sessionId, prompts.tool(untilFile("tool.txt")));
  await running;
  make("tool.txt");
  const { updates, text } = await over;
  assert.ok(updates.some(({ status }) => status === "completed"));
  assert.match(JSON.stringify(updates), ANSWER);
  assert.equal(text, "Working.Worked.");
});

await step("abort", async () => {
  const begun = editor.next(({ content }) => content?.text === "Begun.");
  const over = editor.prompt(sessionId, prompts.endless);
  await begun;
  editor.tell("session/cancel", { sessionId });
  const { stopReason, text } = await over;
  assert.deepEqual([stopReason, text], ["cancelled", "Begun."]);
});

await step("model switch", async () => {
  await setModel(session, "mock/mock-1");
  const { text } = await editor.prompt(sessionId, "Who are you?");
  assert.equal(text, "The mock server.");
  await setModel(session, "offline/demo");
});

await step("thinking level", async () => {
  const changed = editor.next(({ sessionUpdate }) => sessionUpdate === "current_mode_update");
  await setLevel(session, "low");
  assert.equal((await changed).currentModeId, "low");
});

await step("resume", async () => {
  await editor.end();
  editor = await start();
  const { sessions } = await editor.ask("session/list", { cwd });
  assert.ok(sessions.some((session) => session.sessionId === sessionId), JSON.stringify(sessions));
  const { models, modes } = await editor.ask("session/load", { sessionId, cwd, mcpServers: [] });
  assert.deepEqual([models.currentModelId, modes.currentModeId], ["offline/demo", "low"]);
  const said = (kind) => editor.updates.filter((update) => update.sessionUpdate === kind).map(({ content }) => content.text);
  assert.equal(said("user_message_chunk")[0], "think about names");
  assert.ok(said("agent_message_chunk").includes(STORY));
  const { text } = await editor.prompt(sessionId, prompts.story);
  assert.equal(text, STORY);
});

if (offers === "dialogs") {
  await step("dialogs", async () => {
    const extensions = `${process.env.PI_CODING_AGENT_DIR}/extensions`;
    mkdirSync(extensions);
    copyFileSync(extension, `${extensions}/questions.ts`);
    await editor.end();
    editor = await start();
    editor.answer = ({ params: { options } }) => {
      const { optionId } = options.find(({ name }) => name === "green") ?? options[0];
      return { outcome: { outcome: "selected", optionId } };
    };
    const { sessionId } = await editor.ask("session/new", { cwd, mcpServers: [] });
    const asking = script({ turns: [{ tool: "questions", args: {} }, { text: "Asked." }] });
    const { updates, text } = await editor.prompt(sessionId, asking);
    const { content } = updates.find(({ status }) => status === "completed");
    assert.equal(content[0].content.text, '{"sure":true,"colour":"green"}');
    assert.match(text, /Thank you\..*Asked\./s);
  });
}

await step("end", () => editor.end());
