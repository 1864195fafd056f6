// A small Intl: American English, the time zone of the machine or UTC.
import { ops } from "pinion:ops";

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const two = (number) => String(number).padStart(2, "0");

class Format {
  constructor(locales, options = {}) {
    this.locale = "en-US";
    this.options = options ?? {};
  }

  resolvedOptions() {
    return { locale: this.locale, numberingSystem: "latn", calendar: "gregory", timeZone: ops.intl.timeZone(), ...this.options };
  }

  static supportedLocalesOf(locales) {
    return [].concat(locales ?? []);
  }
}

function grouped(digits) {
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

const SYMBOLS = { USD: "$", EUR: "€", GBP: "£", JPY: "¥", INR: "₹", CNY: "CN¥", KRW: "₩" };

export class NumberFormat extends Format {
  format = (value) => {
    const { style = "decimal", currency = "USD", notation = "standard", unit, useGrouping = true, signDisplay = "auto" } = this.options;
    if (typeof value === "bigint") return useGrouping ? grouped(String(value)) : String(value);
    let number = Number(value);
    if (Number.isNaN(number)) return "NaN";
    if (style === "percent") number *= 100;
    let suffix = "";
    if (notation === "compact") {
      const steps = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]];
      const step = steps.find(([size]) => Math.abs(number) >= size);
      if (step) [number, suffix] = [number / step[0], step[1]];
    }
    const money = style === "currency" ? (currency === "JPY" || currency === "KRW" ? 0 : 2) : 0;
    const least = this.options.minimumFractionDigits ?? money;
    const usual = notation === "compact" ? (Math.abs(number) < 10 ? 1 : 0) : style === "currency" ? money : style === "percent" ? 0 : 3;
    const most = Math.max(this.options.maximumFractionDigits ?? usual, least);
    let text;
    if (!Number.isFinite(number)) text = "∞";
    else if (this.options.maximumSignificantDigits) text = String(Number(Math.abs(number).toPrecision(this.options.maximumSignificantDigits)));
    else text = rounded(Math.abs(number), most);
    let [whole, fraction = ""] = text.split(".");
    fraction = fraction.replace(/0+$/, "").padEnd(least, "0");
    whole = whole.padStart(this.options.minimumIntegerDigits ?? 1, "0");
    if (useGrouping && useGrouping !== "false") whole = grouped(whole);
    let body = fraction ? `${whole}.${fraction}` : whole;
    body += suffix;
    if (style === "currency") body = `${SYMBOLS[currency] ?? `${currency}\u00a0`}${body}`;
    if (style === "percent") body += "%";
    if (style === "unit" && unit) body += ` ${unit}`;
    const negative = number < 0 || Object.is(number, -0);
    if (negative && signDisplay !== "never") return `-${body}`;
    return signDisplay === "always" || (signDisplay === "exceptZero" && number !== 0) ? `+${body}` : body;
  };

  formatToParts(value) {
    return [{ type: "literal", value: this.format(value) }];
  }
}

function rounded(number, digits) {
  if (number >= 1e21) return BigInt(number).toString();
  const fixed = number.toFixed(digits);
  // toFixed rounds the binary value; people expect the decimal one, with halves away from zero.
  const exact = String(number);
  const half = /^(\d+)\.(\d+)$/.exec(exact);
  if (half && half[2].length === digits + 1 && half[2].endsWith("5")) {
    return (Number(`${half[1]}.${half[2].slice(0, -1)}9`)).toFixed(digits);
  }
  return fixed;
}

function partsOf(date, zone) {
  const offset = zone === undefined || zone === ops.intl.timeZone() ? -date.getTimezoneOffset() : ops.intl.offset(zone, date.getTime());
  if (offset === undefined) throw new RangeError(`Invalid time zone specified: ${zone}`);
  const there = new Date(date.getTime() + offset * 60000);
  return {
    year: there.getUTCFullYear(), month: there.getUTCMonth(), day: there.getUTCDate(), weekday: there.getUTCDay(),
    hour: there.getUTCHours(), minute: there.getUTCMinutes(), second: there.getUTCSeconds(), millisecond: there.getUTCMilliseconds(), offset,
  };
}

const DATE_STYLES = {
  full: { weekday: "long", month: "long", day: "numeric", year: "numeric" },
  long: { month: "long", day: "numeric", year: "numeric" },
  medium: { month: "short", day: "numeric", year: "numeric" },
  short: { month: "numeric", day: "numeric", year: "2-digit" },
};
const TIME_STYLES = {
  full: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
  long: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
  medium: { hour: "numeric", minute: "2-digit", second: "2-digit" },
  short: { hour: "numeric", minute: "2-digit" },
};

function zoneName(zone, parts) {
  if ((zone ?? ops.intl.timeZone()) === "UTC" || parts.offset === 0) return "UTC";
  const hours = Math.trunc(Math.abs(parts.offset) / 60);
  const minutes = Math.abs(parts.offset) % 60;
  return `GMT${parts.offset < 0 ? "-" : "+"}${hours}${minutes ? `:${two(minutes)}` : ""}`;
}

