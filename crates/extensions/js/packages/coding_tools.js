// The built-in tools as extensions create them: the program's own, unless an extension passes its own operations.

import { ops } from "pinion:ops";
import { bashWith } from "pinion:packages/coding_bash";
import { editWith, findWith, grepWith, listWith, readWith, writeWith } from "pinion:packages/coding_operations";

const CARDS = {
  read: { snippet: "Show what is in a file", guidelines: ["Look at files with read instead of cat or sed."] },
  bash: { snippet: "Run a command in a shell" },
  edit: { snippet: "Replace text in a file", guidelines: ["Make oldText as short as it can be and still occur only once."] },
  write: { snippet: "Create or overwrite a file", guidelines: ["Use write only for new files and complete rewrites."] },
  grep: { snippet: "Search the contents of files" },
  find: { snippet: "Find files by name" },
  ls: { snippet: "List what is in a directory" },
};

/** Runs one of the program's tools; progress is passed to `onUpdate`. */
export async function runNative(name, cwd, settings, toolCallId, params, signal, onUpdate) {
  const id = ops.tools.start(JSON.stringify({ name, cwd, settings, callId: toolCallId, arguments: params }));
  const cancel = () => ops.tools.cancel(id);
  if (signal?.aborted) cancel();
  signal?.addEventListener("abort", cancel);
  try {
    for (;;) {
      const { update, result, error } = JSON.parse(await ops.tools.next(id));
      if (error !== undefined) throw new Error(error);
      if (result !== undefined) return withDetails(result);
      onUpdate?.(withDetails(update));
    }
  } finally {
    signal?.removeEventListener("abort", cancel);
    ops.tools.finish(id);
  }
}

const withDetails = (output) => ({ content: output.content, details: output.details });

const WITH_OPERATIONS = { read: readWith, bash: bashWith, edit: editWith, write: writeWith, grep: grepWith, find: findWith, ls: listWith };

function settingsOf(name, options) {
  if (name === "read") return { autoResizeImages: options.autoResizeImages };
  if (name !== "bash") return {};
  return { shellPath: options.shellPath, commandPrefix: options.commandPrefix };
}

function definition(name, cwd, options = {}) {
  const { description, parameters } = JSON.parse(ops.tools.spec(name));
  const settings = settingsOf(name, options);
  const native = (toolCallId, params, signal, onUpdate, where = cwd, more = {}) =>
    runNative(name, where, { ...settings, ...more }, toolCallId, params, signal, onUpdate);
  const execute = options.operations || options.spawnHook
    ? WITH_OPERATIONS[name](cwd, options, native)
    : (toolCallId, params, signal, onUpdate) => native(toolCallId, params, signal, onUpdate);
  const { snippet, guidelines } = CARDS[name];
  const made = { name, label: name, description, promptSnippet: snippet };
  if (guidelines) made.promptGuidelines = guidelines;
  made.parameters = name === "edit" ? listOfEdits(parameters) : parameters;
  if (name === "edit") made.prepareArguments = prepareEdit;
  return { ...made, execute };
}

/** The schema of `edit` with a list of replacements, as later releases publish it. */
function listOfEdits({ properties: { path, oldText, newText } }) {
  const edit = { type: "object", required: ["oldText", "newText"], properties: { oldText, newText } };
  const edits = { type: "array", description: "Replacements, each found in the file as it was before", items: edit };
  return { type: "object", required: ["path", "edits"], properties: { path, edits } };
}

/** Normalises edits: a list may also arrive as text, or as a single replacement. */
function prepareEdit(given) {
  if (given === null || typeof given !== "object") return given;
  const { oldText, newText, ...rest } = given;
  if (typeof rest.edits === "string") {
    try { rest.edits = JSON.parse(rest.edits); } catch { return given; }
  }
  if (typeof oldText !== "string" || typeof newText !== "string") return { ...given, ...rest };
  return { ...rest, edits: [...(rest.edits ?? []), { oldText, newText }] };
}

function tool(name, cwd, options) {
  const { label, description, parameters, prepareArguments, execute } = definition(name, cwd, options);
  return { name, label, description, parameters, prepareArguments, executionMode: undefined, execute };
}

export const createReadToolDefinition = (cwd, options) => definition("read", cwd, options);
export const createBashToolDefinition = (cwd, options) => definition("bash", cwd, options);
export const createEditToolDefinition = (cwd, options) => definition("edit", cwd, options);
export const createWriteToolDefinition = (cwd, options) => definition("write", cwd, options);
export const createGrepToolDefinition = (cwd, options) => definition("grep", cwd, options);
export const createFindToolDefinition = (cwd, options) => definition("find", cwd, options);
export const createLsToolDefinition = (cwd, options) => definition("ls", cwd, options);

export const createReadTool = (cwd, options) => tool("read", cwd, options);
export const createBashTool = (cwd, options) => tool("bash", cwd, options);
export const createEditTool = (cwd, options) => tool("edit", cwd, options);
export const createWriteTool = (cwd, options) => tool("write", cwd, options);
export const createGrepTool = (cwd, options) => tool("grep", cwd, options);
export const createFindTool = (cwd, options) => tool("find", cwd, options);
export const createLsTool = (cwd, options) => tool("ls", cwd, options);

const several = (names) => (cwd, options = {}) => names.map((name) => tool(name, cwd, options[name]));
export const createCodingTools = several(["read", "bash", "edit", "write"]);
export const createReadOnlyTools = several(["read", "grep", "find", "ls"]);
export const createAllTools = (cwd, options = {}) => Object.fromEntries(Object.keys(CARDS).map((name) => [name, tool(name, cwd, options[name])]));

/** Ready-made tools of older releases: they work in the directory in which the program was started. */
const lazily = (name) => {
  let made;
  const get = () => (made ??= tool(name, ops.tools.workingDirectory()));
  return new Proxy({}, { get: (_, key) => get()[key], has: (_, key) => key in get(), ownKeys: () => Reflect.ownKeys(get()), getOwnPropertyDescriptor: (_, key) => Reflect.getOwnPropertyDescriptor(get(), key) });
};
export const readTool = lazily("read");
export const bashTool = lazily("bash");
export const editTool = lazily("edit");
export const writeTool = lazily("write");
export const grepTool = lazily("grep");
export const findTool = lazily("find");
export const lsTool = lazily("ls");
export const codingTools = [readTool, bashTool, editTool, writeTool];
export const readOnlyTools = [readTool, grepTool, findTool, lsTool];

/** Runs `work` while no other tool, including the program's own, changes the file at `path`. */
export async function withFileMutationQueue(path, work) {
  const id = await ops.tools.lock(path);
  try { return await work(); } finally { ops.tools.unlock(id); }
}

export const defineTool = (tool_) => tool_;
