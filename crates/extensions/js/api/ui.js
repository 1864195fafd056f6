// What `ctx.ui` is: requests to the client, and nothing where there is none.

import { home, now } from "pinion:api/bridge";
import { ask } from "pinion:api/dialogs";
import { lazy } from "pinion:runtime/lazy";

const value = (response) => (response.cancelled ? undefined : textOf(response.value));
const textOf = (given) => (given === null ? undefined : given);
const confirmed = (response) => (response.cancelled ? false : (response.confirmed ?? false));

function tell(request) {
  now(home, "tell", request);
}

const nothing = () => undefined;

// What no client of the protocol can show.
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

/** Where nobody can be asked: everything gives its default. */
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

/** Asks and tells the client. */
export function clientUi(scope) {
  const setEditorText = (text) => tell({ method: "set_editor_text", text });
  return withUnseen({
    select: (title, options, settings) =>
      ask(scope, { method: "select", title, options }, settings, value, undefined),
    confirm: (title, message, settings) =>
      ask(scope, { method: "confirm", title, message }, settings, confirmed, false),
    input: (title, placeholder, settings) =>
      ask(scope, { method: "input", title, placeholder }, settings, value, undefined),
    editor: (title, prefill) =>
      ask(scope, { method: "editor", title, prefill }, undefined, value, undefined),
    notify: (message, notifyType) => tell({ method: "notify", message, notifyType }),
    setStatus: (statusKey, statusText) => tell({ method: "setStatus", statusKey, statusText }),
    setWidget: (widgetKey, widgetLines, settings) => {
      // Components need a terminal.
      if (typeof widgetLines === "function") return;
      const widgetPlacement = settings?.placement;
      const lines = Array.isArray(widgetLines) ? widgetLines.map(String) : widgetLines;
      tell({ method: "setWidget", widgetKey, widgetLines: lines, widgetPlacement });
    },
    setTitle: (title) => tell({ method: "setTitle", title }),
    setEditorText,
    pasteToEditor: setEditorText,
    setTheme: () => ({ success: false, error: "Theme switching not supported in RPC mode" }),
  });
}
