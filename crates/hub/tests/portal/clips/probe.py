#!/usr/bin/env python3
# What the portal's tests call: it answers, streams, waits for files, fails, logs, and says things no page may believe.
import json, os, sys, threading, time

output = threading.Lock()
cancelled = {}
steered = {}
here = os.environ["PINIX_DATA_DIR"]
EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def say(**message):
    with output:
        print(json.dumps(message), flush=True)


def log(level, text):
    say(type="log", level=level, message=text)


def wait_for(name, gone):
    while not os.path.exists(os.path.join(here, name)) and not gone.is_set():
        time.sleep(0.01)


def serve(id, command, given, gone):
    part = lambda value: say(type="stream", id=id, chunk=value)
    end = lambda **rest: say(type="stream_end", id=id, **rest)
    answer = lambda value: say(type="response", id=id, output=value)
    fail = lambda code, text: say(type="response", id=id, error={"code": code, "message": text})
    if command == "greet":
        name = given.get("name", "?")
        log("info", "greeted " + name)
        answer(", ".join(["Hello"] * given.get("times", 1)) + " " + (name.upper() if given.get("loud") else name))
    elif command == "echo":
        answer(given)
    elif command == "steps":
        for number in range(1, 4):
            part("step %d\n" % number)
            wait_for("go-%d" % number, gone)
        end()
    elif command == "forever":
        number = 0
        while not gone.is_set():
            number += 1
            part({"beat": number})
            gone.wait(0.05)
        log("warn", "forever was cancelled")
    elif command == "many":
        for number in range(1, 1501):
            part({"number": number})
        end()
    elif command == "evil":
        answer(EVIL if given.get("as") == "text" else {"html": EVIL, EVIL: True})
    elif command == "picture":
        answer({"title": "pixel", "image": PIXEL})
    elif command == "long":
        answer([{"number": number, "text": "x" * 40} for number in range(100)])
    elif command == "fail":
        fail("FAILED_PRECONDITION", "the door is " + EVIL)
    elif command == "keep":
        with open(os.path.join(here, given["name"]), "w") as file:
            file.write(given["text"])
        answer("kept")
    elif command == "complain":
        log(given.get("level", "info"), given["text"])
        answer("logged")
    elif command == "steer":
        steered[given["topic_id"]].set()
        answer({"status": "queued"})
    elif command == "chat":
        topic = given.get("topic_id") or "topic-1"
        steered[topic] = threading.Event()
        part({"type": "start", "topic_id": topic})
        if given["message"] == "fail":
            part({"type": "error", "error": "the model is ill"})
            end(error={"code": "INTERNAL", "message": "the model is ill"})
            return
        part({"type": "thinking", "content": "Let me "})
        part({"type": "thinking", "content": "think."})
        part({"type": "tool_call", "id": "c1", "name": "todo_list", "arguments": {"open": True}})
        part({"type": "tool_result", "id": "c1", "content": "nothing to do"})
        part({"type": "tool_call", "id": "c2", "name": "rm", "arguments": {}})
        part({"type": "tool_result", "id": "c2", "content": "refused", "is_error": True})
        part({"type": "text", "content": "In " + topic + " you said: "})
        if given["message"] == "wait":
            gone.wait()
        if given["message"] == "listen":
            steered[topic].wait()
        part({"type": "text", "content": given["message"] + "\n```\ncode " + EVIL + "\n```\n"})
        part({"type": "usage", "prompt_tokens": 1200, "completion_tokens": 7, "cost": 0.0125})
        part({"type": "done"})
        end()
    else:
        fail("NOT_FOUND", "unknown command " + command)


for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "cancel":
        cancelled.pop(message["id"], threading.Event()).set()
    elif message["type"] == "invoke":
        gone = cancelled[message["id"]] = threading.Event()
        arguments = (message["id"], message["command"], message.get("input") or {}, gone)
        threading.Thread(target=serve, args=arguments, daemon=True).start()
