// Drives a class `RpcClient`: pi's own, or one with the same methods. `rpc-client.mjs MODULE EXTENSION`.
// Working directory, agent directory and PATH are those of the test.
import { existsSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ANSWER, assert, make, prompts, script, step, STORY, untilFile, within } from "./steps.mjs";

const [module, extension] = process.argv.slice(2);
const { RpcClient } = await import(pathToFileURL(module));
const cliPath = fileURLToPath(new URL("pi-shim.mjs", import.meta.url));

/** Methods that the class has for itself. */
const INTERNAL = new Set(["handleLine", "send", "getData", "createProcessExitError", "rejectPendingRequests"]);
const called = new Set(["constructor"]);
/** Notes which methods of a client were called. */
const noting = (client) =>
  new Proxy(client, {
    get(client, name) {
      const value = client[name];
      if (typeof value !== "function") return value;
      called.add(name);
      return value.bind(client);
    },
  });

const open = async (...args) => {
  const client = noting(new RpcClient({ cliPath, provider: "offline", model: "demo", args }));
  await client.start();
  return client;
};

/** Resolves with the first event that fits, from now on. */
const next = (client, fits) =>
  within(
    new Promise((resolve) => {
      const stop = client.onEvent((event) => fits(event) && (stop(), resolve(event)));
    }),
    `waiting for ${fits}`,
  );
const settled = (client) => next(client, ({ type }) => type === "agent_end");
const textOf = (message) => message.content.map((block) => block.text ?? "").join("");

let client = await open();

await step("prompt", async () => {
  const idle = client.waitForIdle(); // before the prompt: the built-in model may be done before `prompt` returns
  await client.prompt("think about names");
  await idle;
  assert.match(await client.getLastAssistantText(), /offline\/demo/);
});

await step("stream", async () => {
  const events = await client.promptAndWait(prompts.story);
  const deltas = events.map((event) => event.assistantMessageEvent).filter((update) => update?.type === "text_delta");
  assert.ok(deltas.length > 1, "the answer came in pieces");
  assert.equal(deltas.map(({ delta }) => delta).join(""), STORY);
  // pi 1.x sends only what is new; before it, each piece repeats the answer so far.
  for (const [n, { partial }] of deltas.entries())
    if (partial) assert.ok(STORY.startsWith(textOf(partial)) && textOf(partial), `piece ${n} carries the answer so far`);
  assert.equal(textOf(events.findLast(({ type }) => type === "message_end").message), STORY);
});

await step("tool call", async () => {
  const started = next(client, ({ type }) => type === "tool_execution_start");
  const over = client.collectEvents();
  await client.prompt(prompts.tool(untilFile("tool.txt")));
  assert.equal((await started).toolName, "bash");
  assert.equal((await client.getState()).isStreaming, true);
  make("tool.txt");
  const { result, isError } = (await over).find(({ type }) => type === "tool_execution_end");
  assert.equal(isError, false);
  assert.match(textOf(result), ANSWER);
  assert.equal(await client.getLastAssistantText(), "Worked.");
});

await step("queues", async () => {
  const started = next(client, ({ type }) => type === "tool_execution_start");
  const over = settled(client);
  await client.prompt(prompts.tool(untilFile("queue.txt")));
  await started;
  await client.steer("steered");
  await client.followUp("followed up");
  assert.equal((await client.getState()).pendingMessageCount, 2);
  make("queue.txt");
  const said = (await over).messages.filter(({ role }) => role === "user").map(textOf);
  assert.deepEqual(said.slice(1), ["steered", "followed up"]);
});

await step("abort", async () => {
  const begun = next(client, (event) => event.assistantMessageEvent?.type === "text_delta");
  const over = settled(client);
  await client.prompt(prompts.endless);
  await begun;
  await client.abort();
  const last = (await over).messages.at(-1);
  assert.equal(last.stopReason, "aborted");
  assert.equal(textOf(last), "Begun.");
  assert.equal((await client.getState()).isStreaming, false);
});

await step("model switch", async () => {
  const models = (await client.getAvailableModels()).map(({ provider, id }) => `${provider}/${id}`);
  assert.ok(models.includes("mock/mock-1"), models.join(" "));
  assert.equal((await client.setModel("mock", "mock-1")).id, "mock-1");
  await client.setThinkingLevel("low");
  const { model, thinkingLevel } = await client.getState();
  assert.deepEqual([model.provider, model.id, thinkingLevel], ["mock", "mock-1", "low"]);
  await client.promptAndWait("Who are you?");
  assert.equal(await client.getLastAssistantText(), "The mock server.");
  assert.equal((await client.cycleModel()).isScoped, false);
  await assert.rejects(client.setModel("mock", "nobody"), /Model not found: mock\/nobody/);
  await client.setModel("offline", "demo");
});

