// node:querystring

export const escape = (text) => encodeURIComponent(String(text).toWellFormed()).replace(/[!'()*]/g, (c) => c);
export const unescape = (text) => {
	try {
		return decodeURIComponent(text);
	} catch {
		return text.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
	}
};

const word = (value) => (typeof value === "string" ? value : typeof value === "bigint" || typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value)) ? String(value) : "");

export function stringify(values, separator = "&", equals = "=", options = {}) {
	const encode = options?.encodeURIComponent ?? querystring.escape;
	if (values === null || typeof values !== "object") return "";
	return Object.keys(values)
		.flatMap((name) => [values[name]].flat().map((value) => `${encode(word(name))}${equals}${encode(word(value))}`))
		.join(separator);
}

export function parse(text, separator = "&", equals = "=", options = {}) {
	const found = Object.create(null);
	if (typeof text !== "string" || text === "") return found;
	const decode = options?.decodeURIComponent ?? querystring.unescape;
	const most = options?.maxKeys ?? 1000;
	const parts = text.split(separator);
	for (const part of most > 0 ? parts.slice(0, most) : parts) {
		if (part === "") continue;
		const at = part.indexOf(equals);
		const [name, value] = (at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + equals.length)]).map((side) => decode(side.replaceAll("+", " ")));
		if (!(name in found)) found[name] = value;
		else if (Array.isArray(found[name])) found[name].push(value);
		else found[name] = [found[name], value];
	}
	return found;
}

export const encode = stringify;
export const decode = parse;
const querystring = { escape, unescape, stringify, parse, encode, decode, unescapeBuffer: (text) => globalThis.Buffer.from(unescape(String(text))) };
export default querystring;
