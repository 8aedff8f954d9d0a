"""A loopback stand-in for the mock server that the SDKs' suites name (Steady, with the provider's OpenAPI file).

Neither is in the source packages, nor on npm or PyPI. So what an endpoint answers is read from the SDK itself: each method of its
resources says path and model, and the answer is a small value that fits that model's JSON schema. A request that asks for a
stream gets an empty one, since the suites that use the server only open and close it. Requests are not validated.

    python stand_in.py openai PORT
"""

import ast
import importlib
import json
import re
import sys
import typing
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter

from hedgerow.sandbox.instances import NoInstanceError, instance_of

__all__ = ["Endpoint", "Handler", "endpoints", "serve"]

METHODS = {
    "_get": "GET",
    "_post": "POST",
    "_put": "PUT",
    "_patch": "PATCH",
    "_delete": "DELETE",
    "_get_api_list": "GET",
}
HEALTH = "/_stand_in/health"


class Endpoint:
    """One method's address and what it answers: a model, nothing, or bytes."""

    def __init__(self, method: str, path: str, expected: Any) -> None:
        self.method, self.path = method, path
        # {model} stands for one step, or what a step begins with; longer literal paths are tried first.
        self.matches = re.compile("".join("[^/]+" if part[0] == "{" else re.escape(part) for part in _parts(path)))
        self.expected = expected
        self._body: bytes | None = None

    def body(self) -> tuple[str, bytes]:
        """Content type and bytes."""
        if self.expected is None or self.expected is type(None):
            return "application/json", b""
        if self._body is None:
            self._body = self._made()
        return ("application/json", self._body) if self._body is not None else ("application/octet-stream", b"bytes")

    def _made(self) -> bytes | None:
        if self.expected is str:
            return b'"text"'
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of defaults that have no JSON: none of them is used
            try:
                schema = TypeAdapter(self.expected).json_schema(mode="serialization", by_alias=True)
            except Exception as error:  # said to whoever runs the suite: its tests then fail bare, too
                print(f"{self.method} {self.path}: {self.expected} has no schema: {error!r}"[:300], file=sys.stderr)
                return None
        try:
            return json.dumps(instance_of(schema)).encode()
        except NoInstanceError as error:
            print(f"{self.method} {self.path}: {error}"[:300], file=sys.stderr)
            return None


def endpoints(sdk: str) -> list[Endpoint]:
    """All that an SDK's resources call, the plainest address first."""
    package = importlib.import_module(f"{sdk}.resources")
    found: list[Endpoint] = []
    for path in sorted(Path(package.__file__ or "").parent.rglob("*.py")):
        name = ".".join(path.relative_to(Path(package.__file__ or "").parents[2]).with_suffix("").parts)
        module = importlib.import_module(name.removesuffix(".__init__"))
        found += [made for node in ast.walk(ast.parse(path.read_text())) if (made := _endpoint(node, module))]
    return sorted(found, key=lambda each: (each.path.count("{"), -len(each.path)))


def _endpoint(node: ast.AST, module: ModuleType) -> Endpoint | None:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in METHODS:
        return None
    path = _path(node.args[0]) if node.args else None
    named = {each.arg: each.value for each in node.keywords}
    expected = named.get("page") or named.get("cast_to")
    if path is None or expected is None:
        return None
    if isinstance(expected, ast.Call):  # cast(Any, Union[…])
        expected = expected.args[-1]
    try:
        kind = eval(ast.unparse(expected), vars(typing) | vars(module))
    except (NameError, AttributeError, TypeError):
        return None
    if "Binary" in getattr(kind, "__name__", "") or getattr(kind, "__name__", "") in ("Response", "object"):
        kind = bytes
    return Endpoint(METHODS[node.func.attr], path.partition("?")[0], kind)


def _path(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call) and node.args:  # path_template("/models/{model}", model=model)
        node = node.args[0]
    if isinstance(node, ast.IfExp):
        node = node.body
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{x}" for part in node.values)
    return None


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"(\{[^}]*\})", path) if part]


class Handler(BaseHTTPRequestHandler):
    """Answers out of `known`."""

    protocol_version = "HTTP/1.1"
    known: typing.ClassVar[list[Endpoint]] = []

    def _answer(self) -> None:
        asked = self._body()
        path = self.path.partition("?")[0]
        if path == HEALTH:
            return self._send(200, "text/plain", b"ready")
        found = next(
            (each for each in self.known if each.method == self.command and each.matches.fullmatch(path)), None
        )
        if found is None:
            return self._send(404, "application/json", json.dumps({"error": {"message": f"no {path} here"}}).encode())
        if re.search(rb'"stream":\s*true', asked):
            return self._send(200, "text/event-stream", b"")
        return self._send(200, *found.body())

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        whole = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Thousands of lines say nothing."""


def serve(sdk: str, port: int) -> None:
    """Until the process is ended."""
    Handler.known = endpoints(sdk)
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    print(f"{len(Handler.known)} endpoints of {sdk} on {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
