// The bash tool with an extension's way to run commands, and pinion's own way for extensions to use.

import { ops } from "pinion:ops";
import { DEFAULT_MAX_BYTES, formatSize, size, truncateTail } from "pinion:packages/coding_text";

/** The output of a command: its end in memory, all of it in a file if it is long. */
class Output {
  #decoder = new TextDecoder();
  #tail = "";
  #all = "";
  #dropped = { lines: 0, bytes: 0 };
  file;

  push(data) { this.#take(this.#decoder.decode(data, { stream: true })); }
  finish() { this.#take(this.#decoder.decode()); }

  #take(text) {
    this.#tail += text;
    if (this.file === undefined) {
      this.#all += text;
      if (!truncateTail(this.#all).truncated) return;
      this.file = ops.tools.temporaryFile("pi-bash", ".log");
      ops.tools.appendText(this.file, this.#all);
      this.#all = "";
    } else {
      ops.tools.appendText(this.file, text);
    }
    const limit = 4 * DEFAULT_MAX_BYTES;
    if (this.#tail.length <= limit) return;
    const cut = this.#tail.indexOf("\n", this.#tail.length - 2 * DEFAULT_MAX_BYTES) + 1;
    if (cut === 0) return;
    const gone = this.#tail.slice(0, cut);
    this.#dropped.lines += gone.split("\n").length - 1;
    this.#dropped.bytes += size(gone);
    this.#tail = this.#tail.slice(cut);
  }

  /** Returns the end in the form for a model, with the totals of everything. */
  shown() {
    const tail = truncateTail(this.#tail);
    const truncation = { ...tail, truncated: tail.truncated || this.file !== undefined, totalLines: tail.totalLines + this.#dropped.lines, totalBytes: tail.totalBytes + this.#dropped.bytes };
    const details = truncation.truncated ? { truncation, fullOutputPath: this.file } : undefined;
    return { truncation, details, lastLine: this.#tail.slice(this.#tail.lastIndexOf("\n") + 1) };
  }
}

function notice({ truncation, details, lastLine }) {
  if (!details) return "";
  const { totalLines, outputLines, outputBytes, lastLinePartial, truncatedBy } = truncation;
  const first = totalLines - outputLines + 1;
  const shown = lastLinePartial
    ? `last ${formatSize(outputBytes)} of line ${totalLines} (line is ${formatSize(size(lastLine))})`
    : `lines ${first}-${totalLines} of ${totalLines}${truncatedBy === "bytes" ? ` (${formatSize(DEFAULT_MAX_BYTES)} limit)` : ""}`;
  return `\n\n[Showing ${shown}. Full output: ${details.fullOutputPath}]`;
}

const UPDATE_INTERVAL = 100;
/** Converts bytes to a Buffer if `Buffer` exists. */
export function bufferOf(bytes) {
  try { return globalThis.Buffer.from(bytes); } catch { return Uint8Array.from(bytes); }
}

const textOf = (error) => (error instanceof Error ? error.message : String(error));

/** Runs a command through `operations.exec`; its end, or an error, becomes the output of the built-in tool. */
async function through(operations, { command, cwd, env }, { timeout }, signal, onUpdate) {
  const output = new Output();
  let last = 0;
  const onData = (data) => {
    output.push(data);
    if (!onUpdate || Date.now() - last < UPDATE_INTERVAL) return;
    last = Date.now();
    const { truncation, details } = output.shown();
    onUpdate({ content: [{ type: "text", text: truncation.content }], details });
  };
  let exitCode;
  let failure;
  try {
    ({ exitCode } = await operations.exec(command, cwd, { onData, signal, timeout, env }));
  } catch (error) {
    failure = textOf(error);
  }
  output.finish();
  const shown = output.shown();
  const ended = (words) => new Error([shown.truncation.content + notice(shown), words].filter((part) => part !== "").join("\n\n"));
  if (failure === "aborted" || (failure !== undefined && signal?.aborted)) throw ended("Command aborted");
  if (failure?.startsWith("timeout:")) throw ended(`Command timed out after ${failure.slice("timeout:".length)} seconds`);
  if (failure !== undefined) throw new Error(failure);
  const text = (shown.truncation.content || "(no output)") + notice(shown);
  if (exitCode !== 0 && exitCode !== null && exitCode !== undefined) throw new Error(`${text}\n\nCommand exited with code ${exitCode}`);
  return { content: [{ type: "text", text }], details: shown.details };
}

/** Creates the bash tool for an extension that changes how commands run. */
export function bashWith(cwd, options, native) {
  const { operations, spawnHook, commandPrefix } = options;
  return async (toolCallId, params, signal, onUpdate) => {
    const own = JSON.parse(ops.tools.environment());
    const command = commandPrefix ? `${commandPrefix}\n${params.command}` : params.command;
    const base = { command, cwd, env: { ...own } };
    const spawned = spawnHook ? await spawnHook(base) : base;
    if (operations) return through(operations, spawned, params, signal, onUpdate);
    const env = Object.entries(spawned.env ?? own).filter(([name, value]) => value !== undefined && own[name] !== String(value)).map(([name, value]) => [name, String(value)]);
    const removed = Object.keys(own).filter((name) => spawned.env !== undefined && spawned.env[name] === undefined);
    const unset = removed.length > 0 ? `unset ${removed.join(" ")}\n` : "";
    return native(toolCallId, { ...params, command: unset + spawned.command }, signal, onUpdate, spawned.cwd, { env, commandPrefix: undefined });
  };
}

/** Creates the built-in operations for commands. */
export function createLocalBashOperations(options = {}) {
  return {
    async exec(command, cwd, { onData, signal, timeout, env } = {}) {
      if (signal?.aborted) throw new Error("aborted");
      const own = JSON.parse(ops.tools.environment());
      const changed = Object.entries(env ?? {}).filter(([name, value]) => value !== undefined && own[name] !== String(value)).map(([name, value]) => [name, String(value)]);
      const id = ops.tools.shell(JSON.stringify({ command, cwd, timeout, settings: { shellPath: options.shellPath, env: changed } }));
      const cancel = () => ops.tools.cancel(id);
      signal?.addEventListener("abort", cancel);
      try {
        for (;;) {
          const piece = await ops.tools.output(id);
          if (typeof piece !== "string") { onData?.(bufferOf(piece)); continue; }
          const { exitCode, ended, error } = JSON.parse(piece);
          if (error !== undefined) throw new Error(error);
          if (ended === "aborted") throw new Error("aborted");
          if (ended === "timeout") throw new Error(`timeout:${timeout}`);
          return { exitCode };
        }
      } finally {
        signal?.removeEventListener("abort", cancel);
        ops.tools.finish(id);
      }
    },
  };
}

export function getShellConfig(customShellPath) {
  return { shell: ops.tools.shellPath(customShellPath ?? ""), args: ["-c"] };
}

/** Copies text to the clipboard of the desktop, if there is one. */
export async function copyToClipboard(text) {
  const command = 'printf %s "$PINION_CLIPBOARD" | { pbcopy || wl-copy || xclip -selection clipboard || xsel --clipboard --input || clip.exe; } 2>/dev/null';
  const { exitCode } = await createLocalBashOperations().exec(command, ops.tools.workingDirectory(), { env: { PINION_CLIPBOARD: text }, timeout: 5 });
  if (exitCode !== 0) throw new Error("Failed to copy to clipboard: no clipboard program was found");
}
