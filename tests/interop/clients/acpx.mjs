// Drives acpx, a program for the command line that talks to agents over the Agent Client Protocol, with pi-acp beside it as the
// way to pi: `acpx.mjs ACPX`. Working directory, agent directory and PATH are those of the test.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { ANSWER, assert, prompts, step, STORY, within } from "./steps.mjs";

const acpx = process.argv[2];
const adapter = resolve(acpx, "../../../pi-acp/dist/index.js");

/** Starts acpx; `shown` is what it has printed. */
function start(...args) {
  // What it keeps running for the next prompt ends after a second.
  const flags = ["--ttl", "1", "--approve-all", "--agent", `node ${adapter}`];
  const run = { process: spawn("node", [acpx, ...flags, ...args], { stdio: ["ignore", "pipe", "pipe"] }), shown: "" };
  for (const stream of [run.process.stdout, run.process.stderr])
    stream.setEncoding("utf8").on("data", (text) => (run.shown += text));
  run.ended = once(run.process, "close").then(([code]) => code);
  return run;
}

async function acpxDoes(...args) {
  const run = start(...args);
  assert.equal(await run.ended, 0, run.shown);
  return run.shown;
}

await step("prompt", async () => assert.match(await acpxDoes("exec", "think about names"), /offline\/demo/));

await step("stream", async () => {
  const lines = (await acpxDoes("--format", "json", "exec", prompts.story)).split("\n").filter((line) => line.startsWith("{"));
  const updates = lines.map((line) => JSON.parse(line).params?.update);
  const chunks = updates.filter((update) => update?.sessionUpdate === "agent_message_chunk");
  assert.ok(chunks.length > 1, "the answer came in pieces");
  // The adapter puts in front what npm tells of newer releases, when npm is quick enough.
  const text = chunks.map(({ content }) => content.text).join("");
  assert.equal(text.replace(/^New version available: .*\n/, ""), STORY);
});

await step("tool call", async () => {
  const shown = await acpxDoes("exec", prompts.tool("echo $((6 * 7)) is the answer"));
  assert.match(shown, ANSWER);
  assert.match(shown, /Worked\./);
});

await step("resume", async () => {
  await acpxDoes("sessions", "new");
  // Each is a process of its own, which loads the session again.
  for (const text of ["think about apples", "think about pears"]) await acpxDoes("prompt", text);
  const sessions = `${process.env.PI_CODING_AGENT_DIR}/sessions`;
  const files = readdirSync(sessions, { recursive: true }).filter((name) => name.endsWith(".jsonl"));
  const texts = files.map((name) => readFileSync(`${sessions}/${name}`, "utf8"));
  assert.ok(texts.some((text) => /about apples[^]*about pears/.test(text)), "both are in one session");
});

await step("abort", async () => {
  const run = start("prompt", prompts.endless);
  const begun = new Promise((resolve) => run.process.stdout.on("data", () => run.shown.includes("Begun.") && resolve()));
  await within(begun, "the answer");
  await acpxDoes("cancel");
  await run.ended;
  assert.match(run.shown, /\[done\] cancelled/);
});
