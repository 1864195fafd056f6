// What all drivers share: steps that are told one by one, and prompts that tell the built-in model what to do.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** How long anything may take before it counts as hanging. Not a measure of speed. */
const HANG = 30_000;

/** Runs a step of a driver and tells the test that it was done; what goes wrong ends the driver. */
export async function step(name, work) {
  try {
    await within(work(), `the step "${name}"`);
  } catch (error) {
    console.error(`${name}: ${error.stack ?? error}`);
    process.exit(1);
  }
  console.log(JSON.stringify({ did: name }));
}

export async function within(promise, what) {
  const clock = new AbortController();
  const late = sleep(HANG, undefined, { signal: clock.signal }).then(() => assert.fail(`${what} does not end`));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clock.abort();
    late.catch(() => {});
  }
}

/** A prompt that makes the built-in model do exactly this. */
export const script = (turns) => `offline: ${JSON.stringify(turns)}`;

export const STORY = "Es war einmal, \"quoted\", back\\slash, 🦀.\nThe end.";

export const prompts = {
  story: script({ text: STORY, chunk: 5 }),
  /** A tool that waits until the driver has seen it, so that the order of things is certain. */
  tool: (command) => script({ turns: [[{ text: "Working." }, { tool: "bash", args: { command } }], { text: "Worked." }] }),
  endless: script([{ text: "Begun." }, { stall: 3_600_000 }, { text: "Never." }]),
};

/** A command that ends when the file is there. What it says then is not a part of the command. */
export const untilFile = (name) => `until [ -e ${name} ]; do sleep 0.02; done; echo $((6 * 7)) is the answer`;
export const ANSWER = /42 is the answer/;
export const make = (name) => writeFileSync(name, "");
export { assert };
