# A clip that shows what it was told, for tests.
import json, os, subprocess, sys, threading, time

lock = threading.Lock()

def say(**message):
    with lock:
        print(json.dumps(message), flush=True)

def work(id, command, input):
    if command == "echo":
        say(type="response", id=id, output=input)
    elif command == "text":
        say(type="response", id=id, output="line one\n\"two\"")
    elif command == "fail":
        say(type="response", id=id, error={"code": "FAILED_PRECONDITION", "message": "it is too early"})
    elif command == "count":
        for number in range(1, input["to"] + 1):
            say(type="stream", id=id, chunk=number)
            time.sleep(input.get("pause", 0))
        say(type="stream_end", id=id)
    elif command == "family":
        child = subprocess.Popen(["sleep", "1000"])
        say(type="response", id=id, output=[os.getpid(), child.pid])
    elif command == "say":
        print(input["words"], file=sys.stderr, flush=True)
        say(type="response", id=id, output=None)
    elif command == "wait":
        # Never answered.
        print("waiting", file=sys.stderr, flush=True)

for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "invoke":
        threading.Thread(target=work, args=(message["id"], message["command"], message["input"])).start()
    elif message["type"] == "cancel":
        print("cancelled: " + message["reason"], file=sys.stderr, flush=True)
