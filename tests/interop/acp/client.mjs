// Drives an agent with the official TypeScript SDK: prompts, a tool, a permission allowed and refused, cancels, options,
// list, load, an image and two sessions at once. Prints one line of JSON per result; the SDK validates every message.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(`${process.env.PINION_ACP_PACKAGES}/package.json`));
const acp = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk")).href);
const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const updates = [];
const answers = [];
let asked = () => {};
const app = acp
  .client({ name: "interop" })
  .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
    asked(params);
    const optionId = answers.length > 0 ? await answers.shift() : "allow";
    return { outcome: optionId ? { outcome: "selected", optionId } : { outcome: "cancelled" } };
  })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    updates.push(params);
  });
const say = (name, value) => console.log(JSON.stringify([name, value]));
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const statuses = () => updates.map(({ update }) => update.status).filter((status) => status);

await app.connectWith(stream, async (ctx) => {
  const methods = acp.methods.agent;
  const cwd = process.cwd();
  const clientCapabilities = { session: { notices: {}, compaction: {} }, elicitation: { form: {} } };
  const initialize = { protocolVersion: 1, clientCapabilities, clientInfo: { name: "interop", version: "1" } };
  say("agent", (await ctx.request(methods.initialize, initialize)).agentInfo.name);
  const { sessionId, configOptions } = await ctx.request(methods.session.new, { cwd, mcpServers: [] });
  say("options", configOptions.map((option) => option.id));
  const prompt = (text, more = [], session = sessionId) =>
    ctx.request(methods.session.prompt, { sessionId: session, prompt: [{ type: "text", text }, ...more] });
  answers.push("allow", "refuse");
  say("allowed", [(await prompt("list the files")).stopReason, statuses().at(-1)]);
  say("refused", [(await prompt("list the files")).stopReason, statuses().at(-1)]);
  // The question stays open until the turn is cancelled.
  let answer;
  answers.push(new Promise((done) => (answer = done)));
  const question = new Promise((done) => (asked = done));
  const cancelled = prompt("list the files");
  await question;
  await ctx.notify(methods.session.cancel, { sessionId });
  answer(undefined);
  say("cancelled", (await cancelled).stopReason);
  const set = { sessionId, configId: "mode", value: "auto" };
  say("set", (await ctx.request(methods.session.setConfigOption, set)).configOptions[0].currentValue);
  const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  say("image", (await prompt("hello", [{ type: "image", mimeType: "image/png", data }])).stopReason);
  const other = await ctx.request(methods.session.new, { cwd, mcpServers: [] });
  const both = await Promise.all([prompt("list the files"), prompt("hello", [], other.sessionId)]);
  say("both", both.map(({ stopReason }) => stopReason));
  say("list", (await ctx.request(methods.session.list, { cwd })).sessions.length);
  updates.length = 0;
  await ctx.request(methods.session.load, { sessionId, cwd, mcpServers: [] });
  await pause(300);
  say("load", updates.slice(0, 3).map(({ update }) => update.sessionUpdate));
  say("close", await ctx.request(methods.session.close, { sessionId }));
});
child.stdin.end();
await new Promise((done) => child.on("exit", done));
