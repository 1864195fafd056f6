"""An MCP server for tests: `server.py [MODE]` on stdio, `server.py http [oauth]` on a free port of this machine.

MODE: hang (answers nothing), hang-list (answers initialize only), die (exits at once), junk (prints lines that are not
messages), endless (prints one line without an end). The HTTP server prints its port on the first line; with `oauth` it
accepts only the token that its own authorization server issues.
"""
import json
import os
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "echo", "description": "Returns the text.", "inputSchema": TEXT},
    {"name": "fail", "description": "Fails with the text.", "inputSchema": TEXT},
    {"name": "count", "description": "Returns numbers as data.", "inputSchema": {"type": "object"}},
    {"name": "variable", "description": "Returns a variable.", "inputSchema": TEXT},
    {"name": "long", "description": "Returns a long text.", "inputSchema": {"type": "object"}},
    {"name": "wait", "description": "Waits for ever.", "inputSchema": {"type": "object"}},
    {"name": "work", "description": "Reports progress.", "inputSchema": {"type": "object"}},
    {"name": "exit", "description": "Ends the server.", "inputSchema": {"type": "object"}},
    {"name": "flood", "description": "Prints lines that are not messages.", "inputSchema": {"type": "object"}},
    {"name": "grow", "description": "Adds a tool and removes another.", "inputSchema": {"type": "object"}},
]
LOCK = threading.Lock()
VALID = {"first"}


def put(message):
    with LOCK:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def call(name, arguments, meta):
    if name == "echo":
        return text(arguments["text"])
    if name == "fail":
        return text(arguments["text"], isError=True)
    if name == "count":
        return text("1, 2, 3", structuredContent={"numbers": [1, 2, 3]})
    if name == "variable":
        return text(os.environ.get(arguments["text"], "unset"))
    if name == "long":
        return text("begin" + "x" * 50_000 + "end")
    if name == "wait":
        with open(os.path.join(os.path.dirname(__file__), "waiting"), "w"):
            pass
        time.sleep(3600)
    if name == "work":
        for done in range(8):
            time.sleep(0.3)
            token = meta.get("progressToken")
            put({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": done}})
        return text("worked")
    if name == "exit":
        os._exit(3)
    if name == "flood":
        for _ in range(200):
            print("not a message", flush=True)
        time.sleep(3600)
    if name == "grow":
        TOOLS.append({"name": "late", "description": "Came later.", "inputSchema": TEXT})
        TOOLS[:] = [tool for tool in TOOLS if tool["name"] != "count"]
        if MODE != "http":
            put({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return text("grown")
    if name == "late":
        return text("late " + arguments["text"])
    return None


def answer(message):
    method, params = message["method"], message.get("params", {})
    result = None
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}},
                  "serverInfo": {"name": "lab", "version": "1"}, "instructions": "Handles texts.\nAsk nicely."}
    elif method == "tools/list":
        result = {"tools": list(TOOLS)}
    elif method == "tools/call":
        result = call(params["name"], params["arguments"], params.get("_meta", {}))
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "no such method or tool"}
    else:
        reply["result"] = result
    return reply


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, status, body, **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def base(self):
        return "http://127.0.0.1:%d" % self.server.server_port

    def do_GET(self):
        address = urllib.parse.urlparse(self.path)
        if address.path == "/.well-known/oauth-protected-resource/mcp":
            return self.send(200, {"resource": self.base() + "/mcp", "authorization_servers": [self.base()],
                                   "scopes_supported": ["texts"]})
        if address.path == "/.well-known/oauth-authorization-server":
            return self.send(200, {"issuer": self.base(), "authorization_endpoint": self.base() + "/authorize",
                                   "token_endpoint": self.base() + "/token",
                                   "registration_endpoint": self.base() + "/register",
                                   "code_challenge_methods_supported": ["S256"]})
        if address.path == "/authorize":
            query = dict(urllib.parse.parse_qsl(address.query))
            self.server.asked = query
            back = query["redirect_uri"] + "?" + urllib.parse.urlencode(
                {"code": "c0de", "state": query["state"], "iss": self.base()})
            return self.send(302, b"", location=back)
        self.send(404, b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/register":
            return self.send(201, {"client_id": "client-1", **json.loads(body)})
        if self.path == "/token":
            form = dict(urllib.parse.parse_qsl(body.decode()))
            fresh = form["grant_type"] == "authorization_code" and form.get("code") == "c0de" and form["code_verifier"]
            again = form["grant_type"] == "refresh_token" and form.get("refresh_token") == "refresh-first"
            if not fresh and not again:
                return self.send(400, {"error": "invalid_grant"})
            token = "token-first" if fresh else "token-second"
            return self.send(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600,
                                   "refresh_token": "refresh-first"})
        token = self.headers.get("authorization", "")
        if "oauth" in sys.argv and token not in ("Bearer token-first", "Bearer token-second"):
            challenge = 'Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"' % self.base()
            return self.send(401, {"error": "unauthorized"}, www_authenticate=challenge)
        if "revoked" in sys.argv and token == "Bearer token-first":
            return self.send(401, {"error": "expired"})
        message = json.loads(body)
        if "id" not in message:
            return self.send(202, b"")
        if message["method"] == "tools/call" and message["params"]["name"] == "variable":
            name = message["params"]["arguments"]["text"]
            return self.send(200, {"jsonrpc": "2.0", "id": message["id"],
                                   "result": text(self.headers.get(name, "unset"))})
        self.send(200, answer(message))

    def log_message(self, *_):
        pass


def main():
    if MODE == "http":
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print(server.server_port, flush=True)
        return server.serve_forever()
    print("started with", MODE, file=sys.stderr, flush=True)
    if MODE == "die":
        sys.exit(4)
    if MODE == "junk":
        while True:
            print("junk", flush=True)
    if MODE == "endless":
        while True:
            sys.stdout.write("x" * 65536)
            sys.stdout.flush()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or MODE == "hang":
            continue
        if MODE == "hang-list" and message["method"] != "initialize":
            continue
        threading.Thread(target=lambda message=message: put(answer(message)), daemon=True).start()


main()
