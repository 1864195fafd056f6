// node:tls: importable, so that code that may not need it loads; every use throws an error.

import { missing, missingClass } from "pinion:node/internal_errors";

export const connect = missing("tls", "connect");
export const createServer = missing("tls", "createServer");
export const createSecureContext = missing("tls", "createSecureContext");
export const checkServerIdentity = missing("tls", "checkServerIdentity");
export const getCiphers = missing("tls", "getCiphers");
export const TLSSocket = missingClass("tls", "TLSSocket");
export const Server = missingClass("tls", "Server");
export const SecureContext = missingClass("tls", "SecureContext");
export const rootCertificates = [];
export const DEFAULT_MIN_VERSION = "TLSv1.2";
export const DEFAULT_MAX_VERSION = "TLSv1.3";
export default { connect, createServer, createSecureContext, checkServerIdentity, getCiphers, TLSSocket, Server, SecureContext, rootCertificates, DEFAULT_MIN_VERSION, DEFAULT_MAX_VERSION };
