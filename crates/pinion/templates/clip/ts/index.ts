// index.ts: keeps a list of things to do.  clip.json: {"runtime": "bun", "main": "index.ts"}
import { createInterface } from "node:readline";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const file = `${process.env.PINIX_DATA_DIR}/todo.json`;
const items: string[] = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
const say = (message: object) => process.stdout.write(JSON.stringify(message) + "\n");
const commands: Record<string, (input: { title: string }) => unknown> = {
  add: ({ title }) => (items.push(title), writeFileSync(file, JSON.stringify(items)), items.length),
  list: () => items,
};

say({ type: "register", manifest: { commands: [
  { name: "add", description: "Remember something", input: { title: { type: "string", required: true } } },
  { name: "list", description: "What there is to do" } ] } });
for await (const line of createInterface({ input: process.stdin })) {
  const { type, id, command, input } = JSON.parse(line);
  if (type !== "invoke") continue;
  if (command in commands) say({ type: "result", id, output: commands[command](input) });
  else say({ type: "error", id, error: `unknown command: ${command}` });
}
