"""The stock gRPC client for Python against a hub, with the schema read from a descriptor set.

grpc_client.py DESCRIPTORS ADDRESS TOKEN [provider]: prints one line per kind of call; fails loudly.
"""

import json
import queue
import sys
import threading

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

descriptors, address, token = sys.argv[1:4]
pool = descriptor_pool.DescriptorPool()
files = descriptor_pb2.FileDescriptorSet.FromString(open(descriptors, "rb").read())
for file in files.file:
    pool.Add(file)


def message(name):
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"pinix.v2.{name}"))


service = pool.FindServiceByName("pinix.v2.HubService")
channel = grpc.insecure_channel(address)
metadata = (("authorization", f"Bearer {token}"),)


def method(name):
    kinds = {
        (False, False): channel.unary_unary,
        (False, True): channel.unary_stream,
        (True, True): channel.stream_stream,
    }
    declared = service.methods_by_name[name]
    kind = kinds[declared.client_streaming, declared.server_streaming]
    answer = message_factory.GetMessageClass(declared.output_type)
    return kind(
        f"/pinix.v2.HubService/{name}",
        request_serializer=lambda it: it.SerializeToString(),
        response_deserializer=answer.FromString,
    )


def fails(code, work):
    try:
        work()
    except grpc.RpcError as error:
        assert error.code() == code, error
        return error.details()
    raise AssertionError(f"no {code}")


def outputs(answers):
    return [json.loads(answer.output) for answer in answers]


def invoke(clip, command, value=None, **options):
    asked = message("InvokeRequest")(clip_name=clip, command=command)
    if value is not None:
        asked.input = json.dumps(value).encode()
    return method("Invoke")(asked, metadata=metadata, **options)


listed = method("ListClips")(message("ListClipsRequest")(), metadata=metadata)
assert "todo" in [clip.name for clip in listed.clips], listed
missing = lambda: method("GetManifest")(message("GetManifestRequest")(clip_name="ghost"), metadata=metadata)
assert fails(grpc.StatusCode.NOT_FOUND, missing) == "Clip 'ghost' not found"
nobody = lambda: method("ListClips")(message("ListClipsRequest")())
assert fails(grpc.StatusCode.UNAUTHENTICATED, nobody) == "token required"
print("ok unary")

title = "Grüße, 世界 🐢"
assert outputs(invoke("todo", "add", {"title": title})) == [{"id": "t1", "title": title}]
assert outputs(invoke("todo", "monitor")) == [{"tick": 1}, {"tick": 2}]
[failure] = list(invoke("todo", "boom"))
assert (failure.error.code, failure.error.message) == ("internal", "boom: handler failed")
fails(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: outputs(invoke("todo", "slow", timeout=0.2)))
endless = invoke("todo", "ever")
next(endless)
endless.cancel()
one = (*metadata, ("pinix-invoke-mode", "unary"))
asked = message("InvokeRequest")(clip_name="todo", command="monitor")
assert outputs(method("Invoke")(asked, metadata=one)) == [[{"tick": 1}, {"tick": 2}]]
print("ok server stream")

Message = message("InvokeStreamMessage")


def parts():
    yield Message(start=message("InvokeRequest")(clip_name="todo", command="add"))
    whole = json.dumps({"title": "fed"}).encode()
    yield Message(chunk=message("InputChunk")(data=whole[:7]))
    yield Message(chunk=message("InputChunk")(data=whole[7:], done=True))


assert outputs(method("InvokeStream")(parts(), metadata=metadata)) == [{"id": "t1", "title": "fed"}]
print("ok bidirectional stream")

if "provider" in sys.argv:
    outbox = queue.Queue()
    Said = message("ProviderMessage")
    Result = message("InvokeResult")
    clip = message("ClipRegistration")(alias="grpc-edge", package="edge")
    clip.commands.add(name="double")
    register = message("RegisterRequest")(provider_name="python", clips=[clip])
    outbox.put(Said(register=register))
    stream = method("ProviderStream")(iter(outbox.get, None), metadata=metadata)
    registered = threading.Event()

    def serve():
        for said in stream:
            if said.HasField("register_response"):
                assert said.register_response.accepted, said
                registered.set()
            elif said.HasField("invoke_command"):
                command = said.invoke_command
                number = json.loads(command.input)["number"]
                for value, done in ((number, False), (number * 2, True)):
                    output = json.dumps(value).encode()
                    outbox.put(Said(invoke_result=Result(request_id=command.request_id, output=output, done=done)))

    server = threading.Thread(target=serve)
    server.start()
    assert registered.wait(10)
    assert outputs(invoke("grpc-edge", "double", {"number": 21})) == [21, 42]
    outbox.put(None)
    server.join(10)
    assert not server.is_alive()
    print("ok provider stream")
