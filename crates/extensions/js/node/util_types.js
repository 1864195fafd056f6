// node:util/types

const tag = (value) => Object.prototype.toString.call(value).slice(8, -1);
const isObject = (value) => typeof value === "object" && value !== null;
const accepts = (probe) => (value) => {
	if (!isObject(value)) return false;
	try {
		probe(value);
		return true;
	} catch {
		return false;
	}
};

export const isTypedArray = (value) => ArrayBuffer.isView(value) && !(value instanceof DataView);
export const isArrayBufferView = (value) => ArrayBuffer.isView(value);
export const isUint8Array = (value) => value instanceof Uint8Array;
export const isUint8ClampedArray = (value) => value instanceof Uint8ClampedArray;
export const isUint16Array = (value) => value instanceof Uint16Array;
export const isUint32Array = (value) => value instanceof Uint32Array;
export const isInt8Array = (value) => value instanceof Int8Array;
export const isInt16Array = (value) => value instanceof Int16Array;
export const isInt32Array = (value) => value instanceof Int32Array;
export const isFloat32Array = (value) => value instanceof Float32Array;
export const isFloat64Array = (value) => value instanceof Float64Array;
export const isBigInt64Array = (value) => value instanceof BigInt64Array;
export const isBigUint64Array = (value) => value instanceof BigUint64Array;
export const isDataView = (value) => value instanceof DataView;
export const isArrayBuffer = (value) => value instanceof ArrayBuffer;
export const isSharedArrayBuffer = (value) => typeof SharedArrayBuffer !== "undefined" && value instanceof SharedArrayBuffer;
export const isAnyArrayBuffer = (value) => isArrayBuffer(value) || isSharedArrayBuffer(value);
export const isDate = accepts((value) => Date.prototype.getTime.call(value));
export const isMap = accepts((value) => Map.prototype.has.call(value, 0));
export const isSet = accepts((value) => Set.prototype.has.call(value, 0));
export const isWeakMap = accepts((value) => WeakMap.prototype.has.call(value, value));
export const isWeakSet = accepts((value) => WeakSet.prototype.has.call(value, value));
export const isRegExp = (value) => isObject(value) && value instanceof RegExp;
export const isPromise = (value) => isObject(value) && value instanceof Promise;
export const isNativeError = (value) => value instanceof Error;
export const isAsyncFunction = (value) => typeof value === "function" && /^Async(Generator)?Function$/.test(tag(value));
export const isGeneratorFunction = (value) => typeof value === "function" && /GeneratorFunction$/.test(tag(value));
export const isGeneratorObject = (value) => isObject(value) && tag(value) === "Generator";
export const isMapIterator = (value) => isObject(value) && tag(value) === "Map Iterator";
export const isSetIterator = (value) => isObject(value) && tag(value) === "Set Iterator";
export const isArgumentsObject = (value) => isObject(value) && tag(value) === "Arguments";
export const isModuleNamespaceObject = (value) => isObject(value) && tag(value) === "Module";
export const isBooleanObject = (value) => value instanceof Boolean;
export const isNumberObject = (value) => value instanceof Number;
export const isStringObject = (value) => value instanceof String;
export const isSymbolObject = (value) => value instanceof Symbol;
export const isBigIntObject = (value) => value instanceof BigInt;
export const isBoxedPrimitive = (value) => [Boolean, Number, String, Symbol, BigInt].some((Box) => value instanceof Box);
export const isProxy = () => false;
export const isExternal = () => false;
export const isCryptoKey = (value) => isObject(value) && tag(value) === "CryptoKey";
export const isKeyObject = () => false;

const types = { isTypedArray, isArrayBufferView, isUint8Array, isUint8ClampedArray, isUint16Array, isUint32Array, isInt8Array, isInt16Array, isInt32Array, isFloat32Array, isFloat64Array, isBigInt64Array, isBigUint64Array, isDataView, isArrayBuffer, isSharedArrayBuffer, isAnyArrayBuffer, isDate, isMap, isSet, isWeakMap, isWeakSet, isRegExp, isPromise, isNativeError, isAsyncFunction, isGeneratorFunction, isGeneratorObject, isMapIterator, isSetIterator, isArgumentsObject, isModuleNamespaceObject, isBooleanObject, isNumberObject, isStringObject, isSymbolObject, isBigIntObject, isBoxedPrimitive, isProxy, isExternal, isCryptoKey, isKeyObject };
export default types;
