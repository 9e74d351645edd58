"""What options and arguments take; the names among it are looked up where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable

from psem_model.commands.help import Word


def _strategies() -> Iterable[str]:
    from psem_model.reading.products import NAMES

    return NAMES


def _policies() -> Iterable[str]:
    from spec.states import POLICIES

    return POLICIES


def _parts() -> Iterable[str]:
    from spec.transformer import EMBEDDING, HEAD, LAYER

    return EMBEDDING, LAYER, HEAD


def _blocks() -> Iterable[str]:
    from psem_model.reading.shapes import BLOCKS

    return BLOCKS


def _recomputed() -> Iterable[str]:
    from psem_model.predict.model_plans import RECOMPUTE

    return RECOMPUTE


def _orders() -> Iterable[str]:
    from spec.pipeline import Kind

    return (kind.value for kind in Kind)


def _configurations() -> Iterable[str]:
    from psem_model.reading.configurations import packaged

    return packaged()


def _claims() -> Iterable[str]:
    from proofs.registry import claims

    return (claim.id for claim in claims())


def _forms() -> Iterable[str]:
    from psem_model.commands.output import FORMS

    return FORMS


def _arithmetics() -> Iterable[str]:
    from psem_model.measure.measured import ARITHMETICS

    return ARITHMETICS


def _tables() -> Iterable[str]:
    from psem_model.tables.files import TABLES

    return TABLES


FILE = Word("FILE", file=True)
A_CONFIG = Word("FILE|NAME", _configurations, file=True)
FOLDER = Word("FOLDER", file=True)
NUMBER = Word("N")
PARAMETERS = Word("PARAMETERS")
ELEMENTS = Word("ELEMENTS")
LAYERS_BY_WIDTH = Word("LAYERSxWIDTH")
A_STRATEGY = Word("STRATEGY", _strategies)
A_CLAIM = Word("CLAIM", _claims)
A_TABLE = Word("TABLE", _tables)
A_FILE_OR_STRATEGY = Word("FILE|STRATEGY", _strategies, file=True)
A_POLICY = Word("POLICY|w,g,K", _policies)
DEVICES = Word("N[xN...]")
PART = Word("part", _parts, only=True)
BLOCK = Word("block", _blocks, only=True)
RECOMPUTED = Word("what", _recomputed, only=True)
ORDER = Word("order", _orders, only=True)
ARITHMETIC = Word("arithmetic", _arithmetics, only=True)
FORM = Word("form", _forms, only=True)
