"""What gunicorn serves in these tests: each path is a case, its answer what a hedged call in this worker came to."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from tests.prefork.rescuing import Rescuer, end_with_starter

__all__ = ["application"]

end_with_starter()
RESCUER = Rescuer()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The WSGI application."""
    body = json.dumps(RESCUER.rescue(environ["PATH_INFO"])).encode()
    start_response("200 OK", [("content-type", "application/json"), ("content-length", str(len(body)))])
    return [body]
