"""Uses the gateway as an MCP client does, with the official package from PyPI: `client.py auto|legacy stdio COMMAND…`, or `… http URL TOKEN`."""

import asyncio
import sys

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

mode, way, *where = sys.argv[1:]


async def main():
    if way == "stdio":
        await talk(StdioServerParameters(command=where[0], args=where[1:]))
    else:
        headers = {"Authorization": f"Bearer {where[1]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            await talk(streamable_http_client(where[0], http_client=http))


async def talk(server):
    async with Client(server, mode=mode, read_timeout_seconds=30) as client:
        expected = "2026-07-28" if mode == "auto" else "2025-11-25"
        assert client.protocol_version == expected, client.protocol_version
        assert client.server_info.name == "todo"

        tools = (await client.list_tools()).tools
        names = [tool.name for tool in tools]
        assert names == ["add", "count", "echo", "fail", "note_add", "wait"], names
        assert tools[0].input_schema["required"] == ["title"]

        added = await client.call_tool("add", {"title": "milk"})
        assert added.structured_content == {"added": "milk"}, added
        noted = await client.call_tool("note_add", {"text": "x"})
        assert noted.structured_content == {"ok": True}, noted
        failed = await client.call_tool("fail", {})
        assert failed.is_error and failed.content[0].text == "it rained", failed
        try:
            await client.call_tool("steal", {})
        except MCPError as error:
            assert error.code == -32602, error
        else:
            raise AssertionError("there is no such tool")

        parts = []

        async def progress(done, total, message):
            parts.append(message)

        counted = await client.call_tool("count", {"to": 4, "pause": 30}, progress_callback=progress)
        assert counted.content[0].text == "1 2 3 4 ", counted
        assert parts == ["1 ", "2 ", "3 ", "4 "], parts

        many = await asyncio.gather(*(client.call_tool("echo", {"n": n}) for n in range(50)))
        assert [answer.structured_content["n"] for answer in many] == list(range(50))

        waiting = asyncio.create_task(client.call_tool("wait", {}))
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert (await client.call_tool("add", {"title": "after"})).structured_content == {"added": "after"}
    print("done")


asyncio.run(main())
