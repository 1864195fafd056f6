// node:stream/consumers

import { Buffer } from "pinion:node/buffer";

const gather = async (stream) => {
	const chunks = [];
	for await (const chunk of stream) chunks.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
	return Buffer.concat(chunks.map((chunk) => (chunk instanceof Uint8Array ? chunk : Buffer.from(chunk))));
};

export const buffer = gather;
export const text = async (stream) => (await gather(stream)).toString();
export const json = async (stream) => JSON.parse(await text(stream));
export const arrayBuffer = async (stream) => {
	const whole = await gather(stream);
	return whole.buffer.slice(whole.byteOffset, whole.byteOffset + whole.byteLength);
};
export const blob = async (stream) => new Blob([await gather(stream)]);
export default { buffer, text, json, arrayBuffer, blob };