function formatDate(date, options) {
  if (Number.isNaN(date.getTime())) throw new RangeError("Invalid time value");
  const { dateStyle, timeStyle } = options;
  const wanted = dateStyle || timeStyle ? { ...DATE_STYLES[dateStyle], ...TIME_STYLES[timeStyle], ...options } : options;
  const parts = partsOf(date, wanted.timeZone);
  const { weekday, year, month, day, hour, minute, second } = wanted;
  const yearText = year === "2-digit" ? two(parts.year % 100) : String(parts.year);
  const dayText = day === "2-digit" ? two(parts.day) : String(parts.day);
  const weekdayText = weekday && (weekday === "long" ? DAYS[parts.weekday] : DAYS[parts.weekday].slice(0, weekday === "narrow" ? 1 : 3));
  let dateText = "";
  if (month === "long" || month === "short" || month === "narrow") {
    const name = month === "long" ? MONTHS[parts.month] : MONTHS[parts.month].slice(0, month === "narrow" ? 1 : 3);
    dateText = day ? `${name} ${dayText}` : name;
    if (year) dateText += day ? `, ${yearText}` : ` ${yearText}`;
  } else {
    const monthText = month === "2-digit" ? two(parts.month + 1) : String(parts.month + 1);
    dateText = [month && monthText, day && dayText, year && yearText].filter(Boolean).join("/");
  }
  if (weekdayText) dateText = dateText ? `${weekdayText}, ${dateText}` : weekdayText;
  let timeText = "";
  if (hour || minute || second) {
    const military = wanted.hour12 === false || wanted.hourCycle === "h23" || wanted.hourCycle === "h24";
    const shown = military ? parts.hour : parts.hour % 12 || 12;
    const fields = [];
    if (hour) fields.push(hour === "2-digit" || military ? two(shown) : String(shown));
    if (minute) fields.push(hour || second ? two(parts.minute) : String(parts.minute));
    if (second) fields.push(minute || hour ? two(parts.second) : String(parts.second));
    timeText = fields.join(":");
    if (wanted.fractionalSecondDigits) timeText += `.${String(parts.millisecond).padStart(3, "0").slice(0, wanted.fractionalSecondDigits)}`;
    if (hour && !military) timeText += ` ${parts.hour < 12 ? "AM" : "PM"}`;
  }
  if (wanted.timeZoneName) timeText += `${timeText ? " " : ""}${zoneName(wanted.timeZone, parts)}`;
  const joint = dateStyle === "full" || dateStyle === "long" ? " at " : ", ";
  return [dateText, timeText].filter(Boolean).join(joint);
}

const DATE_FIELDS = ["weekday", "year", "month", "day", "dateStyle"];
const TIME_FIELDS = ["hour", "minute", "second", "timeStyle", "fractionalSecondDigits", "dayPeriod"];

// Adds the default fields if none is requested.
function withDefaults(options, date, time) {
  const asked = (fields) => fields.some((field) => options[field] !== undefined);
  if (asked(DATE_FIELDS) || asked(TIME_FIELDS)) return options;
  return {
    ...options,
    ...(date && { year: "numeric", month: "numeric", day: "numeric" }),
    ...(time && { hour: "numeric", minute: "2-digit", second: "2-digit" }),
  };
}

export class DateTimeFormat extends Format {
  format = (date = new Date()) => formatDate(new Date(date), withDefaults(this.options, true, false));

  formatToParts(date = new Date()) {
    const value = new Date(date);
    const options = withDefaults(this.options, true, false);
    const parts = [];
    for (const field of ["weekday", "month", "day", "year", "hour", "minute", "second", "timeZoneName"]) {
      if (options[field] === undefined) continue;
      const only = { timeZone: options.timeZone, hour12: options.hour12, hourCycle: options.hourCycle, [field]: options[field] };
      let text = formatDate(value, only);
      if (field === "hour") text = text.replace(/ [AP]M$/, "");
      if ((field === "minute" || field === "second") && options.hour) text = text.padStart(2, "0");
      if (parts.length > 0) parts.push({ type: "literal", value: ["minute", "second"].includes(field) ? ":" : ["month", "day", "year"].includes(field) ? "/" : ", " });
      parts.push({ type: field, value: text });
    }
    return parts;
  }

  formatRange(start, end) {
    return `${this.format(start)} – ${this.format(end)}`;
  }
}

const fold = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

function weigh(one, other, numeric) {
  if (!numeric) return one < other ? -1 : one > other ? 1 : 0;
  const pieces = /(\d+)|(\D+)/g;
  const left = one.match(pieces) ?? [];
  const right = other.match(pieces) ?? [];
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const bothNumbers = /^\d/.test(left[at]) && /^\d/.test(right[at]);
    const result = bothNumbers ? Number(left[at]) - Number(right[at]) : weigh(left[at], right[at], false);
    if (result !== 0) return result < 0 ? -1 : 1;
  }
  return Math.sign(left.length - right.length);
}

