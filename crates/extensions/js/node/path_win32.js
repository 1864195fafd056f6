// node:path/win32

import { win32 } from "pinion:node/path";

export const { sep, delimiter, isAbsolute, normalize, join, resolve, relative, dirname, basename, extname, parse, format, matchesGlob, toNamespacedPath, posix } = win32;
export { win32 };
export default win32;
