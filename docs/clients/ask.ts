// Sends one prompt and prints the answer as it arrives: node ask.ts MESSAGE [PINION-ARGUMENT...]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

type Dialog = { id: string; method: string; title: string; message?: string; options?: string[] };

const pinion = spawn("pinion", ["--mode", "rpc", ...process.argv.slice(3)], { stdio: ["pipe", "pipe", "inherit"] });
const ended = once(pinion, "close");
const user = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const send = (command: object) => pinion.stdin.write(`${JSON.stringify(command)}\n`);
pinion.stdin.on("error", () => {}); // pinion has exited; the loop below ends

/** Splits at LF only. (node:readline also splits at U+2028, which a JSON text may contain.) */
async function* lines(stream: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of stream) {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
}

/** Returns the reply to a dialog, with its id; an empty line cancels the dialog. */
async function askUser({ id, method, title, message, options }: Dialog): Promise<object> {
  console.error([title, message ?? "", ...(options ?? [])].join("\n"));
  const value = String((await user.next()).value ?? "").trim();
  if (!value) return { type: "extension_ui_response", id, cancelled: true };
  return { type: "extension_ui_response", id, ...(method === "confirm" ? { confirmed: value === "y" } : { value }) };
}

async function main(prompt: string): Promise<string | undefined> {
  setTimeout(send, 1000 * Number(process.env.TIMEOUT ?? 600), { type: "abort" }).unref();
  send({ id: "prompt", type: "prompt", message: prompt });
  let failure: string | undefined;
  let retrying = false;
  for await (const line of lines(pinion.stdout.setEncoding("utf8"))) {
    const { type, id, command, data, message, assistantMessageEvent: update, ...event } = JSON.parse(line);
    if (update?.type === "text_delta") process.stdout.write(update.delta);
    else if (type === "tool_execution_start") console.error(`[${event.toolName} ${JSON.stringify(event.args)}]`);
    else if (/^(select|confirm|input|editor)$/.test(event.method)) send(await askUser({ id, message, ...event }));
    else if (type === "message_end" && message.role === "assistant") failure = message.errorMessage;
    else if (/^auto_retry_/.test(type)) retrying = type === "auto_retry_start";
    else if (event.success === false) return event.error;
    else if (command === "get_state" && !(retrying || data.isStreaming || data.isCompacting)) return failure;
    if (/^(agent|auto_retry|auto_compaction)_end$/.test(type) || id === "prompt")
      send({ type: "get_state" }); // has the prompt settled?
  }
  return `pinion ended before it was done (${(await ended).join(" ")})`;
}

const failure = await main(process.argv[2]).catch(String);
pinion.stdin.end(); // pinion exits when its input is closed
process.stdin.destroy(); // lets Node exit
if (failure) console.error(failure);
process.exitCode = failure ? 1 : 0;
