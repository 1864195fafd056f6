// util.inspect: values as text for people.

export const custom = Symbol.for("nodejs.util.inspect.custom");

const COLORS = { string: 32, number: 33, bigint: 33, boolean: 33, symbol: 32, undefined: 90, null: 1, special: 36, date: 35, regexp: 31 };
const PLAIN_KEY = /^[A-Za-z_$][\w$]*$/;

const quote = (text) => {
	const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes("`") && !text.includes("${") ? "`" : "'";
	const escaped = text.replace(/[\\\n\r\t\b\f\v\0-\x1f\x7f]/g, (c) => ({ "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\v": "\\v" })[c] ?? `\\x${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
	return mark + escaped.replaceAll(mark, `\\${mark}`) + mark;
};

export const defaultOptions = { showHidden: false, depth: 2, colors: false, customInspect: true, showProxy: false, maxArrayLength: 100, maxStringLength: 10000, breakLength: 128, compact: 3, sorted: false, getters: false, numericSeparator: false };

export function inspect(value, options, ...legacy) {
	const settings = { ...defaultOptions, breakLength: 80 };
	if (typeof options === "boolean") Object.assign(settings, { showHidden: options, depth: legacy[0] === undefined ? 2 : legacy[0], colors: legacy[1] ?? false });
	else Object.assign(settings, options);
	if (settings.depth === null || settings.depth === undefined) settings.depth = Number.POSITIVE_INFINITY;
	if (settings.maxArrayLength === null) settings.maxArrayLength = Number.POSITIVE_INFINITY;
	if (settings.maxStringLength === null) settings.maxStringLength = Number.POSITIVE_INFINITY;
	const paint = settings.colors ? (text, kind) => `\x1b[${COLORS[kind]}m${text}\x1b[${kind === "null" ? 22 : 39}m` : (text) => text;
	return show(value, { settings, paint, seen: [], circular: new Map(), indent: 0 }, 0);
}
inspect.custom = custom;
inspect.defaultOptions = defaultOptions;
inspect.colors = { bold: [1, 22], italic: [3, 23], underline: [4, 24], inverse: [7, 27], white: [37, 39], grey: [90, 39], gray: [90, 39], black: [30, 39], blue: [34, 39], cyan: [36, 39], green: [32, 39], magenta: [35, 39], red: [31, 39], yellow: [33, 39] };
inspect.styles = {};

export function primitive(value, paint, settings) {
	switch (typeof value) {
		case "string": {
			const most = settings?.maxStringLength ?? Number.POSITIVE_INFINITY;
			if (value.length > most) return `${paint(quote(value.slice(0, most)), "string")}... ${value.length - most} more character${value.length - most > 1 ? "s" : ""}`;
			return paint(quote(value), "string");
		}
		case "number":
			return paint(Object.is(value, -0) ? "-0" : String(value), "number");
		case "bigint":
			return paint(`${value}n`, "bigint");
		case "symbol":
			return paint(value.toString(), "symbol");
		default:
			return paint(String(value), value === null ? "null" : typeof value);
	}
}

function show(value, state, level) {
	if (value === null || (typeof value !== "object" && typeof value !== "function")) return primitive(value, state.paint, state.settings);
	const { settings } = state;
	if (settings.customInspect) {
		const hook = value[custom];
		if (typeof hook === "function" && hook !== inspect) {
			const shown = hook.call(value, settings.depth - level, { ...settings, stylize: state.paint }, inspect);
			if (shown !== value) return typeof shown === "string" ? shown.replaceAll("\n", `\n${" ".repeat(state.indent)}`) : show(shown, state, level);
		}
	}
	if (state.seen.includes(value)) {
		if (!state.circular.has(value)) state.circular.set(value, state.circular.size + 1);
		return state.paint(`[Circular *${state.circular.get(value)}]`, "special");
	}
	return composite(value, state, level);
}

const className = (value) => {
	for (let at = value; at !== null && at !== undefined; at = Object.getPrototypeOf(at)) {
		const made = Object.getOwnPropertyDescriptor(at, "constructor")?.value;
		if (typeof made === "function" && made.name !== "") return made.name;
	}
	return null;
};

function prefixOf(value, fallback, size) {
	const name = className(value);
	const tag = value[Symbol.toStringTag];
	const shown = name === null ? `[${fallback}: null prototype]` : name;
	const sized = size === undefined ? shown : `${shown}(${size})`;
	return `${sized}${typeof tag === "string" && tag !== "" && tag !== name ? ` [${tag}]` : ""} `;
}

function describeFunction(value) {
	const source = Function.prototype.toString.call(value);
	if (source.startsWith("class")) {
		const parent = Object.getPrototypeOf(value)?.name;
		return `[class ${value.name === "" ? "(anonymous)" : value.name}${parent ? ` extends ${parent}` : ""}]`;
	}
	const kind = Object.prototype.toString.call(value).slice(8, -1);
	return `[${kind}${value.name === "" ? " (anonymous)" : `: ${value.name}`}]`;
}

export function describeError(error) {
	const name = error.name ?? "Error";
	const head = error.message ? `${name}: ${error.message}` : String(name);
	const stack = typeof error.stack === "string" ? error.stack : "";
	if (stack === "") return `[${head}]`;
	// The engine's stack does not start with the message.
	return stack.startsWith(name) || stack.includes(head) ? stack.trimEnd() : `${head}\n${stack.trimEnd()}`;
}

function composite(value, state, level) {
	const { settings, paint } = state;
	let keys = Object.keys(value);
	if (settings.showHidden) keys = Object.getOwnPropertyNames(value);
	keys.push(...Object.getOwnPropertySymbols(value).filter((key) => settings.showHidden || Object.prototype.propertyIsEnumerable.call(value, key)));
	let open = "{";
	let close = "}";
	let prefix = "";
	let base = "";
	let entries = () => [];
	let list = false;
	if (Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) {
		list = true;
		const name = className(value);
		prefix = name === "Array" ? "" : prefixOf(value, "Array", value.length);
		[open, close] = ["[", "]"];
		keys = keys.filter((key) => typeof key === "symbol" || !/^\d+$/.test(key));
		entries = (inner) => items(value, inner, level, settings);
	} else if (value instanceof Set) {
		prefix = prefixOf(value, "Set", value.size);
		entries = (inner) => Array.from(value, (item) => show(item, inner, level + 1));
	} else if (value instanceof Map) {
		prefix = prefixOf(value, "Map", value.size);
		entries = (inner) => Array.from(value, ([key, item]) => `${show(key, inner, level + 1)} => ${show(item, inner, level + 1)}`);
	} else if (typeof value === "function") base = paint(describeFunction(value), "special");
	else if (value instanceof RegExp) base = paint(String(value), "regexp");
	else if (value instanceof Date) base = paint(Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString(), "date");
	else if (value instanceof Error) {
		base = describeError(value);
		keys = keys.filter((key) => key !== "stack" && key !== "message" && !(key === "name" && base.includes(String(value.name))));
		if (Object.hasOwn(value, "cause") && !keys.includes("cause")) keys.push("cause");
		if (Array.isArray(value.errors) && !keys.includes("errors")) keys.push("errors");
	} else if (value instanceof Promise) {
		prefix = "Promise ";
		entries = () => [paint("<pending>", "special")];
	} else if (value instanceof WeakMap || value instanceof WeakSet) {
		prefix = `${className(value)} `;
		entries = () => [paint("<items unknown>", "special")];
	} else if (value instanceof ArrayBuffer) {
		prefix = "ArrayBuffer ";
		const bytes = new Uint8Array(value);
		const shown = Array.from(bytes.subarray(0, 50), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
		entries = () => [`[Uint8Contents]: <${shown}>`, `byteLength: ${paint(String(bytes.length), "number")}`];
	} else if (value instanceof String || value instanceof Number || value instanceof Boolean) {
		base = `[${className(value)}: ${primitive(value.valueOf(), (text) => text)}]`;
		if (value instanceof String) keys = keys.filter((key) => typeof key === "symbol" || !/^\d+$/.test(key));
	} else {
		const name = className(value);
		if (name !== "Object") prefix = prefixOf(value, "Object");
		else if (typeof value[Symbol.toStringTag] === "string" && value[Symbol.toStringTag] !== "") prefix = `Object [${value[Symbol.toStringTag]}] `;
	}
	if (level > settings.depth && base === "") {
		const name = className(value);
		return paint(Array.isArray(value) ? "[Array]" : `[${name ?? "Object: null prototype"}]`, "special");
	}
	state.seen.push(value);
	const inner = { ...state, indent: state.indent + 2 };
	const parts = entries(inner);
	if (settings.sorted) keys.sort(settings.sorted === true ? undefined : settings.sorted);
	for (const key of keys) parts.push(property(value, key, inner, level, list));
	state.seen.pop();
	const reference = state.circular.has(value) ? paint(`<ref *${state.circular.get(value)}> `, "special") : "";
	if (base !== "") {
		if (parts.length === 0) return reference + base;
		return `${reference}${arrange(parts, `${base} {`, "}", state)}`;
	}
	if (parts.length === 0) return `${reference}${prefix}${open}${close}`;
	return `${reference}${arrange(list && keys.length === 0 ? grouped(parts, value, state) : parts, `${prefix}${open}`, close, state, list)}`;
}

function items(value, inner, level, settings) {
	const shown = [];
	const most = Math.min(value.length, settings.maxArrayLength);
	let holes = 0;
	const flush = () => {
		if (holes > 0) shown.push(inner.paint(`<${holes} empty item${holes > 1 ? "s" : ""}>`, "undefined"));
		holes = 0;
	};
	for (let i = 0; i < most; i++) {
		if (!(i in value)) {
			holes++;
			continue;
		}
		flush();
		shown.push(show(value[i], inner, level + 1));
	}
	flush();
	if (value.length > most) shown.push(`... ${value.length - most} more item${value.length - most > 1 ? "s" : ""}`);
	return shown;
}

function property(value, key, state, level, list) {
	const found = Object.getOwnPropertyDescriptor(value, key) ?? { value: value[key], enumerable: true };
	let shown;
	if (found.get) shown = state.paint(found.set ? "[Getter/Setter]" : "[Getter]", "special");
	else if (found.set) shown = state.paint("[Setter]", "special");
	else shown = show(found.value, state, level + 1);
	let name;
	if (typeof key === "symbol") name = `[${state.paint(key.toString(), "symbol")}]`;
	else if (!found.enumerable) name = `[${key}]`;
	else name = PLAIN_KEY.test(key) || (list && /^\d+$/.test(key)) ? key : state.paint(quote(key), "string");
	return `${name}: ${shown}`;
}

const width = (text) => text.replace(/\x1b\[[0-9;]*m/g, "").length;

/** Arranges long lists of short items in columns. */
function grouped(parts, value, state) {
	const more = value.length > state.settings.maxArrayLength ? parts.pop() : undefined;
	const lengths = parts.map((part) => width(part) + 2);
	const longest = Math.max(0, ...lengths);
	const total = lengths.reduce((sum, length) => sum + length, 0);
	let rows = parts;
	if (parts.length > 6 && state.settings.compact >= 1 && longest * 3 + state.indent < state.settings.breakLength && (total / longest > 5 || longest <= 8)) {
		const bias = Math.sqrt(longest - total / parts.length);
		const columns = Math.min(Math.round(Math.sqrt(2.5 * Math.max(bias, 1) * parts.length) / Math.max(bias, 1)), Math.floor((state.settings.breakLength - state.indent) / longest), state.settings.compact * 4, 15);
		if (columns > 1) {
			rows = [];
			const widths = Array.from({ length: columns }, (_, column) => Math.max(...lengths.filter((_, i) => i % columns === column)));
			const numbers = Array.prototype.every.call(value, (item) => typeof item === "number" || typeof item === "bigint");
			for (let i = 0; i < parts.length; i += columns) {
				const row = parts.slice(i, i + columns);
				rows.push(row.map((part, j) => {
					const last = i + j === parts.length - 1 || j === row.length - 1;
					const comma = last ? part : `${part}, `;
					if (numbers) return " ".repeat(Math.max(0, widths[j] - 2 - width(part))) + comma;
					return last ? comma : comma + " ".repeat(Math.max(0, widths[j] - lengths[i + j]));
				}).join(""));
			}
		}
	}
	if (more !== undefined) rows.push(more);
	if (rows.length < parts.length) rows.columns = true;
	return rows;
}

function arrange(parts, open, close, state, list) {
	const { compact, breakLength } = state.settings;
	const one = parts.join(", ");
	const entries = parts.length;
	if (compact !== false && !parts.columns) {
		const deepest = compact === true ? true : nested(parts) < compact;
		const start = entries + state.indent + open.length + 10;
		if (deepest && !one.includes("\n") && one.length + entries + start <= breakLength + (list ? 0 : 0) && width(one) + open.length + state.indent < breakLength) return `${open} ${one} ${close}`;
	}
	const pad = `\n${" ".repeat(state.indent + 2)}`;
	return `${open}${pad}${parts.join(`,${pad}`)}\n${" ".repeat(state.indent)}${close}`;
}

/** Returns the depth of the nesting of braces. */
function nested(parts) {
	let most = 0;
	for (const part of parts) {
		let depth = 0;
		for (const c of part.replace(/'(?:[^'\\]|\\.)*'/g, "")) {
			if (c === "{" || c === "[") most = Math.max(most, ++depth);
			else if (c === "}" || c === "]") depth--;
		}
	}
	return most;
}

const numeric = (value) => (typeof value === "bigint" ? `${value}n` : typeof value === "symbol" ? "NaN" : undefined);

export function formatWithOptions(options, ...args) {
	let text = "";
	let rest = args;
	if (typeof args[0] === "string") {
		rest = args.slice(1);
		text = args[0].replace(/%[sdifjoOc%]/g, (mark) => {
			if (mark === "%%") return rest.length === args.length - 1 && args.length === 1 ? "%%" : "%";
			if (rest.length === 0) return mark;
			const value = rest[0];
			rest = rest.slice(1);
			switch (mark) {
				case "%s":
					if (typeof value === "bigint") return `${value}n`;
					if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
					if (value === null || typeof value !== "object") return String(value);
					if (Object.hasOwn(value, "toString") || value instanceof Error || (value.toString !== Object.prototype.toString && value.toString !== Array.prototype.toString && value.constructor && !["Object", "Array", "Date", "Map", "Set"].includes(value.constructor.name))) return String(value);
					return inspect(value, { ...options, depth: 0, colors: false, compact: 3 });
				case "%d":
					return numeric(value) ?? (typeof value === "object" && value !== null ? "NaN" : String(Number(value)));
				case "%i":
					return numeric(value) ?? (typeof value === "object" ? "NaN" : String(Number.parseInt(value)));
				case "%f":
					return typeof value === "symbol" ? "NaN" : String(Number.parseFloat(value));
				case "%j":
					try {
						return JSON.stringify(value);
					} catch (error) {
						if (/circular/i.test(error.message)) return "[Circular]";
						throw error;
					}
				case "%o":
					return inspect(value, { ...options, showHidden: true, showProxy: true, depth: 4 });
				case "%O":
					return inspect(value, options);
				default:
					return "";
			}
		});
	}
	const words = rest.map((value) => (typeof value === "string" ? value : inspect(value, options)));
	return typeof args[0] === "string" ? [text, ...words].join(" ") : words.join(" ");
}

export const format = (...args) => formatWithOptions({}, ...args);
