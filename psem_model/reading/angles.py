"""Angles by which queries and keys are turned: what transformers makes none of is refused.

(transformers 5.23, modeling_rope_utils.py; models/*/configuration_*.py: convert_rope_params_to_dict,
validate_rope; models/deepseek_v3/modeling_deepseek_v3.py: yarn_apply_mscale)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from psem_model.reading.families import FAMILIES, WHOLE, Family
from psem_model.reading.fields import KNOWN, Fields
from spec.models.transformer import Transformer
from spec.numbers.arithmetic import ceil_div

SCALING, PARAMETERS = "rope_scaling", "rope_parameters"
BASE, BASE_OF_WINDOWS = "rope_theta", "rope_local_base_freq"
LENGTH, PARTIAL = "original_max_position_embeddings", "partial_rotary_factor"
LENGTHENED = "llama3", "longrope", "yarn"  # types of whose object transformers says the length itself
LISTS = {"long_factor", "short_factor"}
NO_NAMES = frozenset[str]()


@dataclass(frozen=True)
class Kind:
    """A type of angles: what an object of it `needs`, what else is read of it, and what may be null.

    `compared`: what is looked at where no angles are made of it.
    """

    needs: frozenset[str] = NO_NAMES
    reads: frozenset[str] = NO_NAMES
    or_null: frozenset[str] = NO_NAMES
    compared: frozenset[str] = NO_NAMES


KINDS = {  # those with a family's name are its default
    name: Kind(**{key: frozenset(names) for key, names in table.items()})
    for name, table in KNOWN["angles"].items()
}


@dataclass(frozen=True)
class Angles:
    """What angles of some layers are made of: objects, of a name the first that has it.

    `beside`: fields of the configuration that say what objects lack, by their names in them. `is_made`:
    angles are, else objects are compared alone. `is_filled`: an object is given what it lacks.
    """

    objects: tuple[Fields, ...]
    beside: Mapping[str, str] = field(default_factory=dict)
    is_made: bool = True
    is_filled: bool = True

    def of(self, name: str) -> Fields:
        """The object that has a name, or the last."""
        return next((each for each in self.objects if name in each.given), self.objects[-1])

    def type_(self, known: Mapping[str, str]) -> str:
        """The type's name. Raises BadInput if it is not known, where angles are made."""
        names = ("rope_type", "type") if self.is_filled else ("rope_type",)
        name = next((each for each in names if each in self.of(each).given), "rope_type")
        of = self.of(name)
        value = of.get(name, "default")
        if not self.is_made:
            return value if isinstance(value, str) and value in known else "default"
        if not self.is_filled and name not in of.given:
            raise of.missing(name, "it beside objects of kinds of layers, which are not read")
        of.require_value(name)
        return of.choice(name, value, known)


def require_angles(fields: Fields, family: Family, model: Transformer) -> None:
    """Raise BadInput where transformers makes no angles of a configuration."""
    known = family.types_of_angles or {name: name for name in KINDS if name not in FAMILIES}
    for angles in _angles(fields, family, model):
        type_ = angles.type_(known)
        kind = KINDS[known[type_]]
        _require_names(angles, kind, type_)
        _require_values(angles, kind, fields, family)
        if angles.is_made and known[type_] in family.types_of_head_dim:
            fields.size("head_dim")
        if angles.is_made:
            _require_lists(angles, known[type_], fields, family, model)
            if model.latent and type_ != "default":
                _require_factor(angles)


def _angles(fields: Fields, family: Family, model: Transformer) -> Iterator[Angles]:
    """What angles are made of, and what is only compared. Raises BadInput.

    Kinds of layers of Gemma 3 each have an object, or null, and scaling is put into that of its layers
    without windows. Elsewhere objects of kinds of layers are compared, and what is beside them counts
    as it is.
    """
    there = _kinds_of_layers(family, model)
    if model.angles_of_windows:
        yield from _of_kinds(fields, family, there)
        return
    counts = _counting(fields, family)
    inner = [kind for kind in sorted(there) if kind in counts.given]
    for kind in inner:
        if counts.get(kind) is not None:
            yield Angles((counts.inside(kind),), is_made=False)
    if inner:
        yield Angles((counts,), is_filled=False)
        return
    share = {PARTIAL: family.rotary} if family.rotary else {}
    yield Angles((counts,), {BASE: family.base, LENGTH: LENGTH, **share})


def _of_kinds(fields: Fields, family: Family, there: set[str]) -> Iterator[Angles]:
    scaling, parameters = fields.inside(SCALING), fields.inside(PARAMETERS)
    if fields.get(SCALING) is not None and fields.get(PARAMETERS) is not None:
        parameters.require_object(WHOLE, f"{SCALING} is put into it")
    for kind, base in (WHOLE, family.base), (family.windowed, BASE_OF_WINDOWS):
        is_given = parameters.get(kind) is not None
        own = parameters.inside(kind) if is_given else Fields(kind, {"rope_type": "default"})
        if kind in there:
            yield Angles((scaling, own) if kind == WHOLE else (own,), {BASE: base})


