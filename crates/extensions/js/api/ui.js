// `ctx.ui`: requests to the client, or defaults without a client.

import { home, now } from "pinion:api/bridge";
import { ask } from "pinion:api/dialogs";
import { lazy } from "pinion:runtime/lazy";

const value = (response) => (response.cancelled ? undefined : textOf(response.value));
const textOf = (given) => (given === null ? undefined : given);
const confirmed = (response) => (response.cancelled ? false : (response.confirmed ?? false));

function tell(request) {
  now(home, "tell", request);
}

// Clients expect text in certain members, so every value is converted to text. A value without a text form is left out.
function text(given) {
  switch (typeof given) {
    case "string":
      return given;
    case "number":
    case "boolean":
    case "bigint":
      return String(given);
    case "object":
      return given === null ? undefined : wordsOf(given);
    default:
      return undefined;
  }
}

function wordsOf(given) {
  try {
    // Errors, dates and similar objects have their own text form.
    const plain = Array.isArray(given) || given.toString === Object.prototype.toString;
    const words = plain ? JSON.stringify(given) : String(given);
    return typeof words === "string" ? words : undefined;
  } catch {
    return undefined;
  }
}

const line = (given) => text(given) ?? (typeof given === "object" && given !== null ? "" : String(given));
const lines = (given) => (Array.isArray(given) ? Array.from(given, line) : undefined);
const PLACEMENTS = ["aboveEditor", "belowEditor"];

const nothing = () => undefined;

// Functions of the interface that no client of the protocol can show.
const unseen = {
  onTerminalInput: () => nothing,
  setWorkingMessage: nothing,
  setWorkingVisible: nothing,
  setWorkingIndicator: nothing,
  setHiddenThinkingLabel: nothing,
  setFooter: nothing,
  setHeader: nothing,
  custom: async () => undefined,
  getEditorText: () => "",
  addAutocompleteProvider: nothing,
  setEditorComponent: nothing,
  getEditorComponent: nothing,
  get theme() {
    return lazy("api/theme").activeTheme();
  },
  getAllThemes: () => [],
  getTheme: nothing,
  getToolsExpanded: () => false,
  setToolsExpanded: nothing,
};

function withUnseen(members) {
  return Object.defineProperties(members, Object.getOwnPropertyDescriptors(unseen));
}

/** The interface without a client: every dialog resolves with its default. */
export function silentUi() {
  return withUnseen({
    select: async () => undefined,
    confirm: async () => false,
    input: async () => undefined,
    editor: async () => undefined,
    notify: nothing,
    setStatus: nothing,
    setWidget: nothing,
    setTitle: nothing,
    setEditorText: nothing,
    pasteToEditor: nothing,
    setTheme: () => ({ success: false, error: "UI not available" }),
  });
}

/** The interface with a client: sends questions and messages. */
export function clientUi(scope) {
  const setEditorText = (words) => tell({ method: "set_editor_text", text: text(words) });
  return withUnseen({
    select: (title, options, settings) =>
      ask(scope, { method: "select", title: text(title), options: lines(options) }, settings, value, undefined),
    confirm: (title, message, settings) =>
      ask(scope, { method: "confirm", title: text(title), message: text(message) }, settings, confirmed, false),
    input: (title, placeholder, settings) =>
      ask(scope, { method: "input", title: text(title), placeholder: text(placeholder) }, settings, value, undefined),
    editor: (title, prefill) =>
      ask(scope, { method: "editor", title: text(title), prefill: text(prefill) }, undefined, value, undefined),
    notify: (message, type) => tell({ method: "notify", message: text(message), notifyType: text(type) }),
    setStatus: (key, status) => tell({ method: "setStatus", statusKey: text(key), statusText: text(status) }),
    setWidget: (key, content, settings) => {
      // Components need a terminal.
      if (content !== undefined && !Array.isArray(content)) return;
      const widgetPlacement = PLACEMENTS.find((known) => known === settings?.placement);
      tell({ method: "setWidget", widgetKey: text(key), widgetLines: lines(content), widgetPlacement });
    },
    setTitle: (title) => tell({ method: "setTitle", title: text(title) }),
    setEditorText,
    pasteToEditor: setEditorText,
    setTheme: () => ({ success: false, error: "Theme switching not supported in RPC mode" }),
  });
}
