// The theme: maps names of colours to escape sequences.

import { home, now } from "pinion:api/bridge";
import { palettes } from "pinion:api/palettes";

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

function escape(hex, mode, plane) {
  if (hex === "") return `\x1b[${plane}9m`;
  const rgb = channels(hex);
  return mode === "truecolor"
    ? `\x1b[${plane}8;2;${rgb.join(";")}m`
    : `\x1b[${plane}8;5;${indexed(rgb)}m`;
}

function escapes(colours, mode, plane) {
  return new Map(Object.entries(colours).map(([name, hex]) => [name, escape(hex, mode, plane)]));
}

/** A theme in the form that extensions use. Without a terminal only colours are written. */
export class Theme {
  #colours;
  #backgrounds;
  #mode;

  constructor(palette, mode, name) {
    this.name = name;
    this.#mode = mode;
    this.#colours = escapes(palette.colours, mode, 3);
    this.#backgrounds = escapes(palette.backgrounds, mode, 4);
  }

  fg(colour, text) {
    return `${this.getFgAnsi(colour)}${text}\x1b[39m`;
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
    return found;
  }

  getBgAnsi(colour) {
    const found = this.#backgrounds.get(colour);
    if (found === undefined) throw new Error(`Unknown theme background color: ${colour}`);
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
    active = new Theme(palettes[name] ?? palettes.dark, mode, name);
  }
  return active;
}
