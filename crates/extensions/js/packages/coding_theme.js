// Colours for lists, Markdown and code, from the theme of the program.

import { lazy } from "pinion:runtime/lazy";
import { getKeybindings } from "pinion:packages/tui_keys";

// Looked up on use: the theme belongs to the session, and not every script has one.
const active = () => lazy("api/theme").activeTheme();
const plain = { fg: (_colour, text) => text, bg: (_colour, text) => text, bold: (text) => text, italic: (text) => text, underline: (text) => text, strikethrough: (text) => text };
function theme() {
  try { return active(); } catch { return plain; }
}

const escape = (value, mode, plane) => {
  if (value === "" || value === undefined) return `\x1b[${plane}9m`;
  if (typeof value === "number") return `\x1b[${plane}8;5;${value}m`;
  const channels = [1, 3, 5].map((at) => Number.parseInt(value.slice(at, at + 2), 16));
  if (mode === "truecolor") return `\x1b[${plane}8;2;${channels.join(";")}m`;
  const [red, green, blue] = channels.map((channel) => Math.round((channel / 255) * 5));
  return `\x1b[${plane}8;5;${16 + 36 * red + 6 * green + blue}m`;
};

/** A theme that an extension creates from its own colours. */
export class Theme {
  #fg; #bg; #mode;
  constructor(fgColors, bgColors, mode, options = {}) {
    const map = (colours, plane) => new Map(Object.entries(colours).map(([name, value]) => [name, escape(value, mode, plane)]));
    this.#fg = map(fgColors, 3); this.#bg = map(bgColors, 4); this.#mode = mode;
    this.name = options.name; this.sourcePath = options.sourcePath; this.sourceInfo = options.sourceInfo;
  }
  getFgAnsi(colour) {
    const found = this.#fg.get(colour);
    if (found === undefined) throw new Error(`Unknown theme color: ${colour}`);
    return found;
  }
  getBgAnsi(colour) {
    const found = this.#bg.get(colour);
    if (found === undefined) throw new Error(`Unknown theme background color: ${colour}`);
    return found;
  }
  fg(colour, text) { return `${this.getFgAnsi(colour)}${text}\x1b[39m`; }
  bg(colour, text) { return `${this.getBgAnsi(colour)}${text}\x1b[49m`; }
  bold(text) { return text; }
  italic(text) { return text; }
  underline(text) { return text; }
  inverse(text) { return text; }
  strikethrough(text) { return text; }
  getColorMode() { return this.#mode; }
  getThinkingBorderColor(level) { return (text) => this.fg(`thinking${level[0].toUpperCase()}${level.slice(1)}`, text); }
  getBashModeBorderColor() { return (text) => this.fg("bashMode", text); }
}

/** Does nothing, because the program chooses the theme. */
export function initTheme() {}

const colour = (name) => (text) => theme().fg(name, text);

export const getMarkdownTheme = () => ({
  heading: colour("mdHeading"), link: colour("mdLink"), linkUrl: colour("mdLinkUrl"), code: colour("mdCode"),
  codeBlock: colour("mdCodeBlock"), codeBlockBorder: colour("mdCodeBlockBorder"), quote: colour("mdQuote"),
  quoteBorder: colour("mdQuoteBorder"), hr: colour("mdHr"), listBullet: colour("mdListBullet"),
  bold: (text) => theme().bold(text), italic: (text) => theme().italic(text), underline: (text) => theme().underline(text),
  strikethrough: (text) => theme().strikethrough(text), highlightCode: (code, language) => highlightCode(code, language),
});
export const getSelectListTheme = () => ({
  selectedPrefix: colour("accent"), selectedText: colour("accent"), description: colour("muted"), scrollInfo: colour("muted"), noMatch: colour("muted"),
});
export const getSettingsListTheme = () => ({
  label: (text, selected) => (selected ? theme().fg("accent", text) : text),
  value: (text, selected) => theme().fg(selected ? "accent" : "muted", text),
  description: colour("dim"), cursor: theme().fg("accent", "→ "), hint: colour("dim"),
});

const KEYWORDS = /^(?:abstract|as|async|await|break|case|catch|class|const|continue|def|default|delete|do|elif|else|end|enum|export|extends|false|finally|fn|for|from|func|function|if|impl|implements|import|in|instanceof|interface|let|loop|match|mod|mut|new|nil|None|null|of|package|pass|private|pub|public|return|self|static|struct|super|switch|this|throw|trait|true|True|False|try|type|typeof|undefined|use|var|void|where|while|with|yield)$/;
const TOKENS = /(\/\/.*|#(?![!\w]*\[).*|--\s.*)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/g;

/** Highlights comments, strings, numbers and keywords of code. */
export function highlightCode(code, language) {
  if (!language) return code.split("\n").map((line) => theme().fg("mdCodeBlock", line));
  return code.split("\n").map((line) => line.replace(TOKENS, (token, comment, text, number, word) => {
    if (comment) return theme().fg("syntaxComment", token);
    if (text) return theme().fg("syntaxString", token);
    if (number) return theme().fg("syntaxNumber", token);
    return KEYWORDS.test(word) ? theme().fg("syntaxKeyword", token) : token;
  }));
}

const LANGUAGES = {
  ts: "typescript", tsx: "typescript", mts: "typescript", cts: "typescript", js: "javascript", jsx: "javascript", mjs: "javascript",
  cjs: "javascript", py: "python", rb: "ruby", rs: "rust", go: "go", java: "java", kt: "kotlin", swift: "swift", c: "c", h: "c",
  cpp: "cpp", cc: "cpp", cxx: "cpp", hpp: "cpp", cs: "csharp", php: "php", sh: "bash", bash: "bash", zsh: "bash", fish: "fish",
  ps1: "powershell", sql: "sql", html: "html", htm: "html", css: "css", scss: "scss", sass: "sass", less: "less", json: "json",
  yaml: "yaml", yml: "yaml", toml: "toml", xml: "xml", md: "markdown", markdown: "markdown", dockerfile: "dockerfile",
  makefile: "makefile", cmake: "cmake", lua: "lua", perl: "perl", pl: "perl", r: "r", scala: "scala", clj: "clojure", ex: "elixir",
  exs: "elixir", erl: "erlang", hs: "haskell", ml: "ocaml", vim: "vim", graphql: "graphql", proto: "protobuf", tf: "hcl", hcl: "hcl",
};
export const getLanguageFromPath = (path) => LANGUAGES[path.split("/").at(-1).split(".").at(-1).toLowerCase()];

export const keyText = (keybinding) => getKeybindings().getKeys(keybinding).join("/");
export const rawKeyHint = (key, description) => theme().fg("dim", key) + theme().fg("muted", ` ${description}`);
export const keyHint = (keybinding, description) => rawKeyHint(keyText(keybinding), description);

export function renderDiff(diff) {
  const colours = { "+": "toolDiffAdded", "-": "toolDiffRemoved" };
  return diff.split("\n").map((line) => theme().fg(colours[line[0]] ?? "toolDiffContext", line)).join("\n");
}
