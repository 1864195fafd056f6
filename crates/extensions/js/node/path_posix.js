// node:path/posix

import { posix } from "pinion:node/path";

export const { sep, delimiter, isAbsolute, normalize, join, resolve, relative, dirname, basename, extname, parse, format, matchesGlob, toNamespacedPath, win32 } = posix;
export { posix };
export default posix;
