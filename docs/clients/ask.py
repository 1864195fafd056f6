#!/usr/bin/env python3
"""ask.py MESSAGE [PINION-ARGUMENT...]: sends one prompt and prints the answer as it arrives."""
import json, os, subprocess, sys, threading

DIALOGS = {"select", "confirm", "input", "editor"}

def ask_user(dialog):
    """Returns the reply to a dialog, with its id; an empty line cancels the dialog."""
    print(dialog["title"], dialog.get("message", ""), *dialog.get("options", []), sep="\n", file=sys.stderr)
    reply, said = {"type": "extension_ui_response", "id": dialog["id"]}, sys.stdin.readline().strip()
    if not said:
        return {**reply, "cancelled": True}
    return {**reply, "confirmed": said == "y"} if dialog["method"] == "confirm" else {**reply, "value": said}

def main(message, *arguments):
    pinion = subprocess.Popen(["pinion", "--mode", "rpc", *arguments],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(command):
        try:
            pinion.stdin.write(json.dumps(command).encode() + b"\n")
            pinion.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass                                      # pinion has exited; the loop below ends

    timer = threading.Timer(float(os.environ.get("TIMEOUT", 600)), send, [{"type": "abort"}])
    timer.daemon = True
    timer.start()
    send({"id": "prompt", "type": "prompt", "message": message})
    failure, retrying = None, False
    for line in pinion.stdout:                        # bytes: Python splits them at LF only
        event = json.loads(line)
        kind, update = event["type"], event.get("assistantMessageEvent", {})
        if update.get("type") == "text_delta":
            print(update["delta"], end="", flush=True)
        elif kind == "tool_execution_start":
            print(f"[{event['toolName']} {json.dumps(event['args'])}]", file=sys.stderr)
        elif kind == "extension_ui_request" and event["method"] in DIALOGS:
            send(ask_user(event))
        elif kind == "message_end" and event["message"]["role"] == "assistant":
            failure = event["message"].get("errorMessage")    # failed and aborted answers have one
        elif kind == "response" and not event["success"]:
            return event["error"]
        elif kind in ("auto_retry_start", "auto_retry_end"):
            retrying = kind == "auto_retry_start"
        elif event.get("command") == "get_state":
            state = event["data"]
            if not (retrying or state["isStreaming"] or state["isCompacting"]):
                pinion.stdin.close()                  # settled; pinion exits when its input is closed
                return failure or pinion.wait()
        if kind in ("agent_end", "auto_retry_end", "auto_compaction_end") or event.get("id") == "prompt":
            send({"type": "get_state"})               # has the prompt settled?
    return f"pinion ended before it was done (exit code {pinion.wait()})"

sys.exit(main(*sys.argv[1:]))
