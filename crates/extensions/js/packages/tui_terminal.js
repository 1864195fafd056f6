// The terminal, which does not exist here: objects that draw only store their state; functions that compute (escape
// sequences, sizes of images) work.

import { Container } from "pinion:packages/tui_components";

/** A screen of a fixed size that is not shown. */
export class ProcessTerminal {
  columns = 80;
  rows = 24;
  kittyProtocolActive = false;
  start() {}
  stop() {}
  async drainInput() {}
  write() {}
  moveBy() {}
  hideCursor() {}
  showCursor() {}
  clearLine() {}
  clearFromCursor() {}
  clearScreen() {}
  setTitle() {}
  setProgress() {}
}

export class TUI extends Container {
  onDebug;
  fullRedraws = 0;
  #overlays = []; #listeners = new Set(); #cursor = false; #clear = true; #focused = null;
  constructor(terminal = new ProcessTerminal(), showHardwareCursor = false) {
    super();
    this.terminal = terminal;
    this.#cursor = showHardwareCursor;
  }
  getShowHardwareCursor() { return this.#cursor; }
  setShowHardwareCursor(enabled) { this.#cursor = enabled; }
  getClearOnShrink() { return this.#clear; }
  setClearOnShrink(enabled) { this.#clear = enabled; }
  setFocus(component) {
    if (this.#focused && "focused" in this.#focused) this.#focused.focused = false;
    this.#focused = component;
    if (component && "focused" in component) component.focused = true;
  }
  showOverlay(component, options = {}) {
    const overlay = { component, options, hidden: false };
    this.#overlays.push(overlay);
    const isFocused = () => this.#focused === component;
    return {
      hide: () => { this.#overlays = this.#overlays.filter((other) => other !== overlay); },
      setHidden: (hidden) => { overlay.hidden = hidden; },
      isHidden: () => overlay.hidden,
      focus: () => this.setFocus(component),
      unfocus: () => { if (isFocused()) this.setFocus(null); },
      isFocused,
    };
  }
  hideOverlay() { this.#overlays.pop(); }
  hasOverlay() { return this.#overlays.some(({ hidden }) => !hidden); }
  start() {}
  stop() {}
  addInputListener(listener) { this.#listeners.add(listener); return () => this.removeInputListener(listener); }
  removeInputListener(listener) { this.#listeners.delete(listener); }
  requestRender() {}
}

/** Splits input into keys. */
export class StdinBuffer {
  #handlers = new Map();
  #rest = "";
  on(name, handler) { this.#handlers.set(name, [...(this.#handlers.get(name) ?? []), handler]); return this; }
  off(name, handler) { this.#handlers.set(name, (this.#handlers.get(name) ?? []).filter((other) => other !== handler)); return this; }
  emit(name, ...values) { for (const handler of this.#handlers.get(name) ?? []) handler(...values); return this.#handlers.has(name); }
  process(data) {
    this.#rest += typeof data === "string" ? data : new TextDecoder().decode(data);
    for (;;) {
      const paste = /^\x1b\[200~([\s\S]*?)\x1b\[201~/.exec(this.#rest);
      const key = paste?.[0] ?? (this.#rest.startsWith("\x1b[200~") ? undefined : /^(?:\x1b(?:\[[0-9;:?<]*[A-Za-z~]|O[A-Za-z]|[^[O])|[^\x1b])/u.exec(this.#rest)?.[0]);
      if (key === undefined) return;
      this.#rest = this.#rest.slice(key.length);
      if (paste) this.emit("paste", paste[1]); else this.emit("data", key);
    }
  }
  flush() { const rest = this.#rest; this.#rest = ""; return rest === "" ? [] : [rest]; }
  clear() { this.#rest = ""; }
  getBuffer() { return this.#rest; }
  destroy() { this.clear(); this.#handlers.clear(); }
}

const NOTHING = { images: null, trueColor: false, hyperlinks: false };
let capabilities = NOTHING;
let cell = { widthPx: 9, heightPx: 18 };
let images = 0;
export const detectCapabilities = () => ({ ...NOTHING });
export const getCapabilities = () => capabilities;
export const setCapabilities = (given) => { capabilities = given; };
export const setCapabilityOverrides = (given) => { capabilities = { ...capabilities, ...given }; };
export const resetCapabilitiesCache = () => { capabilities = NOTHING; };
export const getCellDimensions = () => cell;
export const setCellDimensions = (given) => { cell = given; };
export const allocateImageId = () => { images += 1; return images; };

const CHUNK = 4096;
export function encodeKitty(data, options = {}) {
  const parameters = ["a=T", "f=100", "q=2"];
  if (options.moveCursor === false) parameters.push("C=1");
  for (const [name, value] of [["c", options.columns], ["r", options.rows], ["i", options.imageId]]) if (value) parameters.push(`${name}=${value}`);
  if (data.length <= CHUNK) return `\x1b_G${parameters.join(",")};${data}\x1b\\`;
  let result = "";
  for (let at = 0; at < data.length; at += CHUNK) {
    const more = `m=${at + CHUNK < data.length ? 1 : 0}`;
    result += `\x1b_G${at === 0 ? `${parameters.join(",")},${more}` : more};${data.slice(at, at + CHUNK)}\x1b\\`;
  }
  return result;
}
export function encodeITerm2(data, options = {}) {
  const parameters = [`inline=${options.inline === false ? 0 : 1}`];
  for (const name of ["width", "height"]) if (options[name] !== undefined) parameters.push(`${name}=${options[name]}`);
  if (options.name) parameters.push(`name=${btoa(options.name)}`);
  if (options.preserveAspectRatio === false) parameters.push("preserveAspectRatio=0");
  return `\x1b]1337;File=${parameters.join(";")}:${data}\x07`;
}
export const deleteKittyImage = (id) => `\x1b_Ga=d,d=I,i=${id},q=2\x1b\\`;
export const deleteAllKittyImages = () => "\x1b_Ga=d,d=A,q=2\x1b\\";

export function calculateImageRows({ widthPx, heightPx }, columns, { widthPx: cellWidth, heightPx: cellHeight } = cell) {
  return Math.max(1, Math.ceil((heightPx * ((columns * cellWidth) / widthPx)) / cellHeight));
}

function bytesOf(data) {
  try { return Uint8Array.from(atob(data), (character) => character.charCodeAt(0)); } catch { return new Uint8Array(); }
}
const view = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const size = (widthPx, heightPx) => ({ widthPx, heightPx });
export function getPngDimensions(data) {
  const bytes = bytesOf(data);
  if (bytes.length < 24 || bytes[0] !== 0x89 || bytes[1] !== 0x50) return null;
  return size(view(bytes).getUint32(16), view(bytes).getUint32(20));
}
export function getGifDimensions(data) {
  const bytes = bytesOf(data);
  if (bytes.length < 10 || bytes[0] !== 0x47 || bytes[1] !== 0x49) return null;
  return size(view(bytes).getUint16(6, true), view(bytes).getUint16(8, true));
}
export function getJpegDimensions(data) {
  const bytes = bytesOf(data);
  if (bytes[0] !== 0xff || bytes[1] !== 0xd8) return null;
  for (let at = 2; at + 9 < bytes.length;) {
    if (bytes[at] !== 0xff) { at += 1; continue; }
    if (bytes[at + 1] >= 0xc0 && bytes[at + 1] <= 0xc2) return size(view(bytes).getUint16(at + 7), view(bytes).getUint16(at + 5));
    const length = view(bytes).getUint16(at + 2);
    if (length < 2) return null;
    at += 2 + length;
  }
  return null;
}
export function getWebpDimensions(data) {
  const bytes = bytesOf(data);
  const word = (at) => String.fromCharCode(...bytes.slice(at, at + 4));
  if (bytes.length < 30 || word(0) !== "RIFF" || word(8) !== "WEBP") return null;
  const at = view(bytes);
  if (word(12) === "VP8 ") return size(at.getUint16(26, true) & 0x3fff, at.getUint16(28, true) & 0x3fff);
  if (word(12) === "VP8L") { const bits = at.getUint32(21, true); return size((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1); }
  if (word(12) === "VP8X") return size((at.getUint32(24, true) & 0xffffff) + 1, (at.getUint16(27, true) | (bytes[29] << 16)) + 1);
  return null;
}
export function getImageDimensions(data, mimeType) {
  return { "image/png": getPngDimensions, "image/jpeg": getJpegDimensions, "image/gif": getGifDimensions, "image/webp": getWebpDimensions }[mimeType]?.(data) ?? null;
}
/** Draws nothing, because no terminal shows images. */
export function renderImage(data, dimensions, options = {}) {
  if (!capabilities.images) return null;
  const columns = options.maxWidthCells ?? 80;
  const rows = calculateImageRows(dimensions, columns);
  if (capabilities.images === "kitty") return { sequence: encodeKitty(data, { columns, rows, imageId: options.imageId, moveCursor: options.moveCursor }), rows, imageId: options.imageId };
  return { sequence: encodeITerm2(data, { width: columns, height: "auto", preserveAspectRatio: options.preserveAspectRatio ?? true }), rows };
}
export const hyperlink = (text, url) => `\x1b]8;;${url}\x1b\\${text}\x1b]8;;\x1b\\`;
export function imageFallback(mimeType, dimensions, filename) {
  const told = [filename, `[${mimeType}]`, dimensions && `${dimensions.widthPx}x${dimensions.heightPx}`].filter(Boolean);
  return `[Image: ${told.join(" ")}]`;
}

export class Image {
  #data; #mimeType; #theme; #options; #dimensions; #id;
  constructor(data, mimeType, theme, options = {}, dimensions = undefined) {
    this.#data = data; this.#mimeType = mimeType; this.#theme = theme; this.#options = options;
    this.#dimensions = dimensions ?? getImageDimensions(data, mimeType) ?? { widthPx: 800, heightPx: 600 };
    this.#id = options.imageId;
  }
  getImageId() { return this.#id; }
  invalidate() {}
  render(width) {
    const drawn = renderImage(this.#data, this.#dimensions, { ...this.#options, maxWidthCells: Math.min(width - 2, this.#options.maxWidthCells ?? 60) });
    if (!drawn) return [this.#theme.fallbackColor(imageFallback(this.#mimeType, this.#dimensions, this.#options.filename))];
    return [drawn.sequence, ...Array.from({ length: drawn.rows - 1 }, () => "")];
  }
}

/** Completes commands; files are not looked up without a terminal. */
export class CombinedAutocompleteProvider {
  #commands;
  constructor(commands = []) { this.#commands = commands; }
  async getSuggestions(lines, cursorLine, cursorCol) {
    const before = (lines[cursorLine] ?? "").slice(0, cursorCol);
    const found = /^\/(\S*)(?:\s(.*))?$/.exec(before);
    if (!found) return null;
    if (found[2] === undefined) {
      const items = this.#commands.map((command) => ({ value: command.name ?? command.value, label: command.name ?? command.label, description: command.description }))
        .filter(({ value }) => value.startsWith(found[1]));
      return items.length > 0 ? { items, prefix: before } : null;
    }
    const command = this.#commands.find(({ name }) => name === found[1]);
    const items = await command?.getArgumentCompletions?.(found[2]);
    return items?.length > 0 ? { items, prefix: found[2] } : null;
  }
  applyCompletion(lines, cursorLine, cursorCol, item, prefix) {
    const line = lines[cursorLine] ?? "";
    const start = line.slice(0, cursorCol - prefix.length);
    const value = prefix.startsWith("/") ? `/${item.value} ` : item.value;
    return { lines: lines.with(cursorLine, start + value + line.slice(cursorCol)), cursorLine, cursorCol: start.length + value.length };
  }
  shouldTriggerFileCompletion() { return false; }
}
