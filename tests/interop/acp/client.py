"""Drives an agent with the official Python SDK: a prompt whose tool call is allowed, and the same refused."""

import asyncio
import json
import os
import sys

import acp
from acp.schema import AllowedOutcome, RequestPermissionResponse


class Client(acp.Client):
    def __init__(self):
        self.updates = []
        self.answers = ["allow", "refuse"]

    async def request_permission(self, options, session_id, tool_call, **_):
        outcome = AllowedOutcome(outcome="selected", option_id=self.answers.pop(0))
        return RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    def on_connect(self, conn):
        pass


async def main():
    client = Client()
    environment = {name: os.environ[name] for name in ("HOME", "PATH", "PI_CODING_AGENT_DIR")}
    process = acp.spawn_agent_process(client, *sys.argv[1:], env=environment)
    async with process as (connection, _):
        await connection.initialize(protocol_version=1)
        session = await connection.new_session(cwd=os.getcwd(), mcp_servers=[])
        for name in ("allowed", "refused"):
            answer = await connection.prompt(
                session_id=session.session_id, prompt=[acp.text_block("list the files")]
            )
            statuses = [it.status for it in client.updates if getattr(it, "status", None)]
            print(json.dumps([name, [answer.stop_reason, statuses[-1]]]), flush=True)


asyncio.run(main())
