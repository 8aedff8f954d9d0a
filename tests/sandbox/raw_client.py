"""A client of the sandbox on bare sockets: sees chunks, segments and how a connection ends."""

import json
import socket
import struct
import time
from urllib.parse import urlsplit

PATIENCE_S = 60.0


def connect(sandbox):
    parts = urlsplit(sandbox.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE_S)


def request(*, script=None, case=None, path="/v1/chat/completions", headers=None, **body):
    """The bytes of a POST; without a body of its own a small chat."""
    if "chat" in path:
        body = {"model": "m", "messages": [{"role": "user", "content": "Tell me."}]} | body
    payload = json.dumps(body).encode()
    lines = {"host": "sandbox", "content-type": "application/json", "content-length": len(payload)}
    if script is not None:
        lines["x-sandbox-script"] = json.dumps(script if isinstance(script, list) else [script])
    if case is not None:
        lines["x-sandbox-case"] = case
    head = "".join(f"{name}: {value}\r\n" for name, value in (lines | (headers or {})).items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + payload


def send(sandbox, **asked):
    """A socket on which the request has been sent."""
    sock = connect(sandbox)
    sock.sendall(request(**asked))
    return sock


class Response:
    """One answer, read to its end: `ending` is "end" (as framed), "fin" or "rst"."""

    def __init__(self, sock):
        self._sock, self._buffer, self.received = sock, b"", b""
        self.chunks, self.body, self.ending = [], b"", "end"
        self.status, self.headers = None, {}
        try:
            self._read()
        except EOFError:
            self.ending = "fin"
        except ConnectionResetError:
            self.ending = "rst"

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def data(self):
        """The data of all events, decoded but for [DONE]."""
        found = [line[6:] for line in self.text.splitlines() if line.startswith("data: ")]
        return [line if line == "[DONE]" else json.loads(line) for line in found]

    @property
    def deltas(self):
        return [choice["delta"] for data in self.data if data != "[DONE]" for choice in data.get("choices", ())]

    def said(self, key="content"):
        return [delta[key] for delta in self.deltas if delta.get(key)]

    def _read(self):
        head = self._through(b"\r\n\r\n").decode("latin-1").split("\r\n")
        self.status = int(head[0].split()[1])
        self.headers = {line.split(": ", 1)[0]: line.split(": ", 1)[1] for line in head[1:] if line}
        if self.headers.get("transfer-encoding") == "chunked":
            while size := int(self._through(b"\r\n"), 16):
                self.chunks.append(self._exactly(size))
                self.body += self.chunks[-1]
                self._exactly(2)
            self._exactly(2)
        else:
            for _ in range(int(self.headers.get("content-length", 0))):
                self.body += self._exactly(1)

    def _through(self, end):
        while end not in self._buffer:
            self._more()
        taken, _, self._buffer = self._buffer.partition(end)
        return taken

    def _exactly(self, count):
        while len(self._buffer) < count:
            self._more()
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def _more(self):
        data = self._sock.recv(65536)
        if not data:
            raise EOFError
        self._buffer += data


def ask(sandbox, **asked):
    """Send, read all, close."""
    with send(sandbox, **asked) as sock:
        return Response(sock)


def leave_with_reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def poll(question, wanted=True):
    """Asks until the answer is `wanted`; with a generous limit."""
    until = time.monotonic() + PATIENCE_S
    while (answer := question()) != wanted:
        assert time.monotonic() < until, f"still {answer!r}, not {wanted!r}"
        time.sleep(0.005)


def entry(sandbox, case, number=0):
    return sandbox.stats()["cases"][case][number]
