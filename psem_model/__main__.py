"""`psem`, and `python -m psem_model`, the same."""

from __future__ import annotations

import gc
import sys

MADE = 100_000  # objects, before Python looks for those that may go: most stay to a command's end


def main() -> None:
    """Run the command line; Ctrl-C while it loads is one line too."""
    gc.set_threshold(MADE)
    try:
        from psem_model.commands.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("psem: interrupted\n")
        sys.exit(130)
    try:
        run()
    finally:
        gc.freeze()  # nor does it look for them when the command ends


if __name__ == "__main__":
    main()
