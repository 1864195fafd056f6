// Loads extensions, one after another.

import { ops } from "pinion:ops";
import { bind, home, now } from "pinion:api/bridge";
import { openBus } from "pinion:api/bus";
import { describe } from "pinion:api/errors";
import { setFlagValues } from "pinion:api/flags";
import { noteUnconnected } from "pinion:api/mcp_servers";
import { printNotices } from "pinion:api/notices";
import { setPatience, within } from "pinion:api/patience";
import { makePi } from "pinion:api/pi";
import { describeProgram } from "pinion:api/program";
import { flushProviders } from "pinion:api/providers";
import { commandList, extensionCard, extensions, newExtension } from "pinion:api/registry";

// Milliseconds that a module or a factory may take, because nothing else can begin before every factory has finished.
const LOAD_LIMIT = 20_000;

/** Loads the extensions of this instance and returns their registrations and the problems. */
export async function load(options) {
  home.generation = options.generation;
  openBus(options.keepBus);
  describeProgram(options);
  setPatience(options.patience);
  const problems = [];
  for (const { path, sourceInfo, missing } of options.entries) {
    const started = performance.now();
    const extension = newExtension(path, sourceInfo);
    try {
      if (missing) throw new Refusal(`Extension path does not exist: ${path}`);
      await open(extension);
      extensions.push(extension);
      extension.loadTime = performance.now() - started;
      extension.modules = ops.modules.imports(path);
    } catch (error) {
      const words = error instanceof Refusal ? error.message : `Failed to load extension: ${describe(error)}`;
      problems.push({ path, error: words });
    }
  }
  problems.push(...conflicts());
  return { problems, ...summary() };
}

class Refusal extends Error {}

async function open(extension) {
  const module = await within(LOAD_LIMIT, import(extension.path), `The module did not finish loading within ${LOAD_LIMIT / 1000} seconds`);
  const factory = factoryOf(module);
  if (!factory) {
    throw new Refusal(`Extension does not export a valid factory function: ${extension.path}`);
  }
  const loading = factory(makePi(extension));
  if (typeof loading?.then !== "function") return;
  await within(LOAD_LIMIT, Promise.resolve(loading), `The factory did not finish within ${LOAD_LIMIT / 1000} seconds`);
}

// A CommonJS file that was compiled from an ES module has its default export one level down.
function factoryOf(module) {
  return [module.default, module.default?.default].find((value) => typeof value === "function");
}

/** Returns the conflicts between extensions. */
function conflicts() {
  const problems = [];
  const owners = { tools: new Map(), flags: new Map() };
  const words = { tools: (name) => `Tool "${name}"`, flags: (name) => `Flag "--${name}"` };
  for (const extension of extensions) {
    for (const kind of ["tools", "flags"]) {
      for (const name of extension[kind].keys()) {
        const owner = owners[kind].get(name);
        if (owner) {
          problems.push({ path: extension.path, error: `${words[kind](name)} conflicts with ${owner}` });
        } else {
          owners[kind].set(name, extension.path);
        }
      }
    }
  }
  return problems;
}

function summary() {
  return {
    extensions: extensions.map((extension) => ({
      ...extensionCard(extension),
      loadTime: extension.loadTime,
      modules: extension.modules,
    })),
    commands: commandList(),
  };
}

/** Applies the flags of the command line and registers providers, when the session exists. */
export function start({ flags }) {
  setFlagValues(flags);
  const problems = flushProviders();
  noteUnconnected();
  printNotices();
  bind();
  // Registrations made after the summary of loading are reported too.
  for (const extension of extensions) {
    for (const event of extension.handlers.keys()) now(home, "listens", event);
  }
  now(home, "setCommands", commandList());
  return { problems };
}
