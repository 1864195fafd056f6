// Settings and credentials as extensions see them. Changes are written to the same files.

import { displayName } from "pinion:packages/provider_names";
import { ops } from "pinion:ops";

function parsed(text) {
  try { const value = JSON.parse(text ?? "{}"); return value !== null && typeof value === "object" ? value : {}; } catch { return {}; }
}
const copyOf = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
const isPlain = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
function merged(below, above) {
  const result = { ...below };
  for (const [name, value] of Object.entries(above)) {
    if (value !== undefined) result[name] = isPlain(value) && isPlain(result[name]) ? { ...result[name], ...value } : value;
  }
  return result;
}

/** Name of the getter or setter, path in the settings, default value. */
const PLAIN = [
  ["LastChangelogVersion", "lastChangelogVersion"], ["DefaultProvider", "defaultProvider"], ["DefaultModel", "defaultModel"],
  ["SteeringMode", "steeringMode", "one-at-a-time"], ["FollowUpMode", "followUpMode", "one-at-a-time"], ["Theme", "theme"],
  ["DefaultThinkingLevel", "defaultThinkingLevel"], ["Transport", "transport", "auto"], ["CompactionEnabled", "compaction.enabled", true],
  ["CompactionReserveTokens", "compaction.reserveTokens", 16384], ["CompactionKeepRecentTokens", "compaction.keepRecentTokens", 20000],
  ["BranchSummarySkipPrompt", "branchSummary.skipPrompt", false], ["RetryEnabled", "retry.enabled", true], ["HideThinkingBlock", "hideThinkingBlock", false],
  ["ShellPath", "shellPath"], ["QuietStartup", "quietStartup", false], ["ShellCommandPrefix", "shellCommandPrefix"], ["NpmCommand", "npmCommand"],
  ["CollapseChangelog", "collapseChangelog", false], ["EnableInstallTelemetry", "enableInstallTelemetry", true], ["SessionDir", "sessionDir"],
  ["Packages", "packages", []], ["ExtensionPaths", "extensions", []], ["SkillPaths", "skills", []], ["PromptTemplatePaths", "prompts", []],
  ["ThemePaths", "themes", []], ["EnableSkillCommands", "enableSkillCommands", true], ["ThinkingBudgets", "thinkingBudgets"],
  ["ShowImages", "terminal.showImages", true], ["ImageWidthCells", "terminal.imageWidthCells", 60], ["ClearOnShrink", "terminal.clearOnShrink", false],
  ["ShowTerminalProgress", "terminal.showTerminalProgress", false], ["ImageAutoResize", "images.autoResize", true], ["BlockImages", "images.blockImages", false],
  ["EnabledModels", "enabledModels"], ["DoubleEscapeAction", "doubleEscapeAction", "tree"], ["TreeFilterMode", "treeFilterMode", "default"],
  ["ShowHardwareCursor", "showHardwareCursor", false], ["EditorPaddingX", "editorPaddingX", 0], ["AutocompleteMaxVisible", "autocompleteMaxVisible", 5],
  ["CodeBlockIndent", "markdown.codeBlockIndent", "  "], ["Warnings", "warnings", {}],
];

export class SettingsManager {
  #storage; #global; #project; #overrides = {}; #errors = [];

