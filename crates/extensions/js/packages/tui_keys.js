// Names of keys, and the bytes that terminals send for them.

const named = (names) => Object.fromEntries(names.map((name) => [name, name]));
const SYMBOLS = {
  backtick: "`", hyphen: "-", equals: "=", leftbracket: "[", rightbracket: "]", backslash: "\\", semicolon: ";", quote: "'",
  comma: ",", period: ".", slash: "/", exclamation: "!", at: "@", hash: "#", dollar: "$", percent: "%", caret: "^", ampersand: "&",
  asterisk: "*", leftparen: "(", rightparen: ")", underscore: "_", plus: "+", pipe: "|", tilde: "~", leftbrace: "{", rightbrace: "}",
  colon: ":", lessthan: "<", greaterthan: ">", question: "?",
};
const SPECIAL = [
  "escape", "esc", "enter", "return", "tab", "space", "backspace", "delete", "insert", "clear", "home", "end", "pageUp", "pageDown",
  "up", "down", "left", "right", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12",
];
const with_ = (...modifiers) => (key) => [...modifiers, key].join("+");

/** Names of keys, and functions that add modifiers to one. */
export const Key = {
  ...named(SPECIAL), ...SYMBOLS,
  ctrl: with_("ctrl"), shift: with_("shift"), alt: with_("alt"), super: with_("super"),
  ctrlShift: with_("ctrl", "shift"), shiftCtrl: with_("shift", "ctrl"), ctrlAlt: with_("ctrl", "alt"), altCtrl: with_("alt", "ctrl"),
  shiftAlt: with_("shift", "alt"), altShift: with_("alt", "shift"), ctrlSuper: with_("ctrl", "super"), superCtrl: with_("super", "ctrl"),
  shiftSuper: with_("shift", "super"), superShift: with_("super", "shift"), altSuper: with_("alt", "super"), superAlt: with_("super", "alt"),
  ctrlShiftAlt: with_("ctrl", "shift", "alt"), ctrlShiftSuper: with_("ctrl", "shift", "super"),
};

let kitty = false;
export const setKittyProtocolActive = (active) => { kitty = active; };
export const isKittyProtocolActive = () => kitty;

const MODIFIERS = [["shift", 1], ["alt", 2], ["ctrl", 4], ["super", 8]];
const ORDER = ["ctrl", "shift", "alt", "super"];
const LETTERS = { A: "up", B: "down", C: "right", D: "left", H: "home", F: "end", E: "clear", P: "f1", Q: "f2", R: "f3", S: "f4" };
const NUMBERS = {
  1: "home", 2: "insert", 3: "delete", 4: "end", 5: "pageUp", 6: "pageDown", 7: "home", 8: "end", 11: "f1", 12: "f2", 13: "f3", 14: "f4",
  15: "f5", 17: "f6", 18: "f7", 19: "f8", 20: "f9", 21: "f10", 23: "f11", 24: "f12",
};
const CODES = {
  27: "escape", 13: "enter", 57414: "enter", 9: "tab", 32: "space", 127: "backspace", 57417: "left", 57418: "right", 57419: "up",
  57420: "down", 57421: "pageUp", 57422: "pageDown", 57423: "home", 57424: "end", 57425: "insert", 57426: "delete",
};
const CONTROLS = { "\x00": "space", "\x1b": "[", "\x1c": "\\", "\x1d": "]", "\x1e": "^", "\x1f": "-" };

function withModifiers(bits, key) {
  const bit = Object.fromEntries(MODIFIERS);
  return { modifiers: ORDER.filter((name) => (bits & bit[name]) !== 0), key };
}

