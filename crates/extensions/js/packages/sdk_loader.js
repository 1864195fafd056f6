// Resources of a session of the SDK: its extensions, skills, prompt templates and context files.

import { ops } from "pinion:ops";
import { extensions as loaded, newExtension } from "pinion:api/registry";
import { SettingsManager } from "pinion:packages/coding_settings";
import { loadProjectContextFiles, loadSkills } from "pinion:packages/coding_skills";
import { createEventBus } from "pinion:packages/coding_messages";
import { lazy } from "pinion:runtime/lazy";

/** Creates the state that extensions of one session share. */
export function createExtensionRuntime() {
  return { flagValues: new Map(), pendingProviderRegistrations: [], pendingNativeProviderRegistrations: [], assertActive() {}, invalidate() {} };
}

/** Reports whether the session's project is trusted. */
export function isProjectTrusted() {
  const { makeContext, newScope } = lazy("api/context");
  return makeContext(newScope({ path: "<sdk>" }, 0)).isProjectTrusted?.() ?? false;
}

const inline = (factory, at) => (typeof factory === "function" ? { name: `<inline:${at + 1}>`, factory } : factory);
const pathOf = (name) => (name.startsWith("<") ? name : `<inline:${name}>`);

/**
 * Loads what a session of the SDK starts with. The extensions of the program itself are listed without being loaded
 * again: their tools are available and their guards apply. Factories and further files get an instance of their own.
 */
export class DefaultResourceLoader {
  #options; #settings; #bus; #result = { extensions: [], errors: [], runtime: createExtensionRuntime() };
  #skills = { skills: [], diagnostics: [] }; #prompts = { prompts: [], diagnostics: [] }; #files = []; #prompt; #append = [];
  loaded = false;

  constructor(options = {}) {
    const { cwd = ops.tools.workingDirectory(), agentDir = ops.tools.agentDirectory() } = options;
    this.#options = { ...options, cwd, agentDir };
    this.#settings = options.settingsManager ?? SettingsManager.create(cwd, agentDir);
    this.#bus = options.eventBus ?? createEventBus();
    this.#prompt = options.systemPrompt;
  }

