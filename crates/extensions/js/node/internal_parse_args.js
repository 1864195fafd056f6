// util.parseArgs

import { ops } from "pinion:ops";
import { coded } from "pinion:node/internal_errors";

const problem = (code, message) => coded(TypeError, `ERR_PARSE_ARGS_${code}`, message);

export function parseArgs(config = {}) {
	const { args = ops.process.arguments, options = {}, strict = true, allowPositionals = !strict, tokens: wantTokens = false, allowNegative = false } = config;
	const values = Object.create(null);
	const positionals = [];
	const tokens = [];
	const shorts = Object.fromEntries(Object.entries(options).filter(([, option]) => option.short).map(([name, option]) => [option.short, name]));
	const store = (index, rawName, name, value, inlineValue) => {
		let given = name;
		let option = options[name];
		if (!option && allowNegative && name.startsWith("no-") && options[name.slice(3)]?.type === "boolean") {
			given = name.slice(3);
			option = options[given];
			value = false;
		}
		if (strict && !option) throw problem("UNKNOWN_OPTION", `Unknown option '${rawName}'${allowPositionals ? `. To specify a positional argument starting with a '-', place it at the end of the command after '--', as in '-- "${rawName}"` : ""}`);
		const shown = option?.short ? `-${option.short}, --${given}` : `--${given}`;
		if (strict && option.type === "string" && value === undefined) throw problem("INVALID_OPTION_VALUE", `Option '${shown} <value>' argument missing`);
		if (strict && option.type === "boolean" && typeof value === "string") throw problem("INVALID_OPTION_VALUE", `Option '${shown}' does not take an argument`);
		tokens.push({ kind: "option", name: given, rawName, index, value: typeof value === "string" ? value : undefined, inlineValue });
		if (given === "__proto__") return;
		const kept = value ?? true;
		if (option?.multiple) (values[given] ??= []).push(kept);
		else values[given] = kept;
	};
	for (let i = 0; i < args.length; i++) {
		const word = args[i];
		if (word === "--") {
			tokens.push({ kind: "option-terminator", index: i });
			for (const [offset, rest] of args.slice(i + 1).entries()) place(rest, i + 1 + offset);
			break;
		}
		if (/^--./.test(word)) {
			const equals = word.indexOf("=");
			const name = equals < 0 ? word.slice(2) : word.slice(2, equals);
			if (equals >= 0) store(i, `--${name}`, name, word.slice(equals + 1), true);
			else if (options[name]?.type === "string" && args[i + 1] !== undefined && (!strict || !/^-./.test(args[i + 1]))) store(i, word, name, args[++i], false);
			else store(i, word, name, undefined, undefined);
		} else if (/^-[^-]/.test(word)) {
			for (let at = 1; at < word.length; at++) {
				const name = shorts[word[at]] ?? word[at];
				if (options[name]?.type === "string") {
					if (at + 1 < word.length) store(i, `-${word[at]}`, name, word.slice(at + 1), true);
					else store(i, `-${word[at]}`, name, args[i + 1] === undefined ? undefined : args[++i], false);
					break;
				}
				store(i, `-${word[at]}`, name, undefined, undefined);
			}
		} else place(word, i);
	}
	function place(word, index) {
		if (!allowPositionals) throw problem("UNEXPECTED_POSITIONAL", `Unexpected argument '${word}'. This command does not take positional arguments`);
		tokens.push({ kind: "positional", index, value: word });
		positionals.push(word);
	}
	for (const [name, option] of Object.entries(options)) if (option.default !== undefined && values[name] === undefined) values[name] = option.default;
	return wantTokens ? { values, positionals, tokens } : { values, positionals };
}
