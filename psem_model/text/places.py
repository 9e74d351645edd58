"""Where files are: those that are installed with the packages, and those that commands write."""

from __future__ import annotations

from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2]  # the folder of spec, proofs and psem_model
EXAMPLES = PACKAGES / "psem_model" / "examples"  # schedules; in configurations/, shapes of models

IS_CHECKOUT = (PACKAGES / "pyproject.toml").is_file()
BUILD = (PACKAGES if IS_CHECKOUT else Path()) / "build"  # an installed copy's: where it is run
