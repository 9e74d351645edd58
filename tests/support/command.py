"""`psem predict` in this process, for tests that ask for many predictions."""

import io
import json
from contextlib import redirect_stdout
from functools import cache

from psem_model.commands.cli import predict


@cache
def predicted(strategy, **options):
    """What `psem predict STRATEGY --json` prints; an option without a value is None."""
    given = [(f"--{name}", value) for name, value in options.items()]
    args = [str(word) for pair in given for word in pair if word is not None]
    with redirect_stdout(io.StringIO()) as out:
        predict.main([strategy, "--json", *args], standalone_mode=False)
    return json.loads(out.getvalue())
