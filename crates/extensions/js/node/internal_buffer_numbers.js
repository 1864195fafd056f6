// Numbers in a Buffer: readUInt8 … writeDoubleLE.

import { coded, invalidArgType, outOfRange } from "pinion:node/internal_errors";

function view(buffer, offset, width) {
	if (typeof offset !== "number") throw invalidArgType("offset", "number", offset);
	if (!Number.isInteger(offset)) throw outOfRange("offset", "an integer", offset);
	if (buffer.length < width) throw coded(RangeError, "ERR_BUFFER_OUT_OF_BOUNDS", "Attempt to access memory outside buffer bounds");
	if (offset < 0 || offset + width > buffer.length) throw outOfRange("offset", `>= 0 and <= ${buffer.length - width}`, offset);
	return new DataView(buffer.buffer, buffer.byteOffset + offset, width);
}

function within(value, low, high) {
	if (value < low || value > high) throw outOfRange("value", `>= ${low}${typeof low === "bigint" ? "n" : ""} and <= ${high}${typeof high === "bigint" ? "n" : ""}`, value);
	return value;
}

export const numberMethods = {};

const KINDS = [
	["Int8", 1, "Int8", -128, 127],
	["UInt8", 1, "Uint8", 0, 255],
	["Int16", 2, "Int16", -32768, 32767],
	["UInt16", 2, "Uint16", 0, 65535],
	["Int32", 4, "Int32", -2147483648, 2147483647],
	["UInt32", 4, "Uint32", 0, 4294967295],
	["BigInt64", 8, "BigInt64", -(2n ** 63n), 2n ** 63n - 1n],
	["BigUInt64", 8, "BigUint64", 0n, 2n ** 64n - 1n],
	["Float", 4, "Float32"],
	["Double", 8, "Float64"],
];

for (const [name, width, kind, low, high] of KINDS) {
	const orders = width === 1 ? [["", true]] : [["LE", true], ["BE", false]];
	for (const [suffix, little] of orders) {
		const read = function (offset = 0) {
			return view(this, offset, width)[`get${kind}`](0, little);
		};
		const write = function (value, offset = 0) {
			if (low === undefined) value = Number(value);
			else within(typeof low === "bigint" ? value : Number(value), low, high);
			view(this, offset, width)[`set${kind}`](0, value, little);
			return offset + width;
		};
		for (const spelling of new Set([name, name.replace("UInt", "Uint")])) {
			numberMethods[`read${spelling}${suffix}`] = read;
			numberMethods[`write${spelling}${suffix}`] = write;
		}
	}
}

function bytesOf(buffer, offset, width) {
	if (!(width >= 1 && width <= 6)) throw outOfRange("byteLength", ">= 1 and <= 6", width);
	const part = view(buffer, offset, width);
	return Array.from({ length: width }, (_, i) => part.getUint8(i));
}

const gathered = (bytes) => bytes.reduce((sum, byte) => sum * 256 + byte, 0);
const signed = (value, width) => (value >= 2 ** (8 * width - 1) ? value - 2 ** (8 * width) : value);

function scatter(buffer, value, offset, width, little) {
	const part = view(buffer, offset, width);
	let rest = value < 0 ? value + 2 ** (8 * width) : value;
	for (let i = 0; i < width; i++) {
		part.setUint8(little ? i : width - 1 - i, rest % 256);
		rest = Math.floor(rest / 256);
	}
	return offset + width;
}

for (const spelling of ["UInt", "Uint"]) {
	numberMethods[`read${spelling}BE`] = function (offset, width) {
		return gathered(bytesOf(this, offset, width));
	};
	numberMethods[`read${spelling}LE`] = function (offset, width) {
		return gathered(bytesOf(this, offset, width).reverse());
	};
	for (const [suffix, little] of [["LE", true], ["BE", false]])
		numberMethods[`write${spelling}${suffix}`] = function (value, offset, width) {
			return scatter(this, within(value, 0, 2 ** (8 * width) - 1), offset, width, little);
		};
}
numberMethods.readIntBE = function (offset, width) {
	return signed(gathered(bytesOf(this, offset, width)), width);
};
numberMethods.readIntLE = function (offset, width) {
	return signed(gathered(bytesOf(this, offset, width).reverse()), width);
};
for (const [suffix, little] of [["LE", true], ["BE", false]])
	numberMethods[`writeInt${suffix}`] = function (value, offset, width) {
		return scatter(this, within(value, -(2 ** (8 * width - 1)), 2 ** (8 * width - 1) - 1), offset, width, little);
	};
