"""Options of a function, by the names of its command's, and refused where the command refuses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from psem_model.text.errors import BadInput, choose, refused

Value = str | int | float | bool | None

# a function returns a report, and writes no file
OF_OUTPUT = ("form", "as_json", "html", "two_column", "preamble", "every", "folder")


def typed(
    command: click.Command, words: Mapping[str, object], given: Mapping[str, Any]
) -> dict[str, Any]:
    """What a command would be called with: its parameters, by their names, those left out too.

    `words`: what stands without an option, by what it is called. `given`: options; None: left out.
    Raises BadInput for a name or a value that the command does not have.
    """
    arguments = [word(what, each) for what, each in words.items()]
    options = list(_spelled(command, given))
    try:
        context = command.make_context(command.name, [*options, "--", *arguments])
    except click.UsageError as error:
        raise BadInput(error.format_message()) from None
    return {name: value for name, value in context.params.items() if name not in OF_OUTPUT}


def word(what: str, given: object) -> str:
    """A word that stands without an option. Raises BadInput for what is not a string."""
    if not isinstance(given, str):
        raise refused(what, given, "a string")
    return given


def _spelled(command: click.Command, given: Mapping[str, Any]) -> Iterator[str]:
    """Options as they are typed."""
    known: dict[str, tuple[click.Option, str]] = {}
    for param in command.params:
        if isinstance(param, click.Option) and param.name not in OF_OUTPUT:
            spelled = (*param.opts, *param.secondary_opts)
            known |= {each.lstrip("-").replace("-", "_"): (param, each) for each in spelled}
            known.setdefault(str(param.name), (param, param.opts[-1]))
    seen: dict[click.Option, str] = {}
    for name, value in given.items():
        if name not in known:
            choose(str(command.name), name, known)
        param, option = known[name]
        if value is None:
            continue
        if param in seen:
            raise BadInput(f"{name}: given with {seen[param]}; expected one of the two")
        seen[param] = name
        if not param.is_flag:
            yield f"{option}={_value(name, value)}"
        elif not isinstance(value, bool):
            raise refused(name, value, "True or False")
        elif value:
            yield option
        elif param.secondary_opts:  # it has an opposite
            yield from {*param.opts, *param.secondary_opts} - {option}


def _value(name: str, value: object) -> str:
    """A value as it would be typed; 7e9 is a whole number."""
    if isinstance(value, bool | list | tuple | dict | set):
        raise refused(name, value, "a number or a string")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
