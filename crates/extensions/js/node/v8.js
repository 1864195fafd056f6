// node:v8

import { Buffer } from "pinion:node/buffer";
import { missing } from "pinion:node/internal_errors";
import process from "pinion:node/process";

// Values that JSON cannot represent are tagged; the format is private to pinion.
const TAG = "$pinion";
const written = (value, seen = []) => {
	if (value === undefined) return { [TAG]: "undefined" };
	if (typeof value === "bigint") return { [TAG]: "bigint", v: String(value) };
	if (typeof value === "number" && !Number.isFinite(value)) return { [TAG]: "number", v: String(value) };
	if (typeof value === "function" || typeof value === "symbol") throw new DOMException(`${String(value)} could not be cloned.`, "DataCloneError");
	if (value === null || typeof value !== "object") return value;
	if (seen.includes(value)) throw new DOMException("A value with a cycle could not be cloned.", "DataCloneError");
	const below = [...seen, value];
	if (value instanceof Date) return { [TAG]: "date", v: value.getTime() };
	if (value instanceof RegExp) return { [TAG]: "regexp", v: [value.source, value.flags] };
	if (value instanceof Map) return { [TAG]: "map", v: [...value].map((entry) => entry.map((item) => written(item, below))) };
	if (value instanceof Set) return { [TAG]: "set", v: [...value].map((item) => written(item, below)) };
	if (value instanceof Uint8Array) return { [TAG]: "bytes", v: Buffer.from(value).toString("base64") };
	if (value instanceof Error) return { [TAG]: "error", v: [value.name, value.message, value.stack] };
	if (Array.isArray(value)) return value.map((item) => written(item, below));
	return { [TAG]: "object", v: Object.entries(value).map(([key, item]) => [key, written(item, below)]) };
};
const read = (value) => {
	if (value === null || typeof value !== "object") return value;
	if (Array.isArray(value)) return value.map(read);
	const { v } = value;
	switch (value[TAG]) {
		case "undefined": return undefined;
		case "bigint": return BigInt(v);
		case "number": return Number(v);
		case "date": return new Date(v);
		case "regexp": return new RegExp(...v);
		case "map": return new Map(v.map((entry) => entry.map(read)));
		case "set": return new Set(v.map(read));
		case "bytes": return Buffer.from(v, "base64");
		case "error": return Object.assign(new Error(v[1]), { name: v[0], stack: v[2] });
		default: return Object.fromEntries(v.map(([key, item]) => [key, read(item)]));
	}
};

export const serialize = (value) => Buffer.from(JSON.stringify(written(value)));
export const deserialize = (buffer) => read(JSON.parse(Buffer.from(buffer).toString()));
export const getHeapStatistics = () => {
	const { heapUsed, rss } = process.memoryUsage();
	return { total_heap_size: heapUsed, used_heap_size: heapUsed, heap_size_limit: 4294967296, total_physical_size: rss, total_available_size: 4294967296, malloced_memory: heapUsed, peak_malloced_memory: heapUsed, does_zap_garbage: 0, number_of_native_contexts: 1, number_of_detached_contexts: 0 };
};
export const getHeapSpaceStatistics = () => [];
export const setFlagsFromString = () => {};
export const cachedDataVersionTag = () => 0;
export const writeHeapSnapshot = missing("v8", "writeHeapSnapshot");
export const getHeapSnapshot = missing("v8", "getHeapSnapshot");
export default { serialize, deserialize, getHeapStatistics, getHeapSpaceStatistics, setFlagsFromString, cachedDataVersionTag, writeHeapSnapshot, getHeapSnapshot };
