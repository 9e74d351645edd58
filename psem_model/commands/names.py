"""What options and arguments take; the names among it are looked up where they are asked for."""

from __future__ import annotations

from psem_model.commands.help import Switch, Word

FILE = Word("FILE", file=True)
A_CONFIG = Word("FILE|NAME", "psem_model.reading.configurations:packaged", file=True)
FOLDER = Word("FOLDER", file=True)
NUMBER = Word("N")
SWITCH = Switch()
PARAMETERS = Word("PARAMETERS")
ELEMENTS = Word("ELEMENTS")
LAYERS_BY_WIDTH = Word("LAYERSxWIDTH")
STRATEGIES = "psem_model.reading.products:NAMES"
A_STRATEGY = Word("STRATEGY", STRATEGIES)
A_CLAIM = Word("CLAIM", "psem_model.reading.claims:ids")
A_TABLE = Word("TABLE", "psem_model.tables.files:TABLES")
A_FILE_OR_STRATEGY = Word("FILE|STRATEGY", STRATEGIES, file=True)
A_POLICY = Word("POLICY|w,g,K", "spec.models.states:POLICIES")
A_PROFILE = Word("FILE|NAME", "psem_model.reading.profiles:packaged", file=True)
BYTES = Word("BYTES")
DEVICES = Word("N[xN...]")
PART = Word("part", "psem_model.predict.programs:PARTS", only=True)
BLOCK = Word("block", "psem_model.reading.shapes:BLOCKS", only=True)
RECOMPUTED = Word("what", "psem_model.predict.cuts:RECOMPUTE", only=True)
ORDER = Word("order", "psem_model.predict.cuts:ORDERS", only=True)
ARITHMETIC = Word("arithmetic", "psem_model.measure.measured:ARITHMETICS", only=True)
FORM = Word("form", "psem_model.commands.output:FORMS", only=True)
