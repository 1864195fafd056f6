// The components of the chat on a terminal. They are never drawn here: they can be created, extended and asked for
// lines, and do nothing by themselves.

import { CancellableLoader, Container, Loader, Text } from "pinion:packages/tui_components";
import { Editor } from "pinion:packages/tui_input";
import { padded, wrapTextWithAnsi } from "pinion:packages/tui_text";

/** A container that stores its constructor arguments and accepts every method of its kind. */
const inert = (name, members = []) => {
  const made = { [name]: class extends Container {
    constructor(...given) {
      super();
      Object.defineProperty(this, "given", { value: given, enumerable: false });
    }
    handleInput() {}
    dispose() {}
  } }[name];
  for (const member of members) made.prototype[member] = function () {};
  return made;
};

export const ArminComponent = inert("ArminComponent");
export const AssistantMessageComponent = inert("AssistantMessageComponent", ["updateContent", "setHideThinkingBlock", "setHiddenThinkingLabel"]);
export const BashExecutionComponent = inert("BashExecutionComponent", ["setExpanded", "appendOutput", "setComplete", "getOutput", "getCommand"]);
export const BranchSummaryMessageComponent = inert("BranchSummaryMessageComponent", ["setExpanded"]);
export const CompactionSummaryMessageComponent = inert("CompactionSummaryMessageComponent", ["setExpanded"]);
export const CustomMessageComponent = inert("CustomMessageComponent", ["setExpanded"]);
export const ExtensionEditorComponent = inert("ExtensionEditorComponent");
export const ExtensionInputComponent = inert("ExtensionInputComponent");
export const ExtensionSelectorComponent = inert("ExtensionSelectorComponent");
export const FooterComponent = inert("FooterComponent", ["setSession", "setAutoCompactEnabled"]);
export const LoginDialogComponent = inert("LoginDialogComponent", ["showAuth", "showManualInput", "showPrompt", "showWaiting", "showProgress"]);
export const ModelSelectorComponent = inert("ModelSelectorComponent", ["getSearchInput"]);
export const OAuthSelectorComponent = inert("OAuthSelectorComponent");
export const SessionSelectorComponent = inert("SessionSelectorComponent", ["getSessionList"]);
export const SettingsSelectorComponent = inert("SettingsSelectorComponent", ["getSettingsList"]);
export const ShowImagesSelectorComponent = inert("ShowImagesSelectorComponent", ["getSelectList"]);
export const SkillInvocationMessageComponent = inert("SkillInvocationMessageComponent", ["setExpanded"]);
export const ThemeSelectorComponent = inert("ThemeSelectorComponent", ["getSelectList"]);
export const ThinkingSelectorComponent = inert("ThinkingSelectorComponent", ["getSelectList"]);
export const ToolExecutionComponent = inert("ToolExecutionComponent", ["updateArgs", "setArgsComplete", "markExecutionStarted", "updateResult", "setExpanded", "setShowImages"]);
export const TreeSelectorComponent = inert("TreeSelectorComponent", ["getTreeList"]);
export const UserMessageComponent = inert("UserMessageComponent");
export const UserMessageSelectorComponent = inert("UserMessageSelectorComponent", ["getMessageList"]);

/** A line across the screen. */
export class DynamicBorder {
  #colour;
  constructor(color = (text) => text) { this.#colour = color; }
  invalidate() {}
  render(width) { return [this.#colour("─".repeat(Math.max(1, width)))]; }
}

/** A loader between two lines, with a signal that fires when the user cancels. */
export class BorderedLoader extends Container {
  #loader; #controller = new AbortController();
  constructor(tui, theme, message, options = {}) {
    super();
    const border = (text) => theme?.fg?.("border", text) ?? text;
    const sign = (text) => theme?.fg?.("accent", text) ?? text;
    const words = (text) => theme?.fg?.("muted", text) ?? text;
    const cancellable = options.cancellable ?? true;
    this.#loader = new (cancellable ? CancellableLoader : Loader)(tui, sign, words, message);
    this.addChild(new DynamicBorder(border));
    this.addChild(this.#loader);
    if (cancellable) this.addChild(new Text(words("esc cancel"), 1, 0));
    this.addChild(new DynamicBorder(border));
  }
  get signal() { return this.#loader.signal ?? this.#controller.signal; }
  set onAbort(listener) { this.#loader.onAbort = listener; }
  handleInput(data) { this.#loader.handleInput?.(data); }
  dispose() { if (this.#loader.dispose) this.#loader.dispose(); else this.#loader.stop(); }
}

/** The editor with which extensions replace the program's own. */
export class CustomEditor extends Editor {
  onEscape; onCtrlD; onPasteImage; onExtensionShortcut;
  actionHandlers = new Map();
  constructor(tui, theme, keybindings, options) {
    super(tui, theme, options);
    this.keybindings = keybindings;
  }
  onAction(action, handler) { this.actionHandlers.set(action, handler); }
  handleInput(data) {
    if (this.onExtensionShortcut?.(data)) return;
    for (const [action, handler] of this.actionHandlers) {
      if (this.keybindings?.matches?.(data, action)) { handler(); return; }
    }
    if (data === "\x1b" && this.onEscape) { this.onEscape(); return; }
    super.handleInput(data);
  }
}

/** Returns the last lines of a text as they appear at a given width. */
export function truncateToVisualLines(text, maxVisualLines, width, paddingX = 0) {
  if (!text) return { visualLines: [], skippedCount: 0 };
  const left = " ".repeat(paddingX);
  const lines = wrapTextWithAnsi(text, Math.max(1, width - 2 * paddingX)).map((line) => padded(left + line, width));
  const skippedCount = Math.max(0, lines.length - maxVisualLines);
  return { visualLines: lines.slice(skippedCount), skippedCount };
}
