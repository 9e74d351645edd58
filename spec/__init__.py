"""The specification: what is claimed, in definitions only.

Rooms in reading order, each of which uses only those before it: numbers, devices, models, language,
plans, meaning, derivation, checking, costs, pipelines, choosing; and `assumptions`. docs/SPEC.md has
the order of files.

Every rule is written once, over plain arithmetic, so the same definition is evaluated with whole
numbers, fractions, NumPy arrays, SymPy symbols and Z3 terms.
"""