def _kinds_of_layers(family: Family, model: Transformer) -> set[str]:
    """What `layer_types` calls the layers that there are, in families that have such a field."""
    windows = (model.windows or (0,))[: int(model.layers)]
    return {family.windowed if window else WHOLE for window in windows} if family.windowed else set()


def _counting(fields: Fields, family: Family) -> Fields:
    """Of the two objects of a configuration the first that is not empty; of none, the family's own."""
    scaling, parameters = fields.inside(SCALING), fields.inside(PARAMETERS)
    if not scaling.given and fields.get(PARAMETERS) is None:
        return Fields(parameters.path, family.angles)
    return scaling if scaling.given else parameters


def _require_names(angles: Angles, kind: Kind, type_: str) -> None:
    """Raise BadInput for a name that is needed, is not there, and is not put there."""
    filled = {BASE} | ({LENGTH} if type_ in LENGTHENED else set())
    needs = kind.needs | ({BASE} if angles.is_made else set())
    for name in sorted(needs - (filled if angles.is_filled else set())):
        if name not in angles.of(name).given:
            raise angles.of(name).missing(name, f"a value, for angles of type {type_}")


def _require_values(angles: Angles, kind: Kind, fields: Fields, family: Family) -> None:
    """Raise BadInput for null, or a value of another type, where it is read."""
    reads = kind.needs | kind.reads | angles.beside.keys() - {LENGTH} | {BASE}
    for name in sorted(reads if angles.is_made else kind.compared):
        of = angles.of(name)
        is_replaced = name == LENGTH in angles.beside and (
            LENGTH in fields.given or LENGTH in family.never_null
        )
        if name not in kind.or_null and (name in kind.compared or not is_replaced):
            of.require_value(name)
        if of.given.get(name) is not None:
            of.require_type(name)
        if is_replaced or (name in angles.beside and name not in of.given):
            fields.require_value(angles.beside[name])
    if kind is KINDS["yarn"] and angles.is_made:
        is_beside = BASE not in angles.of(BASE).given and BASE in angles.beside
        of, name = (fields, angles.beside[BASE]) if is_beside else (angles.of(BASE), BASE)
        if of.get(name) == 1:
            raise of.wrong(name, "another number: yarn divides by its logarithm")


def _require_factor(angles: Angles) -> None:
    """Raise BadInput where latent attention scales scores, and there is no factor for it."""
    name = "mscale_all_dim"
    if angles.of(name).get(name):
        angles.of(name).require_type(name)
        if "factor" not in angles.of("factor").given:
            raise angles.of("factor").missing("factor", f"a value, beside {name}")
        angles.of("factor").require_value("factor")


def _require_lists(
    angles: Angles, kind: str, fields: Fields, family: Family, model: Transformer
) -> None:
    """Raise BadInput for lists of other than a factor for each pair of features.

    One factor is that of all; Phi-3 counts pairs itself, rounded down, of heads that divide.
    """
    for name in sorted((KINDS[kind].reads | KINDS[kind].needs) & LISTS):
        if (given := angles.of(name).get(name)) is None:
            continue
        lengths = {1, int(ceil_div(model.turned_features, 2))}
        if family.types_of_angles:
            of_head = fields.size("hidden_size") // fields.size("num_attention_heads")
            pairs = int(of_head * share(fields, family)) // 2
            lengths = lengths & {pairs} if kind == "longrope" else {pairs}
        if len(given) not in lengths:
            count = " or ".join(str(length) for length in sorted(lengths)) or "other"
            raise angles.of(name).wrong(name, f"a list of {count} number{'s' * (lengths != {1})}")


def share(fields: Fields, family: Family) -> float:
    """The share of a head's features that is turned. Raises BadInput if that may not be."""
    found = fields.share(family.rotary, family.rotary_share) if family.rotary else 1.0
    if family.rotary:
        found = _counting(fields, family).share(PARTIAL, found)
    for each in map(fields.inside, (PARAMETERS, SCALING)):
        inner = [each.inside(name) for name, value in each.given.items() if isinstance(value, dict)]
        for of in inner if family.rotary else [each, *inner]:
            if of.share(PARTIAL, 1.0) != 1:
                raise of.wrong(PARTIAL, "1: this model turns all features of a head")
    if family.rotary != PARTIAL:
        fields.only(PARTIAL, found)
    return found


def turned(fields: Fields, family: Family, head_dim: int) -> int | None:
    """How many features of a head are turned, in pairs; None: all of them.

    (compute_default_rope_parameters: cosines of a share of the features, rounded up;
    _compute_proportional_rope_parameters: of all)
    """
    of, found = _counting(fields, family), share(fields, family)
    if found == 1 or of.get("rope_type", of.get("type")) == "proportional":
        return None
    return 2 * int(ceil_div(int(head_dim * found), 2))
