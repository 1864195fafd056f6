import json, os, sys, threading, time

LOG = os.path.join(os.environ["PINIX_DATA_DIR"], "heard")


def say(**message):
    print(json.dumps(message, separators=(",", ":")), flush=True)


say(type="register", manifest={"package": "@acme/todo", "commands": [
    {"name": "add", "description": "Adds an entry. Titles are short.", "input": json.dumps(
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
         "properties": {"title": {"type": "string"}, "urgent": {"type": "boolean", "default": False}},
         "required": ["title", "urgent"], "additionalProperties": False})},
    {"name": "note find", "input": {"query": {"type": "string", "required": True}, "limit": {"type": "integer"}}},
    {"name": "shout", "description": "Says it louder", "input": {"type": "string"}},
    {"name": "opaque", "description": "Takes what it takes", "input": "{ text: string; times?: number }"},
    {"name": "ticks"}, {"name": "forever"}, {"name": "fail"}, {"name": "die"}, {"name": "long"}]})


def serve(message):
    id, command, given = message["id"], message["command"], message.get("input")
    if command in ("add", "note find", "opaque"):
        say(type="result", id=id, output={"command": command, "got": given})
    elif command == "shout":
        say(type="result", id=id, output=given.upper())
    elif command == "ticks":
        for number in range(3):
            say(type="chunk", id=id, output="tick %d\n" % number)
            time.sleep(0.3)
        say(type="done", id=id)
    elif command == "forever":
        say(type="chunk", id=id, output="begun")
    elif command == "fail":
        say(type="error", id=id, error="the shelf is full")
    elif command == "die":
        os._exit(3)
    elif command == "long":
        say(type="result", id=id, output="x" * 200_000)


for line in sys.stdin:
    with open(LOG, "a") as log:
        log.write(line)
    message = json.loads(line)
    if message["type"] == "invoke":
        threading.Thread(target=serve, args=(message,), daemon=True).start()
