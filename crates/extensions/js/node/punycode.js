// node:punycode (RFC 3492)

const [BASE, T_MIN, T_MAX, SKEW, DAMP, BIAS, FIRST] = [36, 1, 26, 38, 700, 72, 128];

const adapt = (delta, count, first) => {
	delta = first ? Math.floor(delta / DAMP) : delta >> 1;
	delta += Math.floor(delta / count);
	let k = 0;
	for (; delta > ((BASE - T_MIN) * T_MAX) >> 1; k += BASE) delta = Math.floor(delta / (BASE - T_MIN));
	return k + Math.floor(((BASE - T_MIN + 1) * delta) / (delta + SKEW));
};
const threshold = (k, bias) => (k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias);
const symbol = (digit) => String.fromCharCode(digit < 26 ? digit + 97 : digit + 22);
const digit = (code) => (code >= 48 && code < 58 ? code - 22 : code >= 65 && code < 91 ? code - 65 : code >= 97 && code < 123 ? code - 97 : BASE);

export const ucs2 = { decode: (text) => Array.from(text, (c) => c.codePointAt(0)), encode: (points) => String.fromCodePoint(...points) };

export function encode(text) {
	const points = ucs2.decode(text);
	const basic = points.filter((point) => point < FIRST);
	let out = String.fromCodePoint(...basic) + (basic.length > 0 ? "-" : "");
	let [n, delta, bias, done] = [FIRST, 0, BIAS, basic.length];
	while (done < points.length) {
		const next = Math.min(...points.filter((point) => point >= n));
		delta += (next - n) * (done + 1);
		n = next;
		for (const point of points) {
			if (point < n) delta++;
			if (point !== n) continue;
			let rest = delta;
			for (let k = BASE; ; k += BASE) {
				const t = threshold(k, bias);
				if (rest < t) break;
				out += symbol(t + ((rest - t) % (BASE - t)));
				rest = Math.floor((rest - t) / (BASE - t));
			}
			out += symbol(rest);
			bias = adapt(delta, done + 1, done === basic.length);
			delta = 0;
			done++;
		}
		delta++;
		n++;
	}
	return out;
}

export function decode(text) {
	const cut = Math.max(text.lastIndexOf("-"), 0);
	const out = ucs2.decode(text.slice(0, cut));
	let [n, i, bias, at] = [FIRST, 0, BIAS, cut > 0 ? cut + 1 : 0];
	while (at < text.length) {
		const before = i;
		for (let w = 1, k = BASE; ; k += BASE) {
			const value = at < text.length ? digit(text.charCodeAt(at++)) : BASE;
			if (value >= BASE) throw new RangeError("Invalid input");
			i += value * w;
			const t = threshold(k, bias);
			if (value < t) break;
			w *= BASE - t;
		}
		bias = adapt(i - before, out.length + 1, before === 0);
		n += Math.floor(i / (out.length + 1));
		i %= out.length + 1;
		out.splice(i++, 0, n);
	}
	return ucs2.encode(out);
}

const labels = (domain, change) => domain.split(/[.\u3002\uff0e\uff61]/).map(change).join(".");
export const toASCII = (domain) => labels(domain, (label) => (/[^\0-\x7f]/.test(label) ? `xn--${encode(label.toLowerCase())}` : label));
export const toUnicode = (domain) => labels(domain, (label) => (/^xn--/i.test(label) ? decode(label.slice(4).toLowerCase()) : label));
export const version = "2.3.1";
export default { encode, decode, toASCII, toUnicode, ucs2, version };
