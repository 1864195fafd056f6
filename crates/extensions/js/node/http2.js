// node:http2: importable, so that code that may not need it loads; every use throws an error.

import { missing, missingClass } from "pinion:node/internal_errors";

export const connect = missing("http2", "connect");
export const createServer = missing("http2", "createServer");
export const createSecureServer = missing("http2", "createSecureServer");
export const getDefaultSettings = missing("http2", "getDefaultSettings");
export const Http2ServerRequest = missingClass("http2", "Http2ServerRequest");
export const Http2ServerResponse = missingClass("http2", "Http2ServerResponse");
export const constants = {};
export default { connect, createServer, createSecureServer, getDefaultSettings, Http2ServerRequest, Http2ServerResponse, constants };
