// What the extensions of this instance have registered.

import { home, isBound, now } from "pinion:api/bridge";

/** Every extension that was loaded, in load order. */
export const extensions = [];

/** A place for what one extension registers. */
export function newExtension(path, sourceInfo) {
  return {
    path,
    sourceInfo,
    handlers: new Map(),
    tools: new Map(),
    commands: new Map(),
    flags: new Map(),
    shortcuts: new Map(),
    messageRenderers: new Map(),
    entryRenderers: new Map(),
    providers: [],
    pauses: 0,
    pausedUntil: 0,
  };
}

/** Appends a handler. */
export function addHandler(extension, event, handler) {
  const handlers = extension.handlers.get(event);
  if (handlers) {
    handlers.push(handler);
  } else {
    extension.handlers.set(event, [handler]);
  }
  if (isBound()) now(home, "listens", event);
}

/** Whether anyone listens to `event`. */
export function hasHandlers(event) {
  return extensions.some((extension) => extension.handlers.has(event));
}

/** The tool of this name; of two extensions the first wins. */
export function findTool(name) {
  for (const extension of extensions) {
    const tool = extension.tools.get(name);
    if (tool) return { extension, tool };
  }
  return undefined;
}

/** Every command under the name it is called by: names that clash get numbers. */
export function namedCommands() {
  const counts = new Map();
  for (const extension of extensions) {
    for (const name of extension.commands.keys()) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const used = new Map();
  const taken = new Set();
  const named = [];
  for (const extension of extensions) {
    for (const [name, command] of extension.commands) {
      const number = (used.get(name) ?? 0) + 1;
      used.set(name, number);
      const called = freeName(counts.get(name) > 1 ? `${name}:${number}` : name, name, number, taken);
      taken.add(called);
      named.push({ called, extension, command });
    }
  }
  return named;
}

// A command may carry the very name that the number would make.
function freeName(wanted, name, number, taken) {
  let called = wanted;
  for (let next = number; taken.has(called); next += 1) called = `${name}:${next}`;
  return called;
}

/** The commands as the program lists them. */
export function commandList() {
  return namedCommands().map(({ called, extension, command }) => ({
    name: called,
    ...(command.description === undefined ? {} : { description: String(command.description) }),
    source: "extension",
    path: extension.path,
    sourceInfo: extension.sourceInfo,
  }));
}

/** A tool as the program knows it. */
export function toolCard(extension, tool) {
  return {
    name: String(tool.name),
    label: tool.label === undefined ? undefined : String(tool.label),
    description: tool.description === undefined ? "" : String(tool.description),
    parameters: tool.parameters ?? { type: "object", properties: {} },
    snippet: typeof tool.promptSnippet === "string" ? tool.promptSnippet : undefined,
    guidelines: Array.isArray(tool.promptGuidelines) ? tool.promptGuidelines.map(String) : [],
    sequential: tool.executionMode === "sequential",
    prepares: typeof tool.prepareArguments === "function",
    typebox: Boolean(tool.parameters?.["~kind"]),
    sourceInfo: extension.sourceInfo,
  };
}

/** What an extension registered, for people and for the program. */
export function extensionCard(extension) {
  return {
    path: extension.path,
    events: [...extension.handlers.keys()],
    tools: [...extension.tools.values()].map((tool) => toolCard(extension, tool)),
    commands: [...extension.commands.keys()],
    flags: [...extension.flags].map(([name, flag]) => ({
      name,
      type: flag.type,
      description: flag.description,
      default: flag.default,
    })),
    shortcuts: [...extension.shortcuts.keys()],
    messageRenderers: [...extension.messageRenderers.keys()],
    entryRenderers: [...extension.entryRenderers.keys()],
    providers: extension.providers.map((provider) => provider.name),
  };
}
