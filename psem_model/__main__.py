"""`psem`, and `python -m psem_model`, the same."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it loads is one line too."""
    try:
        from psem_model.commands.cli import main as run
    except KeyboardInterrupt:
        sys.stderr.write("psem: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
