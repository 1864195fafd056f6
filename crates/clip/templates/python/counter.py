#!/usr/bin/env python3
# counter.py: counts, one part of the answer at a time.  clip.json: {"runtime": "python", "main": "counter.py"}
import json, sys

def say(**message):
    print(json.dumps(message), flush=True)

say(type="register", manifest={"commands": [
    {"name": "count", "description": "Count up", "input": {"to": {"type": "integer", "required": True}}}]})
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "invoke":
        continue
    if message["command"] == "count":
        for number in range(1, message["input"]["to"] + 1):
            say(type="chunk", id=message["id"], output=number)
        say(type="done", id=message["id"])
    else:
        say(type="error", id=message["id"], error="unknown command: " + message["command"])
