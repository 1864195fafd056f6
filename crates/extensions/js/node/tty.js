// node:tty: no stream is a terminal.

import { missingClass } from "pinion:node/internal_errors";

export const isatty = () => false;
export const ReadStream = missingClass("tty", "ReadStream");
export const WriteStream = missingClass("tty", "WriteStream");
export default { isatty, ReadStream, WriteStream };
