"""`python -m psem_model.notebooks.executed docs/example.ipynb` runs a notebook's cells, in place.

Its cells are plain Python, so that no kernel is needed: of each, the last expression is its output.
"""

from __future__ import annotations

import ast
import json
import sys
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from psem_model.text.files import write_atomically


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells, which are run in order and share their names.

    In a folder of their own: a cell reads no file but what one before it wrote.
    """
    names: dict[str, Any] = {}
    cells, number = [], 0
    with TemporaryDirectory() as folder, chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                number += 1
                outputs = _outputs("".join(cell["source"]), names, number)
                cell = cell | {"execution_count": number, "outputs": outputs}
            cells.append(cell)
    return notebook | {"cells": cells}


def _outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with redirect_stdout(StringIO()) as said:
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    found: list[dict[str, Any]] = []
    if said.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": _lines(said.getvalue())})
    if value is not None:
        html = getattr(value, "_repr_html_", None)
        data = {"text/html": _lines(html())} if html else {}
        data["text/plain"] = _lines(str(value) if html else repr(value))
        found.append(
            {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        )
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def written(notebook: dict[str, Any]) -> str:
    """A notebook as Jupyter writes it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        write_atomically(path, written(executed(json.loads(path.read_text(encoding="utf-8")))))
