// Lists of addresses, ranges and subnets, for node:net.

import { coded, invalidArgType } from "pinion:node/internal_errors";

/** Returns the bytes of an address as one number; undefined if `text` is not an address of this family. */
function numberOf(text, family) {
	if (family === "ipv4") {
		const parts = String(text).split(".");
		if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)) return undefined;
		return parts.reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
	}
	const [address] = String(text).split("%");
	const halves = address.split("::");
	if (halves.length > 2) return undefined;
	const words = (half) => (half === "" ? [] : half.split(":").flatMap((word) => {
		if (!word.includes(".")) return [/^[0-9a-f]{1,4}$/i.test(word) ? BigInt(`0x${word}`) : undefined];
		const number = numberOf(word, "ipv4");
		return number === undefined ? [undefined] : [number >> 16n, number & 0xffffn];
	}));
	const [front, back] = [words(halves[0]), words(halves[1] ?? "")];
	const gap = 8 - front.length - back.length;
	const all = halves.length === 2 ? [...front, ...new Array(Math.max(gap, 0)).fill(0n), ...back] : front;
	if (all.length !== 8 || all.includes(undefined)) return undefined;
	return all.reduce((sum, word) => (sum << 16n) | word, 0n);
}
const MAPPED = 0xffffn << 32n;

export class SocketAddress {
	constructor({ address, family = "ipv4", port = 0, flowlabel = 0 } = {}) {
		this.address = address ?? (family === "ipv4" ? "127.0.0.1" : "::");
		if (numberOf(this.address, family) === undefined) throw coded(Error, "ERR_INVALID_ADDRESS", "Invalid address");
		Object.assign(this, { family, port, flowlabel });
	}
	static isSocketAddress(value) { return value instanceof SocketAddress; }
}

/** Returns the number and the family of an address that was given as text or as an object. */
function parsed(address, family = "ipv4", name = "address") {
	if (address instanceof SocketAddress) return parsed(address.address, address.family, name);
	if (typeof address !== "string") throw invalidArgType(name, "string", address);
	const kind = String(family).toLowerCase();
	if (kind !== "ipv4" && kind !== "ipv6") throw coded(TypeError, "ERR_INVALID_ARG_VALUE", `The argument 'family' is invalid. Received '${family}'`);
	const number = numberOf(address, kind);
	if (number === undefined) throw coded(Error, "ERR_INVALID_ADDRESS", "Invalid address");
	return { number, kind };
}

export class BlockList {
	#rules = [];
	static isBlockList(value) { return value instanceof BlockList; }

	#add(first, last, kind, text) { this.#rules.unshift({ first, last, kind, text }); }
	addAddress(address, family) {
		const { number, kind } = parsed(address, family);
		this.#add(number, number, kind, `Address: ${kind === "ipv4" ? "IPv4" : "IPv6"} ${address.address ?? address}`);
	}
	addRange(start, end, family) {
		const [first, last] = [parsed(start, family, "start"), parsed(end, family, "end")];
		if (first.number > last.number) throw coded(TypeError, "ERR_INVALID_ARG_VALUE", "The argument 'start' must come before 'end'");
		this.#add(first.number, last.number, first.kind, `Range: ${first.kind === "ipv4" ? "IPv4" : "IPv6"} ${start.address ?? start}-${end.address ?? end}`);
	}
	addSubnet(net, prefix, family) {
		const { number, kind } = parsed(net, family, "network");
		const bits = kind === "ipv4" ? 32 : 128;
		if (!Number.isInteger(prefix) || prefix < 0 || prefix > bits) throw coded(RangeError, "ERR_OUT_OF_RANGE", `The value of "prefix" is out of range. It must be >= 0 && <= ${bits}. Received ${prefix}`);
		const rest = (1n << BigInt(bits - prefix)) - 1n;
		this.#add(number & ~rest, number | rest, kind, `Subnet: ${kind === "ipv4" ? "IPv4" : "IPv6"} ${net.address ?? net}/${prefix}`);
	}
	check(address, family) {
		const { number, kind } = parsed(address, family);
		const holds = (wanted, of) => this.#rules.some((rule) => rule.kind === of && wanted >= rule.first && wanted <= rule.last);
		// An IPv4 address inside an IPv6 one is also checked as itself.
		return holds(number, kind) || (kind === "ipv6" && number >> 32n === MAPPED >> 32n && holds(number & 0xffffffffn, "ipv4"));
	}
	get rules() { return this.#rules.map(({ text }) => text); }
}
