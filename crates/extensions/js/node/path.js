// node:path

import { ops } from "pinion:ops";
import { invalidArgType } from "pinion:node/internal_errors";

const text = (value, name = "path") => {
	if (typeof value !== "string") throw invalidArgType(name, "string", value);
	return value;
};

/** Resolves `.` and `..` in the parts between separators. */
function collapse(parts, absolute) {
	const kept = [];
	for (const part of parts) {
		if (part === "" || part === ".") continue;
		if (part !== "..") kept.push(part);
		else if (kept.length > 0 && kept.at(-1) !== "..") kept.pop();
		else if (!absolute) kept.push("..");
	}
	return kept;
}

/** Creates the functions of both flavours, from the root syntax and the separator. */
function flavour({ sep, delimiter, split, rootOf, isAbsolute, cwd, same }) {
	const strip = (path) => {
		const root = rootOf(path);
		let end = path.length;
		while (end > root.length && split.test(path[end - 1])) end--;
		return path.slice(0, end);
	};
	const cut = (path) => {
		const body = strip(path);
		const root = rootOf(path);
		let at = body.length - 1;
		while (at >= root.length && !split.test(body[at])) at--;
		return { root, body, dir: body.slice(0, Math.max(at, root.length)), base: body.slice(Math.max(at + 1, root.length)), at };
	};
	const self = {
		sep,
		delimiter,
		isAbsolute: (path) => isAbsolute(text(path)),
		normalize(path) {
			if (text(path) === "") return ".";
			const root = rootOf(path);
			const absolute = isAbsolute(path);
			const trailing = path.length > root.length && split.test(path.at(-1));
			const body = collapse(path.slice(root.length).split(split), absolute).join(sep);
			const start = root.replace(/\//g, sep);
			if (body === "") return start === "" ? (trailing ? `.${sep}` : ".") : start;
			return start + body + (trailing ? sep : "");
		},
		join(...parts) {
			const joined = parts.map((part) => text(part)).filter((part) => part !== "").join(sep);
			return joined === "" ? "." : self.normalize(joined);
		},
		resolve(...parts) {
			let whole = "";
			for (let i = parts.length - 1; i >= 0 && !isAbsolute(whole); i--) {
				const part = text(parts[i], `paths[${i}]`);
				if (part !== "") whole = whole === "" ? part : `${part}${sep}${whole}`;
			}
			if (!isAbsolute(whole)) whole = whole === "" ? cwd() : `${cwd()}${sep}${whole}`;
			const root = rootOf(whole);
			const body = collapse(whole.slice(root.length).split(split), true).join(sep);
			return root.replace(/\//g, sep) + body || ".";
		},
		relative(from, to) {
			if (text(from, "from") === text(to, "to")) return "";
			const one = self.resolve(from);
			const other = self.resolve(to);
			if (same(one) === same(other)) return "";
			if (same(rootOf(one)) !== same(rootOf(other))) return other;
			const parts = (path) => path.slice(rootOf(path).length).split(split).filter(Boolean);
			const a = parts(one);
			const b = parts(other);
			let common = 0;
			while (common < a.length && common < b.length && same(a[common]) === same(b[common])) common++;
			return [...a.slice(common).map(() => ".."), ...b.slice(common)].join(sep);
		},
		dirname(path) {
			if (text(path) === "") return ".";
			const { root, body, at } = cut(path);
			if (at < root.length) return root || ".";
			// Two leading slashes are preserved.
			if (at === 1 && sep === "/" && body.startsWith("//")) return "//";
			let end = at;
			while (end > root.length && split.test(body[end - 1])) end--;
			return body.slice(0, end) || root || ".";
		},
		basename(path, suffix) {
			if (suffix !== undefined) text(suffix, "ext");
			const { base } = cut(text(path));
			return suffix && base !== suffix && base.endsWith(suffix) ? base.slice(0, -suffix.length) : base;
		},
		extname(path) {
			const { base } = cut(text(path));
			const dot = base.lastIndexOf(".");
			return dot <= 0 || base === ".." ? "" : base.slice(dot);
		},
		parse(path) {
			text(path);
			const { root, base } = cut(path);
			const ext = self.extname(path);
			let dir = self.dirname(path);
			if (dir === "." && !/^\.[\\/]/.test(path)) dir = "";
			if (base === "") dir = root;
			return { root, dir, base, ext, name: ext ? base.slice(0, -ext.length) : base };
		},
		format(parts) {
			if (parts === null || typeof parts !== "object") throw invalidArgType("pathObject", "Object", parts);
			const dir = parts.dir || parts.root;
			const ext = parts.ext ? (parts.ext[0] === "." ? parts.ext : `.${parts.ext}`) : "";
			const base = parts.base || `${parts.name || ""}${ext}`;
			if (!dir) return base;
			return dir === parts.root ? `${dir}${base}` : `${dir}${sep}${base}`;
		},
		matchesGlob(path, pattern) {
			return globToRegExp(pattern).test(path);
		},
		toNamespacedPath: (path) => path,
	};
	self._makeLong = self.toNamespacedPath;
	return self;
}

/** Converts a glob with `*`, `**`, `?`, `[]` and `{}` to a regular expression. */
export function globToRegExp(pattern) {
	let source = "";
	for (let i = 0; i < pattern.length; i++) {
		const c = pattern[i];
		if (c === "*" && pattern[i + 1] === "*") {
			i++;
			if (pattern[i + 1] === "/") {
				i++;
				source += "(?:.*/)?";
			} else source += ".*";
		} else if (c === "*") source += "[^/]*";
		else if (c === "?") source += "[^/]";
		else if (c === "[") {
			const end = pattern.indexOf("]", i + 1);
			if (end < 0) source += "\\[";
			else {
				source += `[${pattern.slice(i + 1, end).replace(/^!/, "^")}]`;
				i = end;
			}
		} else if (c === "{") source += "(?:";
		else if (c === "}") source += ")";
		else if (c === "," && /\{[^}]*$/.test(pattern.slice(0, i))) source += "|";
		else source += c.replace(/[.+^$()|\\/]/g, "\\$&");
	}
	return new RegExp(`^${source}$`, "s");
}

export const posix = flavour({
	sep: "/",
	delimiter: ":",
	split: /\//,
	rootOf: (path) => (path[0] === "/" ? "/" : ""),
	isAbsolute: (path) => path[0] === "/",
	cwd: () => ops.process.cwd(),
	same: (path) => path,
});

export const win32 = flavour({
	sep: "\\",
	delimiter: ";",
	split: /[\\/]/,
	rootOf: (path) => /^(?:[\\/]{2}[^\\/]+[\\/]+[^\\/]+[\\/]?|[A-Za-z]:[\\/]?|[\\/])/.exec(path)?.[0] ?? "",
	isAbsolute: (path) => /^(?:[\\/]|[A-Za-z]:[\\/])/.test(path),
	cwd: () => ops.process.cwd().replace(/\//g, "\\"),
	same: (path) => path.toLowerCase(),
});

posix.posix = win32.posix = posix;
posix.win32 = win32.win32 = win32;

export const { sep, delimiter, isAbsolute, normalize, join, resolve, relative, dirname, basename, extname, parse, format, matchesGlob, toNamespacedPath, _makeLong } = posix;
export default posix;