// Punctuation before digits before letters, as in dictionaries.
function key(text) {
  return Array.from(fold(text), (character) => (/\p{L}/u.test(character) ? "2" : /\p{N}/u.test(character) ? "1" : "0") + character).join("");
}

function compare(one, other, { sensitivity = "variant", numeric = false } = {}) {
  const base = numeric ? weigh(fold(one), fold(other), true) : weigh(key(one), key(other), false);
  if (base !== 0 || sensitivity === "base") return base;
  const accents = (text) => text.normalize("NFD").toLowerCase();
  if (sensitivity !== "case") {
    const byAccent = weigh(accents(one), accents(other), false);
    if (byAccent !== 0 || sensitivity === "accent") return byAccent;
  }
  // Lower case first.
  return weigh(other.normalize("NFC"), one.normalize("NFC"), false);
}

export class Collator extends Format {
  compare = (one, other) => compare(String(one), String(other), this.options);
}

export class Segmenter extends Format {
  segment(text) {
    const input = String(text);
    const granularity = this.options.granularity ?? "grapheme";
    const pieces = ops.intl.segments(input.toWellFormed(), granularity);
    const segments = [];
    let index = 0;
    for (const segment of pieces) {
      const piece = { segment, index, input };
      if (granularity === "word") piece.isWordLike = /[\p{L}\p{N}]/u.test(segment);
      segments.push(piece);
      index += segment.length;
    }
    return {
      [Symbol.iterator]: () => segments[Symbol.iterator](),
      containing: (at = 0) => segments.find((piece) => at >= piece.index && at < piece.index + piece.segment.length),
    };
  }
}

const RELATIVE = { "-1": { day: "yesterday", year: "last year", month: "last month", week: "last week" }, 0: { day: "today", year: "this year", month: "this month", week: "this week", second: "now", minute: "this minute", hour: "this hour" }, 1: { day: "tomorrow", year: "next year", month: "next month", week: "next week" } };

export class RelativeTimeFormat extends Format {
  format(value, unit) {
    const singular = String(unit).replace(/s$/, "");
    if (this.options.numeric === "auto" && RELATIVE[value]?.[singular]) return RELATIVE[value][singular];
    const amount = new NumberFormat().format(Math.abs(value));
    const words = `${amount} ${singular}${Math.abs(value) === 1 ? "" : "s"}`;
    return value < 0 || Object.is(value, -0) ? `${words} ago` : `in ${words}`;
  }
}

export class PluralRules extends Format {
  select(number) {
    if (this.options.type !== "ordinal") return Number(number) === 1 ? "one" : "other";
    const [unit, teen] = [number % 10, number % 100];
    if (unit === 1 && teen !== 11) return "one";
    if (unit === 2 && teen !== 12) return "two";
    return unit === 3 && teen !== 13 ? "few" : "other";
  }
}

export class ListFormat extends Format {
  format(list) {
    const items = [...list];
    const word = this.options.type === "disjunction" ? "or" : "and";
    if (items.length < 3) return items.join(` ${word} `);
    return `${items.slice(0, -1).join(", ")}, ${word} ${items.at(-1)}`;
  }
}

export const Intl = {
  NumberFormat, DateTimeFormat, Collator, Segmenter, RelativeTimeFormat, PluralRules, ListFormat,
  getCanonicalLocales: (locales) => [].concat(locales ?? []),
  supportedValuesOf: () => [],
};

// Intl classes may be called without `new`.
for (const name of ["NumberFormat", "DateTimeFormat", "Collator"]) {
  Intl[name] = new Proxy(Intl[name], { apply: (Target, self, args) => new Target(...args) });
}

export const numberToLocale = (value, locales, options) => new NumberFormat(locales, options).format(value.valueOf());
const dateText = (date, options, day, time) => (Number.isNaN(date.getTime()) ? "Invalid Date" : formatDate(date, withDefaults(options ?? {}, day, time)));
export const dateToLocale = (date, locales, options) => dateText(date, options, true, true);
export const dateToLocaleDate = (date, locales, options) => dateText(date, dateOnly(options), true, false);
export const dateToLocaleTime = (date, locales, options) => dateText(date, timeOnly(options), false, true);
export const compareLocale = (text, other, locales, options) => compare(String(text), String(other), options);

function dateOnly(options = {}) {
  const asked = DATE_FIELDS.some((field) => options[field] !== undefined);
  return asked ? options : { ...options, year: "numeric", month: "numeric", day: "numeric" };
}

function timeOnly(options = {}) {
  const asked = TIME_FIELDS.some((field) => options[field] !== undefined);
  return asked ? options : { ...options, hour: "numeric", minute: "2-digit", second: "2-digit" };
}