  getExtensions() { return this.#result; }
  getSkills() { return this.#skills; }
  getPrompts() { return this.#prompts; }
  getThemes() { return { themes: [], diagnostics: [] }; }
  getAgentsFiles() { return { agentsFiles: this.#files }; }
  getSystemPrompt() { return this.#prompt; }
  getSystemPromptSource() { return undefined; }
  getAppendSystemPrompt() { return this.#append; }
  getAppendSystemPromptSources() { return []; }
  getPathMetadata() { return new Map(); }
  extendResources({ skillPaths = [] }) {
    const more = loadSkills({ ...this.#options, skillPaths: skillPaths.map(({ path }) => path), includeDefaults: false });
    this.#skills = { skills: [...this.#skills.skills, ...more.skills], diagnostics: [...this.#skills.diagnostics, ...more.diagnostics] };
  }

  async #extensions() {
    const { noExtensions, additionalExtensionPaths = [], extensionFactories = [], cwd } = this.#options;
    const extensions = noExtensions ? [] : [...loaded];
    const errors = [];
    const runtime = createExtensionRuntime();
    const take = async (path, find) => {
      const extension = Object.assign(newExtension(path, { path, source: "sdk", scope: "temporary", origin: "top-level" }), { resolvedPath: path, isChild: true });
      try {
        const factory = await find();
        if (typeof factory !== "function") throw new Error("it does not export a factory function");
        extension.factory = factory;
        extensions.push(extension);
      } catch (error) {
        errors.push({ path, error: `Failed to load extension: ${error.message}` });
      }
    };
    for (const given of additionalExtensionPaths) {
      const path = ops.tools.resolve(given, cwd);
      if (extensions.some((extension) => extension.path === path)) continue;
      await take(path, async () => { const module = await import(path); return module.default?.default ?? module.default; });
    }
    for (const [at, given] of extensionFactories.entries()) {
      const { name, factory } = inline(given, at);
      await take(pathOf(name), () => factory);
    }
    const result = { extensions, errors, runtime };
    const chosen = this.#options.extensionsOverride?.(result) ?? result;
    for (const extension of chosen.extensions.filter(({ isChild }) => isChild)) await startFactory(extension, this.#bus, chosen.errors);
    return chosen;
  }

  async reload() {
    const { noSkills, noContextFiles, additionalSkillPaths = [], appendSystemPrompt, systemPrompt } = this.#options;
    await this.#settings.reload();
    this.#result = await this.#extensions();
    const skills = noSkills && additionalSkillPaths.length === 0 ? { skills: [], diagnostics: [] }
      : loadSkills({ ...this.#options, skillPaths: additionalSkillPaths, includeDefaults: !noSkills });
    // An untrusted project must not speak to the model.
    if (!isProjectTrusted()) skills.skills = skills.skills.filter(({ sourceInfo }) => sourceInfo.scope !== "project");
    this.#skills = this.#options.skillsOverride?.(skills) ?? skills;
    const prompts = { prompts: [], diagnostics: [] };
    this.#prompts = this.#options.promptsOverride?.(prompts) ?? prompts;
    const files = { agentsFiles: noContextFiles ? [] : loadProjectContextFiles(this.#options) };
    this.#files = (this.#options.agentsFilesOverride?.(files) ?? files).agentsFiles;
    this.#prompt = this.#options.systemPromptOverride ? this.#options.systemPromptOverride(systemPrompt) : systemPrompt;
    const append = [appendSystemPrompt ?? []].flat();
    this.#append = this.#options.appendSystemPromptOverride?.(append) ?? append;
    this.loaded = true;
  }
}

/** Runs the factory of an extension with a `pi` that records its registrations; the session connects it later. */
async function startFactory(extension, bus, errors) {
  const pi = childPi(extension, bus);
  try {
    await extension.factory(pi);
  } catch (error) {
    errors.push({ path: extension.path, error: `Failed to load extension: ${error.message}` });
  }
}

/** Creates the `pi` of an extension of a session of the SDK. */
function childPi(extension, events) {
  const session = () => {
    if (!extension.session) throw new Error("Extension runtime not initialized. Action methods cannot be called during extension loading.");
    return extension.session;
  };
  const pi = {
    on(event, handler) {
      const handlers = extension.handlers.get(event) ?? [];
      extension.handlers.set(event, [...handlers, handler]);
      return () => extension.handlers.set(event, extension.handlers.get(event).filter((known) => known !== handler));
    },
    registerTool(tool) {
      extension.tools.set(tool.name, tool);
      extension.session?._addTool(tool);
    },
    registerCommand: (name, command) => void extension.commands.set(name, { ...command, name }),
    registerShortcut: (key, shortcut) => void extension.shortcuts.set(key, shortcut),
    registerFlag: (name, flag) => void extension.flags.set(name, flag),
    getFlag: (name) => extension.flags.get(name)?.default,
    registerMessageRenderer: (type, renderer) => void extension.messageRenderers.set(type, renderer),
    sendMessage: (message, options) => void session().sendCustomMessage(message, options),
    sendUserMessage: (content, options) => void session().sendUserMessage(content, options),
    appendEntry: (customType, data) => void session().sessionManager.appendCustomEntry(customType, data),
    setSessionName: (name) => session().setSessionName(name),
    getSessionName: () => session().sessionName,
    setLabel: (id, label) => void session().sessionManager.appendLabelChange(id, label),
    exec: (command, words, options) => session()._exec(command, words, options),
    getActiveTools: () => session().getActiveToolNames(),
    getAllTools: () => session().getAllTools(),
    setActiveTools: (names) => session().setActiveToolsByName(names),
    getCommands: () => [],
    setModel: async (model) => { await session().setModel(model); return true; },
    getThinkingLevel: () => session().thinkingLevel,
    setThinkingLevel: (level) => session().setThinkingLevel(level),
    getSettings: () => session().settingsManager.getGlobalSettings(),
    events,
  };
  return new Proxy(pi, { get: (known, name) => known[name] ?? (/^(un)?register[A-Z]/.test(String(name)) ? () => undefined : undefined) });
}

/** Packages named in the settings. Installing and removing them is the program's own work. */
export class DefaultPackageManager {
  #settings; #agentDir; #cwd;
  constructor({ cwd, agentDir, settingsManager }) { this.#cwd = cwd; this.#agentDir = agentDir; this.#settings = settingsManager; }
  setProgressCallback() {}
  listConfiguredPackages() {
    const of = (settings, scope) => (settings.packages ?? []).map((entry) => {
      const source = typeof entry === "string" ? entry : entry.source;
      return { source, scope, filtered: typeof entry !== "string", installedPath: this.getInstalledPath(source, scope) };
    });
    return [...of(this.#settings.getGlobalSettings(), "user"), ...of(this.#settings.getProjectSettings(), "project")];
  }
  getInstalledPath(source, scope) {
    const base = scope === "project" ? `${this.#cwd}/.pi` : this.#agentDir;
    const npm = /^npm:(@?[^@]+)/.exec(source);
    const path = npm ? `${base}/npm/node_modules/${npm[1]}` : ops.tools.resolve(source, base);
    return ops.tools.readText(`${path}/package.json`) === undefined ? undefined : path;
  }
  async checkForAvailableUpdates() { return []; }
  async resolve() { return { extensions: [], skills: [], prompts: [], themes: [] }; }
  async resolveExtensionSources() { return this.resolve(); }
  #refuse(what) { throw new Error(`${what} of DefaultPackageManager is not available in this host: run the program with ${what}`); }
  async install() { this.#refuse("install"); }
  async installAndPersist() { this.#refuse("install"); }
  async remove() { this.#refuse("remove"); }
  async removeAndPersist() { this.#refuse("remove"); }
  async update() { this.#refuse("update"); }
}
