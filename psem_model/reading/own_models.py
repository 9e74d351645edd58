"""A model of one's own from a TOML file: its parts, forward alone, as one device does them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from psem_model.reading.part_reader import PartReader, require_own_weights
from psem_model.reading.toml_lines import File, Path, content_of, shown
from psem_model.reading.words import MOST_LAYERS
from psem_model.text.files import read_text
from spec.derivation.nesting import one_by_one
from spec.devices.layouts import LayoutError
from spec.meaning.terms import Terms, differentiated
from spec.models.custom import Custom
from spec.models.transformer import is_layer
from spec.models.values import Part
from spec.plans.model_strategies import POSITIONS, SAMPLES

FORM = "a model's parts in TOML, as examples/models/ has them"
PIPELINE = "pipeline"  # what reports say of stages
TOP = ("layers", "parts", "sizes")
OPTIONS = {SAMPLES: "--micro-batch", POSITIONS: "--sequence"}  # that say how many values an index has
ONE_BY_ONE = "one new name for each index: tokens go to experts in models of --experts or --config"


def read(path: str) -> Custom:
    """The model that a file says. Raises BadInput with one line."""
    text = read_text(path, FORM)
    return _Model(File(path, text.replace("\r\n", "\n"), content_of(text, path, FORM))).model()


class _Model:
    """A file, and where what it says is."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.places: dict[Any, Path] = {}

    def model(self) -> Custom:
        file, content = self.file, self.file.content
        if "parts" not in content:
            raise file.missing((), "parts", 'parts = ["embedding", "layer", "head"]: tables, in order')
        names = [file.typed(("parts",), n, str) for n in file.typed(("parts",), content["parts"], list)]
        if not names:
            raise file.wrong(("parts",), "none", "one part or more")
        for name in names:
            if name in (*TOP, PIPELINE):
                raise file.wrong(("parts",), shown(name), "another name for a part, such as layer")
        file.table((), content, (*TOP, *names))
        parts = tuple(map(self.part, file.once(("parts",), names, "part")))
        layers = self.layers(parts)
        self.require_chain(parts)
        require_own_weights(file, parts)
        self.require_alike(parts)
        lengths = self.lengths(parts)
        self.require_no_samples(parts, lengths)
        return Custom(parts, layers, tuple(lengths.items()))

    def part(self, name: str) -> Part:
        """One part. Each weight must have a gradient, by the chain rule."""
        if name not in self.file.content:
            raise self.file.missing((), name, f"a table [{name}], as it is in parts")
        part = PartReader(self.file, self.places, name, ()).part()
        for number, operation in enumerate(part.operations):
            if len([*one_by_one(operation)]) < len(operation.renamed):
                raise self.file.wrong((name, "forward", number, "names"), str(operation), ONE_BY_ONE)
        try:
            differentiated(part, Terms())
        except LayoutError as error:
            raise self.file.wrong((name,), str(error), "weights and inputs that all count") from None
        return part

    def require_chain(self, parts: tuple[Part, ...]) -> None:
        """Raise BadInput unless each part takes what the part before it gives; and a layer, its own."""
        first, *_, last = (*parts, parts[-1])
        if not last.gives.indices:
            expected = "a value with an index: the loss of each sample"
            raise self.file.wrong((last.name, "gives"), str(last.gives), expected)
        if first.takes or is_layer(first.name):
            expected = "a first part that takes nothing, and is no layer: it begins with constants"
            raise self.file.wrong(("parts",), shown(first.name), expected)
        for before, part in pairwise(parts):
            if part.takes is None:
                expected = f'takes = "...": what {before.name} gives, {before.gives}'
                raise self.file.missing((part.name,), "takes", expected)
            if part.takes.indices != before.gives.indices:
                expected = f"the indices of what {before.name} gives, {before.gives}"
                raise self.file.wrong((part.name, "takes"), str(part.takes), expected)
            if part.takes.width != before.gives.width:
                expected = f"{before.gives.width} bytes an element, as of {before.gives}"
                raise self.file.wrong((part.name, "takes"), f"{part.takes.width}", expected)
            if is_layer(part.name) and part.takes.width != part.gives.width:
                expected = f"{part.takes.width} bytes an element, as of {part.takes}"
                raise self.file.wrong((part.name, "gives"), f"{part.gives.width}", expected)
            if is_layer(part.name) and part.takes.indices != part.gives.indices:
                expected = f"the indices of what the layer takes, {part.takes}"
                raise self.file.wrong((part.name, "gives"), str(part.gives), expected)

    def require_alike(self, parts: tuple[Part, ...]) -> None:
        """Raise BadInput for a weight of two parts, of two shapes."""
        known: dict[str, tuple[Part, tuple[str, ...]]] = {}
        for part in parts:
            for weight in part.weights:
                other, indices = known.setdefault(weight.name, (part, weight.indices))
                if indices != weight.indices:
                    expected = f"{weight.name}[{' '.join(indices)}], as in {other.name}"
                    raise self.file.wrong((part.name, "weights"), str(weight), expected)

    def require_no_samples(self, parts: tuple[Part, ...], lengths: Mapping[str, int | str]) -> None:
        """Raise BadInput for a weight that has as many elements more as there are samples."""
        names = {index: other for index, other in lengths.items() if isinstance(other, str)}
        for part in parts:
            for weight in part.weights:
                if any(_length(index, names, lengths) == SAMPLES for index in weight.indices):
                    expected = f"a weight that all samples share: without {SAMPLES}, by any name"
                    raise self.file.wrong((part.name, "weights"), str(weight), expected)

    def layers(self, parts: tuple[Part, ...]) -> int:
        """How often the layer is there."""
        names = [part.name for part in parts if is_layer(part.name)]
        if len(names) > 1:
            expected = f"one part whose name ends in layer, beside {names[0]}"
            raise self.file.wrong(("parts",), shown(names[1]), expected)
        if "layers" not in self.file.content:
            return len(names)
        found = self.file.typed(("layers",), self.file.content["layers"], int)
        if not names:
            raise self.file.wrong(("layers",), shown(found), "no layers: no part's name ends in layer")
        return self.length(("layers",), found, MOST_LAYERS)

    def length(self, path: Path, value: Any, most: int = 10**12) -> int:
        """A whole number of 1 or more."""
        found = self.file.typed(path, value, int)
        if not 1 <= found <= most:
            raise self.file.wrong(path, f"{found:,}", f"a number from 1 to {most:,}")
        return found

    def lengths(self, parts: tuple[Part, ...]) -> dict[str, int | str]:
        """Of each index how many values it has, or the index that it is another name of."""
        names, found = dict[str, str](), dict[str, None]()
        renamed: list[tuple[Path, str, str]] = []
        for part in parts:
            for number, operation in enumerate(part.operations):
                found |= dict.fromkeys(index for value in operation.reads for index in value.indices)
                for old, new in one_by_one(operation):
                    renamed.append(((part.name, "forward", number, "names"), old, new))
                    if new not in found:
                        names[new] = old
                found |= dict.fromkeys(operation.makes.indices)
        lengths: dict[str, int | str] = dict(self.sizes([i for i in found if i not in names], names))
        for path, old, new in renamed:
            one, other = (_length(index, names, lengths) for index in (old, new))
            if one != other:
                given = f"{old} -> {new}, which are {one} and {other}"
                raise self.file.wrong(path, given, "an index with as many values")
        return lengths | names

    def sizes(self, indices: list[str], names: Mapping[str, str]) -> Iterator[tuple[str, int]]:
        """How many values these indices have, as the file says."""
        given = self.file.typed(("sizes",), self.file.content.get("sizes", {}), dict)
        for index, value in given.items():
            at = ("sizes", index)
            if index in OPTIONS:
                raise self.file.wrong(at, shown(value), f"none: {OPTIONS[index]} says it")
            if index in names:
                raise self.file.wrong(at, shown(value), f"none: it is another name of {names[index]}")
            self.file.choose(at, index, [i for i in indices if i not in OPTIONS])
        for index in indices:
            if index not in OPTIONS:
                if index not in given:
                    expected = f"{index} = ...: how many values the index has"
                    raise self.file.missing(("sizes",) if given else (), index, expected)
                yield index, self.length(("sizes", index), given[index])


def _length(index: str, names: Mapping[str, str], lengths: Mapping[str, int | str]) -> int | str:
    """How many values an index has, or the index whose option says it."""
    while index in names:
        index = names[index]
    return lengths.get(index, index)
