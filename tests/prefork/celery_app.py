"""What the Celery worker of these tests runs: a task that makes a hedged call with the module's client."""

from typing import Any

from tests.prefork.file_broker import TASK, queue_of_environment
from tests.prefork.rescuing import Rescuer, end_with_starter

__all__ = ["app"]

end_with_starter()
RESCUER = Rescuer()
app = queue_of_environment()


@app.task(name=TASK)
def rescue(case: str) -> dict[str, Any]:
    """Each case is one call."""
    return RESCUER.rescue(case)