await step("shell", async () => {
  const { output, exitCode } = await client.bash("echo by hand; exit 3");
  assert.deepEqual([output.trim(), exitCode], ["by hand", 3]);
});

await step("resume", async () => {
  await client.setSessionName("Märchen");
  const [{ sessionFile, sessionId }, messages] = [await client.getState(), await client.getMessages()];
  await client.stop();
  client = await open("--session", sessionFile);
  const state = await client.getState();
  assert.deepEqual([state.sessionId, state.sessionName], [sessionId, "Märchen"]);
  assert.deepEqual(await client.getMessages(), messages);
  await client.promptAndWait(prompts.story);
  assert.equal(await client.getLastAssistantText(), STORY);
  assert.equal((await client.newSession()).cancelled, false);
  assert.deepEqual(await client.getMessages(), []);
  await client.switchSession(sessionFile);
  assert.equal((await client.getState()).sessionId, sessionId);
  const [first] = await client.getForkMessages();
  assert.equal((await client.fork(first.entryId)).text, "think about names");
});

await step("every method", async () => {
  for (const mode of ["all", "one-at-a-time"]) {
    await client.setSteeringMode(mode);
    await client.setFollowUpMode(mode);
  }
  const { steeringMode, followUpMode } = await client.getState();
  assert.deepEqual([steeringMode, followUpMode], ["one-at-a-time", "one-at-a-time"]);
  await client.setAutoCompaction(false);
  await client.setAutoRetry(false);
  assert.equal((await client.getState()).autoCompactionEnabled, false);
  await client.abortRetry();
  await client.cycleThinkingLevel();

  const slow = client.bash("sleep 100");
  // The command has begun when the program answers what came after it.
  await client.getState();
  await client.abortBash();
  assert.equal((await slow).cancelled, true);

  // A summary needs something that is old enough.
  await client.promptAndWait(script({ text: "word ".repeat(30_000) }));
  await client.promptAndWait(prompts.story);
  const { totalMessages } = await client.getSessionStats();
  assert.ok(totalMessages > 2, `${totalMessages} messages`);
  assert.ok(existsSync((await client.exportHtml("session.html")).path));
  assert.ok((await client.getCommands()).every(({ name, source }) => name && source));
  assert.equal(client.getStderr(), "");

  const { summary, tokensBefore } = await client.compact("briefly");
  assert.ok(summary && tokensBefore > 1000, `${tokensBefore} tokens`);

  // Methods of later releases.
  if (client.clone) assert.equal((await client.clone()).cancelled, false);
  if (client.getAvailableThinkingLevels) assert.ok((await client.getAvailableThinkingLevels()).includes("off"));
  if (client.clearQueue) assert.deepEqual(await client.clearQueue(), { steering: [], followUp: [] });
  if (client.getEntries) {
    const { entries, leafId } = await client.getEntries();
    assert.equal(entries.at(-1).id, leafId);
    assert.equal((await client.getEntries(leafId)).entries.length, 0);
    assert.equal((await client.getTree()).leafId, leafId);
  }
  // A class that others derived from pi's has methods for programs of theirs.
  if (client.sendUIResponse) return;
  const methods = Object.getOwnPropertyNames(RpcClient.prototype);
  const missed = methods.filter((name) => !called.has(name) && !INTERNAL.has(name));
  assert.deepEqual(missed, []);
});

// A dialog can only be answered by clients that have a method for it.
if (client.sendUIResponse) {
  await step("dialogs", async () => {
    await client.stop();
    client = await open("-e", extension);
    const told = [];
    client.onEvent((event) => {
      if (event.type !== "extension_ui_request") return;
      told.push(event.method);
      if (event.method === "confirm") client.sendUIResponse(event.id, { confirmed: true });
      if (event.method === "select") client.sendUIResponse(event.id, { value: event.options[1] });
      if (event.method === "input") client.sendUIResponse(event.id, { cancelled: true });
    });
    await client.promptAndWait(script({ turns: [{ tool: "questions", args: {} }, { text: "Asked." }] }));
    const [result] = (await client.getMessages()).filter(({ role }) => role === "toolResult");
    assert.equal(textOf(result), '{"sure":true,"colour":"green"}');
    assert.deepEqual(told, ["confirm", "select", "input", "notify"]);
  });
}

await step("end", () => client.stop());
