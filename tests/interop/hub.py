"""Holds the binary form of the hub's messages against the Python implementation of protobuf.

hub.py DESCRIPTORS   reads lines of JSON from standard input and says which of them are wrong:
    {"type", "binary", "json"}   the message in both forms; each must come from the other
    {"type", "bytes", "again"}   any bytes, and what is written of the message in them; null where there is none
"""

import json
import sys

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from frames import message_class, read_pool, same


def is_written_as(message, binary):
    """Entries of maps may come in any order; everything else is where it is."""
    ours, theirs = bytes.fromhex(binary), message.SerializeToString(deterministic=True)
    return ours == theirs or (sorted(ours) == sorted(theirs) and type(message).FromString(ours) == message)


def complaint(wanted, line):
    if "json" in line:
        message = json_format.ParseDict(line["json"], wanted())
        if not is_written_as(message, line["binary"]):
            return f"is written as {message.SerializeToString().hex()}"
        printed = json_format.MessageToDict(wanted.FromString(bytes.fromhex(line["binary"])))
        return None if same(printed, line["json"]) else f"is read as {json.dumps(printed)}"
    try:
        message = wanted.FromString(bytes.fromhex(line["bytes"]))
    except DecodeError as error:
        return None if line["again"] is None else f"is not a message: {error}"
    message.DiscardUnknownFields()
    agreed = line["again"] is not None and is_written_as(message, line["again"])
    return None if agreed else f"is the message {message.SerializeToString().hex()}"


def main(descriptors):
    pool, _ = read_pool(descriptors)
    wrong = lines = 0
    for lines, text in enumerate(sys.stdin, 1):
        line = json.loads(text)
        reason = complaint(message_class(pool, line["type"]), line)
        if reason:
            wrong += 1
            print(f"{reason}\n  {text.strip()[:1000]}")
    print(f"{lines} lines, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
