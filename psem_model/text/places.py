"""Where files are: those that are installed with the package, and those that commands write."""

from __future__ import annotations

from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2]  # the folder of spec, proofs and psem_model
EXAMPLES = PACKAGES / "psem_model" / "examples"  # schedules; configurations of models


def _is_checkout(folder: Path) -> bool:
    return (folder / "pyproject.toml").is_file()


# a checkout's own; of an installed copy, that of the current directory
BUILD = PACKAGES / "build" if _is_checkout(PACKAGES) else Path("build")
