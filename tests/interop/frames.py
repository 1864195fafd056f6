"""Holds lines of JSON against protobuf declarations, with the Python implementation of protobuf.

frames.py check DESCRIPTORS MESSAGE [FILE…]   every line is such a message, with nothing undeclared in it, and printing it
                                              again gives the same JSON; standard input where no file is named
frames.py make DESCRIPTORS MESSAGE            prints such messages: for every field of type Any one per known message, made
                                              up but always the same
"""

import json
import random
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory


def read_pool(path):
    files = descriptor_pb2.FileDescriptorSet()
    with open(path, "rb") as file:
        files.ParseFromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    names = [
        f"{file.package}.{message.name}"
        for file in files.file
        if not file.package.startswith("google.")
        for message in file.message_type
    ]
    return pool, names


def message_class(pool, name):
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def without_repetition(members):
    names = [name for name, _ in members]
    if len(names) != len(set(names)):
        raise ValueError("a name stands there twice")
    return dict(members)


def same(left, right):
    """Equal as JSON: 2 and 2.0 are, 1 and true are not."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def complaint(pool, wanted, line):
    try:
        written = json.loads(line, object_pairs_hook=without_repetition)
        message = json_format.Parse(line, wanted(), ignore_unknown_fields=False, descriptor_pool=pool)
    except (ValueError, json_format.ParseError) as error:
        return str(error)
    printed = json_format.MessageToDict(message, descriptor_pool=pool)
    return None if same(written, printed) else f"prints as {json.dumps(printed)}"


def check(pool, wanted, streams):
    lines = wrong = 0
    for name, stream in streams:
        # LF alone ends a line; Python knows many more characters that might.
        for number, line in enumerate(stream.read().decode("utf-8").split("\n"), 1):
            if not line:
                continue
            lines += 1
            reason = complaint(pool, wanted, line)
            if reason:
                wrong += 1
                print(f"{name}:{number}: {reason}\n  {line[:400]}")
    print(f"{lines} lines, {wrong} wrong")
    return 1 if wrong else 0


class Maker:
    """Fills messages with values that are not the default, of every kind the declarations use."""

    def __init__(self, pool):
        self.pool = pool
        self.chance = random.Random(7)

    def text(self):
        letters = 'ab"\\/<>&\b\f\n\r\t\x00\x1f\x7f\x85\u2028\u00e9\U0001f600'
        return "".join(self.chance.choice(letters) for _ in range(self.chance.randint(1, 12)))

    def data(self, depth=0):
        kinds = [None, True, False, 2, -3.5, 1e21, 1e-7, 123456789.125, self.text()]
        if depth < 2:
            kinds += [[self.data(depth + 1) for _ in range(2)], self.members(depth + 1)]
        return self.chance.choice(kinds)

    def members(self, depth=0):
        return {self.text(): self.data(depth) for _ in range(self.chance.randint(0, 3))}

    def value(self, field):
        kind = field.type
        if kind == field.TYPE_STRING:
            return self.text()
        if kind == field.TYPE_BOOL:
            return True
        if kind == field.TYPE_ENUM:
            return self.chance.choice(field.enum_type.values[1:]).number
        bits = 64 if kind in (field.TYPE_INT64, field.TYPE_UINT64) else 32
        if kind in (field.TYPE_INT32, field.TYPE_INT64):
            return self.chance.choice([1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))])
        if kind in (field.TYPE_UINT32, field.TYPE_UINT64):
            return self.chance.choice([1, 2**bits - 1])
        raise ValueError(f"{field.full_name}: no values of this kind are made")

    def fill(self, message, depth=0, payload=None):
        taken = set()
        for field in message.DESCRIPTOR.fields:
            group = field.containing_oneof
            # `optional` makes a oneof of its own.
            if group and len(group.fields) > 1:
                if group.name in taken or (depth and self.chance.random() < 0.5):
                    continue
                taken.add(group.name)
            elif depth > 1 and self.chance.random() < 0.3:
                continue
            self.field(message, field, depth, payload)
        return message

    def field(self, message, field, depth, payload):
        if field.message_type is None:
            if field.is_repeated:
                getattr(message, field.name).extend(self.value(field) for _ in range(2))
            else:
                setattr(message, field.name, self.value(field))
            return
        if field.message_type.GetOptions().map_entry:
            getattr(message, field.name).update({self.text(): self.text() for _ in range(3)})
            return
        inner = getattr(message, field.name)
        if field.is_repeated:
            for _ in range(2):
                self.message(inner.add(), depth + 1, payload)
        else:
            inner.SetInParent()
            self.message(inner, depth + 1, payload)

    def message(self, inner, depth, payload):
        name = inner.DESCRIPTOR.full_name
        if name == "google.protobuf.Struct":
            json_format.ParseDict(self.members(), inner)
        elif name == "google.protobuf.Any":
            if payload and depth < 4:
                packed = self.fill(message_class(self.pool, payload)(), depth)
                inner.type_url = "type.googleapis.com/" + payload
                inner.value = packed.SerializeToString()
        else:
            self.fill(inner, depth, payload)


def make(pool, names, wanted):
    maker = Maker(pool)
    envelope = wanted.DESCRIPTOR
    group = next(iter(envelope.oneofs_by_name.values()))
    for member in group.fields:
        for payload in names:
            line = wanted()
            inner = getattr(line, member.name)
            inner.SetInParent()
            maker.fill(inner, 1, payload)
            for field in envelope.fields:
                if field.containing_oneof is None:
                    maker.field(line, field, 1, None)
            print(json_format.MessageToJson(line, indent=None, descriptor_pool=pool, ensure_ascii=False))
            if not any(field.message_type for field in member.message_type.fields):
                break


def main(what, descriptors, name, *files):
    pool, names = read_pool(descriptors)
    wanted = message_class(pool, name)
    sys.stdout.reconfigure(encoding="utf-8")
    if what == "make":
        return make(pool, names, wanted)
    if not files:
        return check(pool, wanted, [("standard input", sys.stdin.buffer)])
    return check(pool, wanted, [(file, open(file, "rb")) for file in files])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
