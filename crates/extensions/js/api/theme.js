// The theme: maps names of colours to escape sequences.

import { home, now } from "pinion:api/bridge";
import { program } from "pinion:api/program";
import { lazy } from "pinion:runtime/lazy";

const CUBE = [0, 95, 135, 175, 215, 255];
const GREYS = Array.from({ length: 24 }, (_, index) => 8 + 10 * index);
const WEIGHTS = [0.299, 0.587, 0.114];
// The largest spread of a colour's channels that may be mapped to grey.
const GREY_SPREAD = 10;

function nearest(wanted, levels) {
  let best = 0;
  for (let at = 1; at < levels.length; at += 1) {
    if (Math.abs(wanted - levels[at]) < Math.abs(wanted - levels[best])) best = at;
  }
  return best;
}

function distance(left, right) {
  return WEIGHTS.reduce((sum, weight, at) => sum + weight * (left[at] - right[at]) ** 2, 0);
}

function channels(hex) {
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}

function indexed(rgb) {
  const [red, green, blue] = rgb.map((channel) => nearest(channel, CUBE));
  const brightness = Math.round(rgb.reduce((sum, channel, at) => sum + WEIGHTS[at] * channel, 0));
  const grey = nearest(brightness, GREYS);
  const toCube = distance(rgb, [CUBE[red], CUBE[green], CUBE[blue]]);
  const toGrey = distance(rgb, [GREYS[grey], GREYS[grey], GREYS[grey]]);
  const spread = Math.max(...rgb) - Math.min(...rgb);
  return spread < GREY_SPREAD && toGrey < toCube ? 232 + grey : 16 + 36 * red + 6 * green + blue;
}

function escape(colour, mode, plane) {
  if (colour === "") return `\x1b[${plane}9m`;
  if (typeof colour === "number") return `\x1b[${plane}8;5;${colour}m`;
  const rgb = channels(colour);
  return mode === "truecolor"
    ? `\x1b[${plane}8;2;${rgb.join(";")}m`
    : `\x1b[${plane}8;5;${indexed(rgb)}m`;
}

function escapes(colours, mode, plane) {
  return new Map(Object.entries(colours).map(([name, colour]) => [name, escape(colour, mode, plane)]));
}

/** A theme in the form that extensions use. Without a terminal only colours are written. */
export class Theme {
  #colours;
  #backgrounds;
  #faint;
  #mode;

  constructor(palette, mode, name) {
    this.name = name;
    this.#mode = mode;
    this.#faint = palette.faint ?? new Set();
    this.#colours = escapes(palette.colours, mode, 3);
    this.#backgrounds = escapes(palette.backgrounds, mode, 4);
  }

  fg(colour, text) {
    const end = this.#faint.has(colour) ? "\x1b[22;39m" : "\x1b[39m";
    return `${this.getFgAnsi(colour)}${text}${end}`;
  }

  bg(colour, text) {
    return `${this.getBgAnsi(colour)}${text}\x1b[49m`;
  }

  bold(text) {
    return text;
  }

  italic(text) {
    return text;
  }

  underline(text) {
    return text;
  }

  inverse(text) {
    return text;
  }

  strikethrough(text) {
    return text;
  }

  getFgAnsi(colour) {
    const found = this.#colours.get(colour);
    if (found === undefined) throw new Error(`Unknown theme color: ${colour}`);
    return this.#faint.has(colour) ? `${found}\x1b[2m` : found;
  }

  getBgAnsi(colour) {
    const found = this.#backgrounds.get(colour);
    if (found === undefined) throw new Error(`Unknown theme ${program.modern ? "" : "background "}color: ${colour}`);
    return found;
  }

  getColorMode() {
    return this.#mode;
  }

  getThinkingBorderColor(level) {
    const name = `thinking${String(level).charAt(0).toUpperCase()}${String(level).slice(1)}`;
    const colour = this.#colours.has(name) ? name : "thinkingOff";
    return (text) => this.fg(colour, text);
  }

  getBashModeBorderColor() {
    return (text) => this.fg("bashMode", text);
  }
}

let active;

/** The theme of this program. */
export function activeTheme() {
  if (!active) {
    const { name, mode } = now(home, "theme");
    const { palettes } = lazy(program.modern ? "api/palettes_modern" : "api/palettes");
    active = new Theme(palettes[name] ?? palettes.dark, mode, name);
  }
  return active;
}
