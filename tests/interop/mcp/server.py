"""An MCP server made with the official package from PyPI, to be mounted."""

import base64
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ImageContent

server = MCPServer("lab", version="3.1", instructions="Add what you like.")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    print(f"adding {a} and {b}", file=sys.stderr)
    return a + b


@server.tool(structured_output=False)
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello {name}"


@server.tool(structured_output=False)
def picture() -> ImageContent:
    """Shows something."""
    return ImageContent(type="image", mime_type="image/png", data=base64.b64encode(b"hi").decode())


@server.tool()
def fail() -> int:
    """Fails."""
    raise ToolError("it rained")


server.run("stdio")
