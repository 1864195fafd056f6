// `pi.exec`: runs a program and waits for it. Never rejects.

import { later, now } from "pinion:api/bridge";

let count = 0;

/** Runs `command` without a shell. */
export async function exec(seat, command, words, options = {}) {
  count += 1;
  const job = `${seat.generation}-${count}`;
  const signal = options?.signal;
  const stop = () => now(seat, "stopProgram", job);
  const settings = {
    job,
    command: String(command),
    arguments: [...(words ?? [])].map(String),
    cwd: options?.cwd,
    timeout: options?.timeout > 0 ? options.timeout : undefined,
    stopped: Boolean(signal?.aborted),
  };
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await later(seat, "runProgram", settings);
  } catch {
    return { stdout: "", stderr: "", code: 1, killed: false };
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}
