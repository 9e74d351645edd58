"""Help and completion: names that help shows and TAB completes, options in groups, examples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

import click
from click.shell_completion import CompletionItem

from psem_model.text.errors import BadInput, choose, refused
from psem_model.text.lines import wrapped


class Word(click.ParamType[str]):
    """A word that a command reads: what help calls it, and the names that complete it.

    `names`: the module that has them, and what they are called there; imported where help, completion
    or a check asks for them. `only`: nothing but these names is taken, and help shows them. `file`:
    names of files complete it. `instead`: what is expected in place of a name that is not taken.
    """

    def __init__(
        self,
        name: str,
        names: str = "",
        only: bool = False,
        file: bool = False,
        instead: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.name, self.place, self.only, self.file = name, names, only, file
        self.instead = instead

    def names(self) -> Iterable[str]:
        """The names themselves."""
        module, _, name = self.place.partition(":")
        found = getattr(import_module(module), name) if name else ()
        return found() if callable(found) else found

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(self.names())}]" if self.only else self.name

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """What was typed. Raises BadInput for nothing, or for another name than those it may be."""
        if param is None or value == param.default:
            return value
        if value in self.instead:
            raise refused(param.opts[-1], value, self.instead[value])
        if self.only:
            return choose(param.opts[-1], value, self.names())
        if value == "" and isinstance(param, click.Option):
            raise BadInput(f"{param.opts[-1]}: given ''; expected: {param.help}")
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        found = [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]
        return [*found, CompletionItem(incomplete, type="file")] if self.file else found


class Switch(click.types.BoolParamType):
    """A flag that the environment may set, too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Whether it is set. Raises BadInput for another value of the environment's."""
        try:
            return super().convert(value, None, None)
        except click.BadParameter:
            name = param.envvar if param else ""
            raise refused(str(name), value, "1 or 0") from None


class Grouped(click.Option):
    """An option of a group."""

    def __init__(self, *args: Any, group: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.group = group


def option(group: str, *names: str, **settings: Any) -> Callable[[Any], Any]:
    """An option, under the title of a group in the help, which shows its default if it has one."""
    shown = "default" in settings
    return click.option(*names, cls=Grouped, group=group, show_default=shown, **settings)


def grouped(command: click.Command, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
    """The options of a command by the titles of their groups: what is typed, and what it does."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if isinstance(parameter, click.Option) and record:
            groups.setdefault(getattr(parameter, "group", OTHER), []).append(record)
    return groups


class Command(click.Command):
    """A command whose help has its options in groups, and ends in examples."""

    def __init__(self, *args: Any, examples: Sequence[str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)

    def get_short_help_str(self, limit: int = 0) -> str:
        """The first sentence of its help, whole."""
        return " ".join((self.help or "").partition("\n\n")[0].split()).removesuffix(".")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What it does, paragraph by paragraph; names are not broken at their hyphens."""
        for paragraph in inspect.cleandoc(self.help or "").split("\n\n"):
            lines = wrapped(" ".join(paragraph.split()), " " * formatter.indent_increment)
            formatter.write("".join(f"{line}\n" for line in ("", *lines)))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The groups, in the order of their first options."""
        for title, records in grouped(self, ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, each on a line of its own."""
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for example in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


OTHER = "Other options"
