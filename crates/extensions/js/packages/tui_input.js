// Text fields of one line and of many lines.

import { CURSOR_MARKER } from "pinion:packages/tui_components";
import { getKeybindings, decodeKittyPrintable } from "pinion:packages/tui_keys";
import { padded, parts, visibleWidth, wrapTextWithAnsi } from "pinion:packages/tui_text";

const shownAs = (text) => [...parts(text)].map((part) => part.text ?? "");

/** Text with a cursor in it. Positions are UTF-16 units and never inside a character. */
class Buffer {
  text = "";
  cursor = 0;
  #undo = [];
  #killed = "";

  set(text) { this.remember(); this.text = text; this.cursor = text.length; }
  insert(text) { this.remember(); this.#splice(this.cursor, this.cursor, text); }
  remember() { this.#undo.push([this.text, this.cursor]); if (this.#undo.length > 100) this.#undo.shift(); }
  #splice(from, to, text) {
    this.text = this.text.slice(0, from) + text + this.text.slice(to);
    this.cursor = from + text.length;
  }
  get before() { return this.text.slice(0, this.cursor); }
  get after() { return this.text.slice(this.cursor); }
  get left() { return this.cursor - (shownAs(this.before).at(-1)?.length ?? 0); }
  get right() { return this.cursor + (shownAs(this.after)[0]?.length ?? 0); }
  get wordLeft() { return this.before.replace(/\s+$/, "").replace(/(?:\w+|[^\w\s]+)$/, "").length; }
  get wordRight() { return this.cursor + (/^\s*(?:\w+|[^\w\s]+)?/.exec(this.after)?.[0].length ?? 0); }
  get lineStart() { return this.before.lastIndexOf("\n") + 1; }
  get lineEnd() { const end = this.text.indexOf("\n", this.cursor); return end < 0 ? this.text.length : end; }

  /** Deletes between the cursor and `to`; `yank` inserts the deleted text again. */
  kill(to) {
    this.remember();
    const [from, end] = [Math.min(to, this.cursor), Math.max(to, this.cursor)];
    this.#killed = this.text.slice(from, end);
    this.#splice(from, end, "");
  }
  moveLine(by) {
    const lines = this.text.split("\n");
    const line = this.before.split("\n").length - 1;
    const target = line + by;
    if (target < 0 || target >= lines.length) { this.cursor = by < 0 ? 0 : this.text.length; return; }
    const column = Math.min(this.cursor - this.lineStart, lines[target].length);
    this.cursor = lines.slice(0, target).reduce((sum, text) => sum + text.length + 1, 0) + column;
  }

  /** Handles an editing key; returns whether it was one. */
  edit(data) {
    const keys = getKeybindings();
    const is = (name) => keys.matches(data, `tui.editor.${name}`);
    if (is("deleteCharBackward")) this.#erase(this.left);
    else if (is("deleteCharForward")) this.#erase(this.right);
    else if (is("deleteWordBackward")) this.kill(this.wordLeft);
    else if (is("deleteWordForward")) this.kill(this.wordRight);
    else if (is("deleteToLineStart")) this.kill(this.lineStart);
    else if (is("deleteToLineEnd")) this.kill(this.lineEnd);
    else if (is("cursorLeft")) this.cursor = this.left;
    else if (is("cursorRight")) this.cursor = this.right;
    else if (is("cursorWordLeft")) this.cursor = this.wordLeft;
    else if (is("cursorWordRight")) this.cursor = this.wordRight;
    else if (is("cursorLineStart")) this.cursor = this.lineStart;
    else if (is("cursorLineEnd")) this.cursor = this.lineEnd;
    else if (is("yank")) this.insert(this.#killed);
    else if (is("undo")) [this.text, this.cursor] = this.#undo.pop() ?? [this.text, this.cursor];
    else return false;
    return true;
  }
  #erase(to) {
    this.remember();
    this.#splice(Math.min(to, this.cursor), Math.max(to, this.cursor), "");
  }
}

/** Returns the text that a key or a paste inserts. */
function printable(data) {
  const pasted = /^\x1b\[200~([\s\S]*)\x1b\[201~$/.exec(data);
  if (pasted) return pasted[1];
  const decoded = decodeKittyPrintable(data);
  if (decoded !== undefined) return decoded;
  return /^[^\x00-\x1f\x7f\x1b]+$/.test(data) ? data : undefined;
}

const inverse = (text) => `\x1b[7m${text}`;

export class Input {
  onSubmit; onEscape;
  focused = false;
  #buffer = new Buffer();

  getValue() { return this.#buffer.text; }
  setValue(value) { this.#buffer.text = value; this.#buffer.cursor = Math.min(this.#buffer.cursor, value.length); }
  invalidate() {}
  handleInput(data) {
    const keys = getKeybindings();
    if (keys.matches(data, "tui.select.cancel")) this.onEscape?.();
    else if (keys.matches(data, "tui.input.submit") || data === "\n") this.onSubmit?.(this.#buffer.text);
    else if (!this.#buffer.edit(data)) {
      const text = printable(data)?.replace(/[\r\n]+/g, "");
      if (text) this.#buffer.insert(text);
    }
  }
  render(width) {
    const prompt = "> ";
    const room = width - prompt.length;
    if (room <= 0) return [prompt];
    const { before, after } = this.#buffer;
    const [under = " ", ...rest] = shownAs(after);
    const shown = shownAs(before);
    while (shown.length > 0 && visibleWidth(shown.join("")) > room - 1) shown.shift();
    while (rest.length > 0 && visibleWidth(shown.join("") + under + rest.join("")) > room) rest.pop();
    const marker = this.focused ? CURSOR_MARKER : "";
    return [padded(`${prompt}${shown.join("")}${marker}${inverse(under)}\x1b[27m${rest.join("")}`, width)];
  }
}

export class Editor {
  focused = false;
  onSubmit; onChange;
  disableSubmit = false;
  borderColor;
  #buffer = new Buffer();
  #theme; #paddingX; #maxVisible; #history = []; #recalled = -1; #provider;

  constructor(tui, theme, options = {}) {
    this.tui = tui;
    this.#theme = theme;
    this.borderColor = theme?.borderColor ?? ((text) => text);
    this.#paddingX = options.paddingX ?? 0;
    this.#maxVisible = options.autocompleteMaxVisible ?? 5;
  }
  getPaddingX() { return this.#paddingX; }
  setPaddingX(padding) { this.#paddingX = padding; }
  getAutocompleteMaxVisible() { return this.#maxVisible; }
  setAutocompleteMaxVisible(maxVisible) { this.#maxVisible = maxVisible; }
  setAutocompleteProvider(provider) { this.#provider = provider; }
  isShowingAutocomplete() { return false; }
  addToHistory(text) {
    const trimmed = text.trim();
    if (trimmed !== "" && this.#history[0] !== trimmed) this.#history.unshift(trimmed);
  }
  invalidate() {}
  getText() { return this.#buffer.text; }
  getExpandedText() { return this.#buffer.text; }
  getLines() { return this.#buffer.text.split("\n"); }
  getCursor() { return { line: this.#buffer.before.split("\n").length - 1, col: this.#buffer.cursor - this.#buffer.lineStart }; }
  setText(text) { this.#buffer.set(text.replace(/\r\n?/g, "\n").replaceAll("\t", "    ")); this.#changed(); }
  insertTextAtCursor(text) { this.#buffer.insert(text); this.#changed(); }
  #changed() { this.onChange?.(this.#buffer.text); this.tui?.requestRender?.(); }

  handleInput(data) {
    const keys = getKeybindings();
    const buffer = this.#buffer;
    const before = buffer.text;
    if (keys.matches(data, "tui.input.newLine") || data === "\x1b\r") buffer.insert("\n");
    else if (keys.matches(data, "tui.input.submit")) { this.#submit(); return; }
    else if (keys.matches(data, "tui.editor.cursorUp")) { if (buffer.lineStart === 0) this.#recall(1); else buffer.moveLine(-1); }
    else if (keys.matches(data, "tui.editor.cursorDown")) { if (buffer.lineEnd === buffer.text.length) this.#recall(-1); else buffer.moveLine(1); }
    else if (!buffer.edit(data)) {
      const text = printable(data);
      if (text !== undefined) buffer.insert(text.replace(/\r\n?/g, "\n"));
    }
    if (buffer.text !== before) this.#changed(); else this.tui?.requestRender?.();
  }
  #submit() {
    if (this.disableSubmit) return;
    const text = this.#buffer.text.trim();
    this.#buffer = new Buffer();
    this.#recalled = -1;
    this.onChange?.("");
    this.onSubmit?.(text);
  }
  #recall(by) {
    const at = this.#recalled + by;
    if (at < -1 || at >= this.#history.length) return;
    this.#recalled = at;
    this.#buffer.set(this.#history[at] ?? "");
  }

  render(width) {
    const padding = " ".repeat(this.#paddingX);
    const room = Math.max(1, width - 2 * this.#paddingX);
    const { line, col } = this.getCursor();
    const border = this.borderColor("─".repeat(Math.max(0, width)));
    const body = this.getLines().flatMap((text, at) => {
      const [under = " ", ...rest] = shownAs(text.slice(col));
      const shown = at === line ? `${text.slice(0, col)}${this.focused ? CURSOR_MARKER : ""}${inverse(under)}\x1b[0m${rest.join("")}` : text;
      return wrapTextWithAnsi(shown, room);
    });
    return [border, ...body.map((text) => padded(padding + text, width)), border];
  }
}
