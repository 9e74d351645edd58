"""Templates filled in: they lay out what was computed, and escape all text."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from psem_model.pages.words import marked
from psem_model.text.figures import counted
from psem_model.text.html import text
from psem_model.text.report import Prose

TEMPLATES = "templates"


@cache
def _environment() -> Environment:
    loader = PackageLoader("psem_model.pages", TEMPLATES)
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "counted": counted,
        "inlined": lambda name: Markup(loader.get_source(made, name)[0]),  # a file of ours
    }
    made.filters |= {
        "marked": _marked,
        "formula": _formula,
        "prose": _prose,
        "breakable": _breakable,
    }
    return made


def _plain(value: Any) -> Any:
    """A whole number without a point, as a place in a picture is written."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _breakable(name: str) -> Markup:
    """A long name, in which a line may end after an underscore."""
    return Markup("_<wbr>").join(name.split("_"))


def _formula(expression: Any) -> Markup:
    return Markup(text(expression))


def _prose(said: str) -> Markup:
    """A sentence whose mathematics is set."""
    return Markup(text(Prose(said)))


@pass_context
def _marked(context: Context, line: str) -> Markup:
    """A line with links to the claims that are on the page."""
    return marked(line, context["by_id"])


def packed(found: Any) -> str:
    """What a browser unpacks: JSON, deflated, in base64."""
    data = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    return b64encode(zlib.compress(data, 9)).decode()


def filled(template: str, **values: Any) -> str:
    """A template with these values."""
    return _environment().get_template(template).render(**values)
