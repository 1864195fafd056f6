// node:https: requests over fetch; servers are not provided.

import { missing, missingClass } from "pinion:node/internal_errors";
import http, { requester } from "pinion:node/http";

export class Agent extends http.Agent {
	protocol = "https:";
}
export const globalAgent = new Agent({ keepAlive: true });
export const { request, get } = requester("https:");
export const createServer = missing("https", "createServer");
export const Server = missingClass("https", "Server");
export default { Agent, globalAgent, request, get, createServer, Server };
