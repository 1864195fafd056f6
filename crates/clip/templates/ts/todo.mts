// todo.mts: stores a list of tasks.  clip.json: {"main": "todo.mts"}; runs on bun, and on node 22.18 or later
import { createInterface } from "node:readline";

type Call = { type: string; id: string; command: string; input: { text: string } };
const tasks: string[] = [];
const commands: Record<string, (input: Call["input"]) => unknown> = {
  add: (input) => tasks.push(input.text),
  list: () => tasks,
};
const say = (message: object) => console.log(JSON.stringify(message));

const input = { text: { type: "string", required: true } };
say({ type: "register", manifest: { commands: [{ name: "add", description: "Add a task", input }, { name: "list" }] } });
for await (const line of createInterface({ input: process.stdin })) {
  const call: Call = JSON.parse(line);
  if (call.type !== "invoke") continue;
  const command = commands[call.command];
  if (command) say({ type: "result", id: call.id, output: command(call.input) });
  else say({ type: "error", id: call.id, error: `unknown command: ${call.command}` });
}
