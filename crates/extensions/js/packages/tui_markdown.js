// Markdown as lines for a terminal: headings, lists, quotes, code, tables, and the styles inside a line.

import { applyBackgroundToLine, padded, visibleWidth, wrapTextWithAnsi } from "pinion:packages/tui_text";

const same = (text) => text;

/** Renders the styles inside a line. */
function inline(text, theme, plain = same) {
  const pattern = /`([^`]+)`|\*\*([^*]+)\*\*|__([^_]+)__|~~([^~]+)~~|\*([^*\s][^*]*)\*|(?<!\w)_([^_]+)_(?!\w)|\[([^\]]*)\]\(([^)\s]+)[^)]*\)/g;
  let result = "";
  let last = 0;
  for (const found of text.matchAll(pattern)) {
    if (found.index > last) result += plain(text.slice(last, found.index));
    last = found.index + found[0].length;
    const [, code, strong, strong2, struck, soft, soft2, label, url] = found;
    if (code !== undefined) result += theme.code(code);
    else if (strong ?? strong2) result += theme.bold(inline(strong ?? strong2, theme, plain));
    else if (struck !== undefined) result += theme.strikethrough(inline(struck, theme, plain));
    else if (soft ?? soft2) result += theme.italic(inline(soft ?? soft2, theme, plain));
    else {
      result += theme.link(theme.underline(label));
      if (label !== url && `mailto:${label}` !== url) result += theme.linkUrl(` (${url})`);
    }
  }
  return last < text.length ? result + plain(text.slice(last)) : result;
}

const cellsOf = (row) => row.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
const isDivider = (row) => row !== undefined && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(row) && row.includes("-");

function table(rows, theme, plain) {
  const [head, ...body] = rows.map((row) => cellsOf(row).map((cell) => inline(cell, theme, plain)));
  const bold = head.map((cell) => theme.bold(cell));
  const columns = head.map((cell, at) => Math.max(visibleWidth(cell), ...body.map((row) => visibleWidth(row[at] ?? ""))));
  const rule = (left, middle, right) => `${left}─${columns.map((width) => "─".repeat(width)).join(`─${middle}─`)}─${right}`;
  const line = (row, widths) => `│ ${columns.map((width, at) => (row[at] ?? "") + " ".repeat(Math.max(0, width - widths(at)))).join(" │ ")} │`;
  return [
    rule("┌", "┬", "┐"), line(bold, (at) => visibleWidth(head[at])), rule("├", "┼", "┤"),
    ...body.map((row) => line(row, (at) => visibleWidth(row[at] ?? ""))), rule("└", "┴", "┘"),
  ];
}

function block(source, theme, plain, width) {
  const rows = source.replace(/\r\n?/g, "\n").replaceAll("\t", "   ").split("\n");
  const lines = [];
  const paragraph = [];
  const flush = () => {
    if (paragraph.length > 0) lines.push(...wrapTextWithAnsi(inline(paragraph.splice(0).join("\n"), theme, plain), width));
  };
  for (let at = 0; at < rows.length; at += 1) {
    const row = rows[at];
    const fence = /^\s*(```+|~~~+)\s*(\S*)/.exec(row);
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(row);
    const item = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/.exec(row);
    if (fence) {
      flush();
      const code = [];
      while (++at < rows.length && !rows[at].trim().startsWith(fence[1])) code.push(rows[at]);
      const indent = theme.codeBlockIndent ?? "  ";
      const drawn = theme.highlightCode?.(code.join("\n"), fence[2] || undefined) ?? code.map((text) => theme.codeBlock(text));
      lines.push(theme.codeBlockBorder(`\`\`\`${fence[2]}`), ...drawn.map((text) => indent + text), theme.codeBlockBorder("```"));
    } else if (row.trim() === "") {
      flush();
      if (lines.length > 0 && lines.at(-1) !== "") lines.push("");
    } else if (heading) {
      flush();
      const [, marks, text] = heading;
      const styled = theme.bold(marks.length === 1 ? theme.underline(inline(text, theme)) : inline(text, theme));
      lines.push(theme.heading(marks.length > 2 ? `${marks} ${styled}` : styled));
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(row)) {
      flush();
      lines.push(theme.hr("─".repeat(Math.min(width, 80))));
    } else if (row.trimStart().startsWith(">")) {
      flush();
      const quoted = [row.replace(/^\s*>\s?/, "")];
      while (rows[at + 1]?.trimStart().startsWith(">")) quoted.push(rows[++at].replace(/^\s*>\s?/, ""));
      const inner = block(quoted.join("\n"), theme, (text) => theme.quote(theme.italic(text)), Math.max(1, width - 2));
      lines.push(...inner.map((text) => theme.quoteBorder("│ ") + text));
    } else if (item) {
      flush();
      const indent = " ".repeat(item[1].length * 2);
      const bullet = /\d/.test(item[2]) ? `${item[2]} ` : "- ";
      const wrapped = wrapTextWithAnsi(inline(item[3], theme, plain), Math.max(1, width - indent.length - bullet.length));
      wrapped.forEach((text, index) => lines.push(indent + (index === 0 ? theme.listBullet(bullet) : " ".repeat(bullet.length)) + text));
    } else if (row.includes("|") && isDivider(rows[at + 1])) {
      flush();
      const cells = [row];
      at += 1;
      while (rows[at + 1]?.includes("|")) cells.push(rows[++at]);
      lines.push(...table(cells, theme, plain));
    } else {
      paragraph.push(row);
    }
  }
  flush();
  while (lines.at(-1) === "") lines.pop();
  return lines;
}

const THEME = ["heading", "link", "linkUrl", "code", "codeBlock", "codeBlockBorder", "quote", "quoteBorder", "hr", "listBullet", "bold", "italic", "strikethrough", "underline"];
const PLAIN = Object.fromEntries(THEME.map((name) => [name, same]));

export class Markdown {
  #text; #paddingX; #paddingY; #theme; #style;
  constructor(text, paddingX = 0, paddingY = 0, theme = {}, defaultTextStyle = undefined) {
    this.#text = text; this.#paddingX = paddingX; this.#paddingY = paddingY;
    this.#theme = { ...PLAIN, ...theme }; this.#style = defaultTextStyle ?? {};
  }
  setText(text) { this.#text = text; }
  invalidate() {}
  #plain(text) {
    const style = this.#style;
    let styled = style.color ? style.color(text) : text;
    for (const name of ["bold", "italic", "strikethrough", "underline"]) if (style[name]) styled = this.#theme[name](styled);
    return styled;
  }
  render(width) {
    if (!this.#text || this.#text.trim() === "") return [];
    const room = Math.max(1, width - 2 * this.#paddingX);
    const left = " ".repeat(this.#paddingX);
    const background = this.#style.bgColor;
    const drawn = (line) => (background ? applyBackgroundToLine(line, width, background) : padded(line, width));
    const lines = block(this.#text, this.#theme, (text) => this.#plain(text), room).flatMap((line) => wrapTextWithAnsi(line, room));
    const empty = Array.from({ length: this.#paddingY }, () => drawn(""));
    return [...empty, ...lines.map((line) => drawn(left + line)), ...empty];
  }
}
