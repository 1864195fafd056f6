// The registrations of this instance's extensions.

import { home, isBound, now } from "pinion:api/bridge";

/** Every extension that was loaded, in load order. */
export const extensions = [];

/** Creates the record of one extension's registrations. */
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

/** Reports whether a handler of `event` exists. */
export function hasHandlers(event) {
  return extensions.some((extension) => extension.handlers.has(event));
}

/** Returns the tool of this name; the first extension that registered it wins. */
export function findTool(name) {
  for (const extension of extensions) {
    const tool = extension.tools.get(name);
    if (tool) return { extension, tool };
  }
  return undefined;
}

/** Returns every command with the name it is called by: conflicting names get numbers. */
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

// Another command may already have the numbered name.
function freeName(wanted, name, number, taken) {
  let called = wanted;
  for (let next = number; taken.has(called); next += 1) called = `${name}:${next}`;
  return called;
}

/** Returns the commands in the form that the program lists. */
export function commandList() {
  return namedCommands().map(({ called, extension, command }) => ({
    name: called,
    ...(command.description === undefined ? {} : { description: String(command.description) }),
    source: "extension",
    path: extension.path,
    sourceInfo: extension.sourceInfo,
  }));
}

/** Describes a tool for the program. */
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

/** Returns the registrations of an extension, for people and for the program. */
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
