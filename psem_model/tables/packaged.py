"""The table of packaged models, with their parameters."""

from __future__ import annotations

from psem_model.reading.configurations import packaged, read
from psem_model.tables.table import Style, table
from psem_model.text.report import Column, Section, note
from spec.costs.model_costs import parameters


def packaged_models(style: Style) -> Section:
    """Models that --model takes by name, with their sizes, family by family."""
    rows = []
    for name, path in packaged().items():
        family, model = read(str(path))
        sizes = (model.layers, model.hidden, sum(parameters(model).values()))
        rows.append((family, name, *(f"{size:,}" for size in sizes)))
    titles = ("layers", "hidden", "parameters")
    return table(
        "models",
        "Packaged models",
        (Column("family", 1), Column("model", 1.5), *(Column(title, 1) for title in titles)),
        sorted(rows),
        [note("Parameters: elements of weights, tied words once.", columns=["parameters"])],
        long=True,
        headed=True,
    )
