// The requests of the portal to the hub, by name, and the list of clips that all pages share.

import { unary, stream, plain, toBytesField, isAbort } from "./connect.js";

const POLL_EVERY = 4000;

export const hub = {
  info: (options) => unary("HubInfo", {}, options),
  clips: async (options) => (await unary("ListClips", {}, options)).clips ?? [],
  providers: async (options) => (await unary("ListProviders", {}, options)).providers ?? [],
  manifest: async (clipName, options) => (await unary("GetClipManifest", { clipName }, options)).manifest ?? {},
  bindings: (clipName, options) => unary("GetBindings", { clipName }, options),
  bind: (clipName, slot, binding, options) => unary("SetBinding", { clipName, slot, binding }, options),
  unbind: (clipName, slot, options) => unary("RemoveBinding", { clipName, slot }, options),
  install: (request, options) => unary("AddClip", request, options),
  remove: (clipName, purge, options) => unary("RemoveClip", { clipName, purge }, options),
  read: (clipName, operation, path, options) => unary("DataRead", { clipName, operation, path }, options),
  deleteFile: (clipName, path, options) => unary("DataWrite", { clipName, operation: "delete", path }, options),
  logs: (request, options) => stream("GetLogs", request, options),
  invoke(clipName, command, input, { clipToken, signal } = {}) {
    const request = { clipName, command, input: toBytesField(JSON.stringify(input)) };
    if (clipToken) request.clipToken = clipToken;
    return stream("Invoke", request, { signal });
  },
};

export const access = {
  session: (options) => plain("GET", "/auth/session", undefined, options),
  signIn: (token) => plain("POST", "/auth/session", { token }),
  signOut: () => plain("DELETE", "/auth/session"),
  tokens: async (options) => (await plain("GET", "/auth/tokens", undefined, options)).tokens ?? [],
  create: (request) => plain("POST", "/auth/tokens", request),
  revoke: (id) => plain("DELETE", `/auth/tokens/${encodeURIComponent(id)}`),
};

/** The clips of the hub, requested every few seconds while the page is visible. */
export class Clips {
  #listeners = new Set();
  #timer = null;
  #printed = "";
  list = null;
  error = null;

  /** Calls back now, if the list is known, and whenever it or the reason for not having it changes. */
  watch(listener, signal) {
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => this.#listeners.delete(listener));
    if (this.list || this.error) listener(this.list, this.error);
  }

  start() {
    if (this.#timer) return;
    this.#timer = setInterval(() => document.visibilityState === "visible" && this.refresh(), POLL_EVERY);
    document.addEventListener("visibilitychange", this.#look);
    window.addEventListener("focus", this.#look);
    this.refresh();
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = null;
    document.removeEventListener("visibilitychange", this.#look);
    window.removeEventListener("focus", this.#look);
    this.list = null;
    this.error = null;
    this.#printed = "";
  }

  #look = () => document.visibilityState === "visible" && this.refresh();

  async refresh() {
    let list = this.list;
    let error = null;
    try {
      list = await hub.clips();
    } catch (failure) {
      if (isAbort(failure)) return;
      error = failure;
    }
    if (!this.#timer) return;
    const printed = JSON.stringify([list, error?.code, error?.message]);
    if (printed === this.#printed) return;
    this.#printed = printed;
    this.list = list;
    this.error = error;
    for (const listener of [...this.#listeners]) listener(list, error);
  }

  find(alias) {
    return this.list?.find((clip) => clip.name === alias);
  }
}