/** Parses the bytes of one key; undefined if they are not a single key. */
function decode(data) {
  const plain = { "\r": "enter", "\n": "enter", "\t": "tab", " ": "space", "\x7f": "backspace", "\x1b": "escape", "\b": "backspace" }[data];
  if (plain !== undefined) return withModifiers(0, plain);
  if (data === "\x1b[Z") return withModifiers(1, "tab");
  let found = /^\x1b\[(\d+)(?::\d*)?(?::\d*)?(?:;(\d*)(?::(\d))?)?(?:;[\d:]*)?u$/.exec(data);
  if (found) return withModifiers((Number(found[2] || 1) - 1) & 15, CODES[found[1]] ?? String.fromCodePoint(Number(found[1])));
  found = /^\x1b\[27;(\d+);(\d+)~$/.exec(data);
  if (found) return withModifiers((Number(found[1]) - 1) & 15, CODES[found[2]] ?? String.fromCodePoint(Number(found[2])));
  found = /^\x1b(?:\[|O)(?:1;(\d+)(?::\d)?)?([A-FHP-S])$/.exec(data);
  if (found) return withModifiers((Number(found[1] || 1) - 1) & 15, LETTERS[found[2]]);
  found = /^\x1b\[(\d+)(?:;(\d+)(?::\d)?)?~$/.exec(data);
  if (found && found[1] in NUMBERS) return withModifiers((Number(found[2] || 1) - 1) & 15, NUMBERS[found[1]]);
  if (data in CONTROLS) return withModifiers(4, CONTROLS[data]);
  if (/^[\x01-\x1a]$/.test(data)) return withModifiers(4, String.fromCharCode(data.charCodeAt(0) + 96));
  if (data.length === 2 && data[0] === "\x1b") {
    const word = { b: "left", f: "right" }[data[1]];
    const inner = word === undefined ? decode(data[1]) : withModifiers(0, word);
    return inner && { modifiers: [...inner.modifiers, "alt"], key: inner.key };
  }
  return [...data].length === 1 && data >= " " ? withModifiers(0, data) : undefined;
}

const joined = ({ modifiers, key }) => [...modifiers, key].join("+");

/** Returns the name of the key that a terminal sent. */
export function parseKey(data) {
  if (/^\x1b[bf]$/.test(data)) return `alt+${{ b: "left", f: "right" }[data[1]]}`;
  const decoded = decode(data);
  return decoded && joined(decoded);
}

const ALIASES = { esc: "escape", return: "enter" };

function wanted(keyId) {
  const pieces = keyId === "+" ? ["+"] : keyId.endsWith("++") ? [...keyId.slice(0, -2).split("+"), "+"] : keyId.split("+");
  const key = pieces.pop();
  return { key: ALIASES[key.toLowerCase()] ?? (key.length === 1 ? key.toLowerCase() : key.toLowerCase()), modifiers: pieces.map((piece) => piece.toLowerCase()) };
}

function same(decoded, asked) {
  let { key, modifiers } = decoded;
  if (key.length === 1 && key !== key.toLowerCase()) {
    key = key.toLowerCase();
    modifiers = [...modifiers, "shift"];
  }
  return key.toLowerCase() === asked.key && modifiers.length === asked.modifiers.length && modifiers.every((modifier) => asked.modifiers.includes(modifier));
}

/** Reports whether a terminal sent this key. */
export function matchesKey(data, keyId) {
  const asked = wanted(keyId);
  const decoded = decode(data);
  if (decoded !== undefined && same(decoded, asked)) return true;
  // Two keys may send the same bytes.
  return data.length === 2 && data[0] === "\x1b" && same({ key: data[1], modifiers: ["alt"] }, asked);
}

const eventOf = (data) => /^\x1b\[[\d:]*(?:;\d*:(\d))?(?:;[\d:]*)?[u~A-FHP-S]$/.exec(data)?.[1];
export const isKeyRelease = (data) => !data.includes("\x1b[200~") && eventOf(data) === "3";
export const isKeyRepeat = (data) => !data.includes("\x1b[200~") && eventOf(data) === "2";

/** Returns the character of a printing key, if the terminal sent its number. */
export function decodeKittyPrintable(data) {
  const found = /^\x1b\[(\d+)(?::(\d*))?(?::\d*)?(?:;(\d*)(?::\d)?)?(?:;[\d:]*)?u$/.exec(data);
  if (!found) return undefined;
  const bits = Number(found[3] || 1) - 1;
  if ((bits & ~(1 | 64 | 128)) !== 0) return undefined;
  const code = Number((bits & 1) !== 0 && found[2] ? found[2] : found[1]);
  return code >= 32 && code !== 127 && code < 57344 ? String.fromCodePoint(code) : undefined;
}

const bind = (defaultKeys, description) => ({ defaultKeys, description });
export const TUI_KEYBINDINGS = {
  "tui.editor.cursorUp": bind("up", "Move cursor up"),
  "tui.editor.cursorDown": bind("down", "Move cursor down"),
  "tui.editor.cursorLeft": bind(["left", "ctrl+b"], "Move cursor left"),
  "tui.editor.cursorRight": bind(["right", "ctrl+f"], "Move cursor right"),
  "tui.editor.cursorWordLeft": bind(["alt+left", "ctrl+left", "alt+b"], "Move cursor word left"),
  "tui.editor.cursorWordRight": bind(["alt+right", "ctrl+right", "alt+f"], "Move cursor word right"),
  "tui.editor.cursorLineStart": bind(["home", "ctrl+a"], "Move to line start"),
  "tui.editor.cursorLineEnd": bind(["end", "ctrl+e"], "Move to line end"),
  "tui.editor.jumpForward": bind("ctrl+]", "Jump forward to character"),
  "tui.editor.jumpBackward": bind("ctrl+alt+]", "Jump backward to character"),
  "tui.editor.pageUp": bind("pageUp", "Page up"),
  "tui.editor.pageDown": bind("pageDown", "Page down"),
  "tui.editor.deleteCharBackward": bind("backspace", "Delete character backward"),
  "tui.editor.deleteCharForward": bind(["delete", "ctrl+d"], "Delete character forward"),
  "tui.editor.deleteWordBackward": bind(["ctrl+w", "alt+backspace"], "Delete word backward"),
  "tui.editor.deleteWordForward": bind(["alt+d", "alt+delete"], "Delete word forward"),
  "tui.editor.deleteToLineStart": bind("ctrl+u", "Delete to line start"),
  "tui.editor.deleteToLineEnd": bind("ctrl+k", "Delete to line end"),
  "tui.editor.yank": bind("ctrl+y", "Yank"),
  "tui.editor.yankPop": bind("alt+y", "Yank pop"),
  "tui.editor.undo": bind("ctrl+-", "Undo"),
  "tui.input.newLine": bind("shift+enter", "Insert newline"),
  "tui.input.submit": bind("enter", "Submit input"),
  "tui.input.tab": bind("tab", "Tab / autocomplete"),
  "tui.input.copy": bind("ctrl+c", "Copy selection"),
  "tui.select.up": bind("up", "Move selection up"),
  "tui.select.down": bind("down", "Move selection down"),
  "tui.select.pageUp": bind("pageUp", "Selection page up"),
  "tui.select.pageDown": bind("pageDown", "Selection page down"),
  "tui.select.confirm": bind("enter", "Confirm selection"),
  "tui.select.cancel": bind(["escape", "ctrl+c"], "Cancel selection"),
};

const list = (keys) => (keys === undefined ? [] : Array.isArray(keys) ? keys : [keys]);

/** The bindings of keys to actions. */
export class KeybindingsManager {
  #definitions;
  #user;

  constructor(definitions, userBindings = {}) {
    this.#definitions = definitions;
    this.#user = userBindings;
  }

  getKeys(keybinding) {
    return list(this.#user[keybinding] ?? this.#definitions[keybinding]?.defaultKeys);
  }
  matches(data, keybinding) {
    return this.getKeys(keybinding).some((key) => matchesKey(data, key));
  }
  getDefinition(keybinding) { return this.#definitions[keybinding]; }
  setUserBindings(userBindings) { this.#user = userBindings; }
  getUserBindings() { return { ...this.#user }; }
  getResolvedBindings() {
    return Object.fromEntries(Object.keys(this.#definitions).map((name) => {
      const keys = this.getKeys(name);
      return [name, keys.length === 1 ? keys[0] : keys];
    }));
  }
  getConflicts() {
    const users = new Map();
    for (const [name, keys] of Object.entries(this.#user)) for (const key of list(keys)) users.set(key, [...(users.get(key) ?? []), name]);
    return [...users].filter(([, names]) => names.length > 1).map(([key, keybindings]) => ({ key, keybindings }));
  }
}

let current;
export const setKeybindings = (keybindings) => { current = keybindings; };
export function getKeybindings() {
  current ??= new KeybindingsManager(TUI_KEYBINDINGS);
  return current;
}
