"""All modules of the project, imported: what Hypothesis draws depends on which are.

It draws, now and then, a constant that is written in a module of the project that is imported. So a
property would draw other examples alone than after others.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

import conformance
import proofs
import psem_check
import psem_model
import spec

PACKAGES = (spec, proofs, psem_check, psem_model, conformance)
WITH_TORCH = "conformance.record"


def import_all() -> None:
    """Import every module that is no program, and needs no torch."""
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__") and not found.name.startswith(WITH_TORCH):
                import_module(found.name)
