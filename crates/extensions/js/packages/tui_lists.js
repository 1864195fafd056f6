// Lists to choose from.

import { truncateToWidth, visibleWidth } from "pinion:packages/tui_text";
import { getKeybindings } from "pinion:packages/tui_keys";
import { fuzzyFilter } from "pinion:packages/tui_fuzzy";

const GAP = 2;
const NARROW = 40;
const PRIMARY_COLUMN = 32;

const oneLine = (text) => text.replace(/[\r\n]+/g, " ").trim();

/** Returns the rows to show, which include the selected one. */
function window_(selected, visible, total) {
  const start = Math.max(0, Math.min(selected - Math.floor(visible / 2), total - visible));
  return [start, Math.min(start + visible, total)];
}

export class SelectList {
  onSelect; onCancel; onSelectionChange;
  #items; #shown; #maxVisible; #theme; #layout; #selected = 0;

  constructor(items, maxVisible, theme, layout = {}) {
    this.#items = items; this.#shown = items; this.#maxVisible = maxVisible; this.#theme = theme; this.#layout = layout;
  }
  setFilter(filter) {
    this.#shown = this.#items.filter(({ value }) => value.toLowerCase().startsWith(filter.toLowerCase()));
    this.#selected = 0;
  }
  setSelectedIndex(index) { this.#selected = Math.max(0, Math.min(index, this.#shown.length - 1)); }
  getSelectedItem() { return this.#shown[this.#selected] ?? null; }
  invalidate() {}

  render(width) {
    if (this.#shown.length === 0) return [this.#theme.noMatch("  No matching commands")];
    const [start, end] = window_(this.#selected, this.#maxVisible, this.#shown.length);
    const lines = [];
    for (let at = start; at < end; at += 1) lines.push(this.#row(this.#shown[at], at === this.#selected, width));
    if (start > 0 || end < this.#shown.length) {
      lines.push(this.#theme.scrollInfo(truncateToWidth(`  (${this.#selected + 1}/${this.#shown.length})`, width - 2, "")));
    }
    return lines;
  }

  #row(item, isSelected, width) {
    const prefix = isSelected ? "→ " : "  ";
    const text = item.label || item.value;
    const description = item.description ? oneLine(item.description) : "";
    const cut = (maxWidth, columnWidth) => this.#layout.truncatePrimary?.({ text, maxWidth, columnWidth, item, isSelected }) ?? truncateToWidth(text, maxWidth, "");
    const { minPrimaryColumnWidth, maxPrimaryColumnWidth } = this.#layout;
    const widest = Math.max(...this.#items.map(({ label, value }) => visibleWidth(label || value) + GAP));
    const column = Math.min(maxPrimaryColumnWidth ?? PRIMARY_COLUMN, Math.max(minPrimaryColumnWidth ?? PRIMARY_COLUMN, widest));
    if (description && width > NARROW) {
      const shown = cut(Math.min(column, width - visibleWidth(prefix) - 4) - GAP, column);
      const rest = width - visibleWidth(prefix) - column - GAP;
      if (rest > 10) {
        const gap = " ".repeat(Math.max(1, column - visibleWidth(shown)));
        const told = truncateToWidth(description, rest, "");
        return isSelected ? this.#theme.selectedText(`${prefix}${shown}${gap}${told}`) : prefix + shown + this.#theme.description(gap + told);
      }
    }
    const shown = cut(width - visibleWidth(prefix) - GAP, width);
    return isSelected ? this.#theme.selectedText(prefix + shown) : prefix + shown;
  }

  #move(to) {
    this.#selected = to;
    const item = this.getSelectedItem();
    if (item) this.onSelectionChange?.(item);
  }

  handleInput(data) {
    const keys = getKeybindings();
    const last = this.#shown.length - 1;
    if (keys.matches(data, "tui.select.up")) this.#move(this.#selected === 0 ? last : this.#selected - 1);
    else if (keys.matches(data, "tui.select.down")) this.#move(this.#selected === last ? 0 : this.#selected + 1);
    else if (keys.matches(data, "tui.select.confirm")) { const item = this.getSelectedItem(); if (item) this.onSelect?.(item); }
    else if (keys.matches(data, "tui.select.cancel")) this.onCancel?.();
  }
}

export class SettingsList {
  #items; #maxVisible; #theme; #onChange; #onCancel; #search; #query = ""; #selected = 0; #submenu;

  constructor(items, maxVisible, theme, onChange, onCancel, options = {}) {
    this.#items = items; this.#maxVisible = maxVisible; this.#theme = theme;
    this.#onChange = onChange; this.#onCancel = onCancel; this.#search = options.enableSearch ?? false;
  }
  updateValue(id, newValue) {
    const item = this.#items.find((candidate) => candidate.id === id);
    if (item) item.currentValue = newValue;
  }
  invalidate() { this.#submenu?.invalidate?.(); }
  get #shown() { return this.#search ? fuzzyFilter(this.#items, this.#query, ({ label }) => label) : this.#items; }

  render(width) {
    if (this.#submenu) return this.#submenu.render(width);
    const theme = this.#theme;
    const lines = this.#search ? [theme.hint(`  > ${this.#query}`), ""] : [];
    const shown = this.#shown;
    if (shown.length === 0) return [...lines, theme.hint(this.#search ? "  No matching settings" : "  No settings available")];
    const [start, end] = window_(this.#selected, this.#maxVisible, shown.length);
    const column = Math.min(30, Math.max(...this.#items.map(({ label }) => visibleWidth(label))));
    for (let at = start; at < end; at += 1) {
      const selected = at === this.#selected;
      const { label, currentValue } = shown[at];
      const prefix = selected ? theme.cursor : "  ";
      const name = theme.label(label + " ".repeat(Math.max(0, column - visibleWidth(label))), selected);
      const room = width - visibleWidth(prefix) - column - GAP * 2;
      lines.push(`${prefix}${name}  ${theme.value(truncateToWidth(currentValue, Math.max(1, room), ""), selected)}`);
    }
    if (start > 0 || end < shown.length) lines.push(theme.hint(`  (${this.#selected + 1}/${shown.length})`));
    const { description } = shown[this.#selected] ?? {};
    if (description) lines.push("", theme.description(`  ${description}`));
    lines.push("", theme.hint(`  ${this.#search ? "Type to search · " : ""}Enter/Space to change · Esc to cancel`));
    return lines;
  }

  handleInput(data) {
    if (this.#submenu) { this.#submenu.handleInput?.(data); return; }
    const keys = getKeybindings();
    const count = this.#shown.length;
    if (keys.matches(data, "tui.select.up") && count > 0) this.#selected = (this.#selected + count - 1) % count;
    else if (keys.matches(data, "tui.select.down") && count > 0) this.#selected = (this.#selected + 1) % count;
    else if (keys.matches(data, "tui.select.confirm") || data === " ") this.#activate();
    else if (keys.matches(data, "tui.select.cancel")) this.#onCancel();
    else if (this.#search) {
      if (keys.matches(data, "tui.editor.deleteCharBackward")) this.#query = this.#query.slice(0, -1);
      else if (/^[^\x00-\x1f\x7f]+$/.test(data)) this.#query += data;
      this.#selected = 0;
    }
  }

  #activate() {
    const item = this.#shown[this.#selected];
    if (!item) return;
    if (item.submenu) {
      this.#submenu = item.submenu(item.currentValue, (chosen) => { this.#submenu = undefined; if (chosen !== undefined) this.#change(item, chosen); });
    } else if (item.values?.length > 0) {
      this.#change(item, item.values[(item.values.indexOf(item.currentValue) + 1) % item.values.length]);
    }
  }
  #change(item, value) {
    item.currentValue = value;
    this.#onChange(item.id, value);
  }
}