  constructor(storage) { this.#storage = storage; this.#read(); }
  static create(cwd = ops.tools.workingDirectory(), agentDir = ops.tools.agentDirectory()) {
    const paths = { global: `${agentDir}/settings.json`, project: `${cwd}/.pi/settings.json` };
    return new SettingsManager({
      withLock(scope, change) {
        const next = change(ops.tools.readText(paths[scope]));
        if (next !== undefined) ops.tools.writeText(paths[scope], next);
      },
    });
  }
  static fromStorage(storage) { return new SettingsManager(storage); }
  static inMemory(settings = {}) {
    const texts = { global: JSON.stringify(settings) };
    return new SettingsManager({ withLock(scope, change) { const next = change(texts[scope]); if (next !== undefined) texts[scope] = next; } });
  }

  #read() {
    const load = (scope) => {
      let text;
      this.#storage.withLock(scope, (current) => { text = current; return undefined; });
      return parsed(text);
    };
    this.#global = load("global");
    this.#project = load("project");
  }
  #store(scope, change) {
    try {
      this.#storage.withLock(scope, (current) => {
        const settings = parsed(current);
        change(settings);
        return `${JSON.stringify(settings, null, 2)}`;
      });
      this.#read();
    } catch (error) {
      this.#errors.push({ scope, error });
    }
  }
  get #all() { return merged(merged(this.#global, this.#project), this.#overrides); }
  /** Returns the setting at a path such as `retry.enabled`. */
  value(place, otherwise) { return place.split(".").reduce((at, name) => at?.[name], this.#all) ?? otherwise; }
  change(place, value, scope = "global") {
    this.#store(scope, (settings) => {
      const names = place.split(".");
      const last = names.pop();
      const at = names.reduce((inner, name) => (inner[name] = isPlain(inner[name]) ? inner[name] : {}), settings);
      if (value === undefined) delete at[last]; else at[last] = value;
    });
  }

  getGlobalSettings() { return copyOf(this.#global); }
  getProjectSettings() { return copyOf(this.#project); }
  async reload() { this.#read(); }
  async flush() {}
  applyOverrides(overrides) { this.#overrides = merged(this.#overrides, overrides); }
  drainErrors() { return this.#errors.splice(0); }
  setDefaultModelAndProvider(provider, modelId) { this.setDefaultProvider(provider); this.setDefaultModel(modelId); }
  getCompactionSettings() { return { enabled: this.getCompactionEnabled(), reserveTokens: this.getCompactionReserveTokens(), keepRecentTokens: this.getCompactionKeepRecentTokens() }; }
  getBranchSummarySettings() { return { reserveTokens: this.value("branchSummary.reserveTokens", 16384), skipPrompt: this.getBranchSummarySkipPrompt() }; }
  getRetrySettings() { return { enabled: this.getRetryEnabled(), maxRetries: this.value("retry.maxRetries", 3), baseDelayMs: this.value("retry.baseDelayMs", 2000) }; }
  getProviderRetrySettings() {
    const { timeoutMs, maxRetries, maxRetryDelayMs = 60000 } = this.value("retry.provider", {});
    return { timeoutMs, maxRetries, maxRetryDelayMs };
  }
}
for (const [name, place, otherwise] of PLAIN) {
  SettingsManager.prototype[`get${name}`] = function () { return copyOf(this.value(place, otherwise)); };
  SettingsManager.prototype[`set${name}`] = function (value) { this.change(place, value); };
  SettingsManager.prototype[`setProject${name}`] = function (value) { this.change(place, value, "project"); };
}

export class InMemoryAuthStorageBackend {
  #text;
  withLock(change) { const { result, next } = change(this.#text); if (next !== undefined) this.#text = next; return result; }
  async withLockAsync(change) { const { result, next } = await change(this.#text); if (next !== undefined) this.#text = next; return result; }
}
export class FileAuthStorageBackend {
  #path;
  constructor(path = `${ops.tools.agentDirectory()}/auth.json`) { this.#path = path; }
  #keep(next) { if (next !== undefined) ops.tools.writeSecret(this.#path, next); }
  withLock(change) { const { result, next } = change(ops.tools.readText(this.#path)); this.#keep(next); return result; }
  async withLockAsync(change) { const { result, next } = await change(ops.tools.readText(this.#path)); this.#keep(next); return result; }
}

/** Keys and logins by provider. */
export class AuthStorage {
  #backend; #runtime = new Map(); #fallback; #errors = [];
  constructor(backend) { this.#backend = backend; }
  static create(path) { return new AuthStorage(new FileAuthStorageBackend(path)); }
  static fromStorage(backend) { return new AuthStorage(backend); }
  static inMemory(data = {}) {
    const storage = new AuthStorage(new InMemoryAuthStorageBackend());
    for (const [provider, credential] of Object.entries(data)) storage.set(provider, credential);
    return storage;
  }
  #data() { return this.#backend.withLock((text) => ({ result: parsed(text) })); }
  #change(edit) { this.#backend.withLock((text) => { const data = parsed(text); edit(data); return { next: JSON.stringify(data, null, 2) }; }); }
  setRuntimeApiKey(provider, key) { this.#runtime.set(provider, key); }
  removeRuntimeApiKey(provider) { this.#runtime.delete(provider); }
  setFallbackResolver(resolver) { this.#fallback = resolver; }
  reload() {}
  get(provider) { return this.#data()[provider]; }
  set(provider, credential) { this.#change((data) => { data[provider] = credential; }); }
  remove(provider) { this.#change((data) => { delete data[provider]; }); }
  logout(provider) { this.remove(provider); }
  list() { return Object.keys(this.#data()); }
  has(provider) { return provider in this.#data(); }
  getAll() { return this.#data(); }
  drainErrors() { return this.#errors.splice(0); }
  #environment(provider) { const [name] = JSON.parse(ops.llm.environmentKeys(provider)); return name === undefined ? undefined : ops.llm.environmentKey(name); }
  hasAuth(provider) { return this.#runtime.has(provider) || this.has(provider) || this.#environment(provider) !== undefined || Boolean(this.#fallback?.(provider)); }
  getAuthStatus(provider) {
    if (this.has(provider)) return { configured: true, source: "stored" };
    if (this.#runtime.has(provider)) return { configured: false, source: "runtime", label: "--api-key" };
    const [label] = JSON.parse(ops.llm.environmentKeys(provider));
    return label === undefined ? { configured: false } : { configured: false, source: "environment", label };
  }
  async getApiKey(provider, { includeFallback = true } = {}) {
    const stored = this.get(provider);
    const key = this.#runtime.get(provider) ?? (stored?.type === "api_key" ? stored.key : stored?.access) ?? this.#environment(provider);
    return key ?? (includeFallback ? this.#fallback?.(provider) : undefined);
  }
  async login() { throw new Error("login of AuthStorage is not available in this host: log in with the program itself"); }
  getOAuthProviders() { return []; }
}

/** The registry of models; keys come from the program. */
export class ModelRegistry {
  constructor(authStorage) { this.authStorage = authStorage; }
  static create(authStorage) { return new ModelRegistry(authStorage); }
  static inMemory(authStorage) { return new ModelRegistry(authStorage); }
  refresh() {}
  getError() { return undefined; }
  getAll() { return JSON.parse(ops.llm.allModels()); }
  getAvailable() { return JSON.parse(ops.llm.availableModels()); }
  find(provider, id) { const found = ops.llm.model(provider, id); return found === undefined ? undefined : JSON.parse(found); }
  hasConfiguredAuth(model) { return ops.llm.hasCredentials(model.provider) || Boolean(this.authStorage?.hasAuth(model.provider)); }
  async getApiKeyAndHeaders(model) {
    const own = await this.authStorage?.getApiKey(model.provider);
    const granted = JSON.parse(await ops.llm.access(JSON.stringify(model)));
    return granted.ok || own === undefined ? { ...granted, ...(own === undefined ? {} : { apiKey: own }) } : { ok: true, apiKey: own, headers: model.headers };
  }
  async getApiKey(model) { const granted = await this.getApiKeyAndHeaders(model); return granted.ok ? granted.apiKey : undefined; }
  async getApiKeyForProvider(provider) { return this.authStorage?.getApiKey(provider); }
  getProviderAuthStatus(provider) { return this.authStorage?.getAuthStatus(provider) ?? { configured: ops.llm.hasCredentials(provider) }; }
  getProviderDisplayName(provider) { return displayName(provider); }
  isUsingOAuth(model) { return this.authStorage?.get(model.provider)?.type === "oauth"; }
  registerProvider() { throw new Error("registerProvider of ModelRegistry is not available in this host: use pi.registerProvider"); }
  unregisterProvider() { throw new Error("unregisterProvider of ModelRegistry is not available in this host: use pi.unregisterProvider"); }
}
