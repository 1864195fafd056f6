// Numbers, times and sizes as people read them.

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const STEPS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30], ["month", 12], ["year", Infinity]];

/** `3 minutes ago`, `in 2 days`. */
export function ago(milliseconds, now = Date.now()) {
  let amount = (milliseconds - now) / 1000;
  for (const [unit, size] of STEPS) {
    if (Math.abs(amount) < size) return relative.format(Math.round(amount), unit);
    amount /= size;
  }
  return "";
}

/** `1 h 12 min`: how long something has lasted. */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  if (minutes) return `${minutes} min ${seconds % 60} s`;
  return `${seconds} s`;
}

/** `1.24 s`, `340 ms`: how long a call took. */
export function elapsed(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return span(milliseconds);
}

export function size(bytes) {
  const count = Number(bytes ?? 0);
  if (count < 1024) return `${count} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let amount = count / 1024;
  let unit = 0;
  while (amount >= 1024 && unit < units.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return `${amount.toFixed(amount < 10 ? 1 : 0)} ${units[unit]}`;
}

export const number = (value) => Number(value).toLocaleString("en");
export const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

const pad = (value, width = 2) => String(value).padStart(width, "0");

/** The local time of day with milliseconds, as in a log. */
export function clock(milliseconds) {
  const time = new Date(milliseconds);
  return `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}.${pad(time.getMilliseconds(), 3)}`;
}

/** The local date and time to the minute. */
export function moment(milliseconds) {
  const time = new Date(milliseconds);
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())} ${pad(time.getHours())}:${pad(time.getMinutes())}`;
}

const STATUS = {
  CLIP_STATUS_RUNNING: ["running", "Running"],
  CLIP_STATUS_SLEEPING: ["sleeping", "Sleeping"],
  CLIP_STATUS_ERROR: ["failed", "Error"],
};

/** A clip's status as a class and a word. */
export const statusOf = (clip) => STATUS[clip?.status] ?? ["unknown", "Unknown"];
