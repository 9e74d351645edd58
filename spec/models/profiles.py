"""Profiles: how a system realises a placement, where it does otherwise than the textbook.

A placement says where values are. A profile says of which type they are, in which units states pass,
what runs as one kernel, and what backward makes again. The derivation reads it; the textbook changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from spec.models.differences import Difference
from spec.models.layers import NONE_HELD, HeldUnits
from spec.models.parts import BESIDE_OPERATIONS, BESIDE_ROUTES, MASK, PRODUCTS_IN_FULL, Model, parts
from spec.models.states import BytePolicy, State
from spec.models.transformer import Transformer
from spec.models.values import FULL, LOG_TOTAL, WRITTEN, Builder, Does, Operation, Part, Role, Value
from spec.numbers.arithmetic import Number

COUNT_BYTES = 4  # of how many steps were made, or of how many tokens a loss is the mean
NORM_FUNCTIONS = frozenset({"layer_norm", "rms_norm"})
CROSS_ENTROPY = "cross_entropy"  # which textbooks compute in fp32, of logits that are
# functions that transformers composes of several operations, and how many arrays these keep but for one
BETWEEN = {"clamped_silu": 2, "gelu_fast": 6, "gelu_new": 3, "gelu_python": 2}


class Units(Enum):
    """What is gathered, or reduced, at a time; of several parts from the first's turn to the last's."""

    LARGEST = "largest"  # as if all units were as large as the largest part
    LAYER = "layer"  # each layer, the embedding, the head
    ROOT = "root"  # each layer, and all else together
    PARAMETER = "parameter"  # each weight
    BUCKET = "bucket"  # weights from the last to the first, until there are so many bytes


class Samples(Enum):
    """Whose numbers are kept for backward: of tokens, and of their places or cosines and sines."""

    NONE = "none"  # they are not counted
    MICRO_BATCH = "micro-batch"
    STEP = "step"  # tokens of a micro-batch are a view of those of the whole step
    GIVEN = "given"  # of what is given at a time: a micro-batch, or to a pipeline the step


class Padding(Enum):
    """What is cut between devices, and padded."""

    ELEMENT = "element"  # each unit, as one flat vector
    ROW = "row"  # each weight, by rows of its first dimension
    WEIGHT = "weight"  # none: each weight is updated by one device, where optimizer state is cut
    VECTOR = "vector"  # all units, as one flat vector, where optimizer state is cut


@dataclass(frozen=True)
class Profile:
    """How a system realises a placement. Values are named as `psem derive --part` names them.

    `inside`: values that never leave a kernel: they are in no memory, and backward makes them again.
    `again`: functions and values in memory that backward makes again. `stores`:
    values that are kept though backward does not read them. `widths`: bytes of an element of some
    values. `in_full`: functions of rows, and the loss, computed in fp32, from a copy; `scales_in_full`:
    scales of norms, too. `repeats`: keys and values are copied, once for each head of a group. `rows`:
    norms that keep numbers of each row: rms_norm its root, layer_norm its mean and its root;
    `rows_as_computed`: those that keep them in the type that they compute with, and not in fp32.
    `composes`: functions that are several operations keep what each of these reads. `masks`: windows
    are masks that a kernel of attention is given. `heads_alike`: it takes as many heads of keys
    as of queries, or groups, and else there are products in fp32. `keeps_given`: what layers are given
    beside what they take is kept where they are made again. `routes`: choosing experts keeps its
    numbers, and so are weighed results of experts kept; where odds weigh what experts read, each takes
    every token. `as_computed`: values in the type computed with, and not in fp32.
    `views`: of what is kept arrays take room, and no views of them (`spec.costs.views`). `whole`:
    values that each device has of all words, where words are cut; and weights whose words are not.
    `samples`: whose numbers are kept. `maximum`: of each token the largest logit is found first.

    `policy`: the name of the types that states have, if none is asked for. `gathered`, `reduced`: bytes
    of an element of gathered parameters, and of gradients while they are summed over devices; none: as
    they rest; `quantised`: of parameters while they are gathered, if not those that the model computes
    with. `prefetch`: units that are gathered before their turn. `placeholders`: for each
    weight of a layer's products there is an array in place of its gradient, which is added up
    elsewhere. `step_counts`: an optimizer that counts steps does so for each weight.

    `each`: gradients are summed along all axes in every micro-step. `holds`: activations that are
    gathered in forward are kept for backward. `held_units`: units whose weights, once gathered, are
    held from forward to backward. `unpadded`: states of which a device has its own rows and words
    alone. `whole_gradients`: weights that axes cut, and of which each device has all of the gradient.
    `like_gradients`: momentum that is all of the optimizer state begins as their copy.
    `merged`: values that backward has from others that are kept. `overwritten`: values that a kernel
    which reads them overwrites with their cotangents. `at_once`: what goes round a ring is gathered
    before its first turn; `rings_in_full`: its cotangents are summed in fp32 on their way home.
    `weighs_within`: odds of experts weigh what their last product reads. `held`: values that are kept
    gathered, if they are gathered; `gathers_again`: other activations are gathered for backward alone,
    even where all is made again. `words_a_device`: words are padded to a multiple of so many for each
    device that cuts them; `elements_a_device`: so is the one vector of all units.
    `buckets`: bytes of the first bucket, and of each other one. `copies`: gradients are copied to be
    reduced. `apart`: terms of a cotangent are summed over devices one by one, and not together.
    `sums_first`: terms of gradients over axes that cut weights are summed before others, as they are.
    `uses`: of a gradient by Adam, each of which sums such terms, if they are several.
    `fills`: who owns no weight has an element in their place. `adds_alone`: the gradient of a weight is
    an array of its own until it is added to those of other micro-steps, or of another part: then with
    their sum. `waits_whole`: gradients wait whole for the last micro-step, and leave the slices that
    are updated; `waits_staged`: those of a pipeline do. `stays`: in a pipeline what backward gathers
    stays until a forward has read it, or gradients are reduced. `sums_whole`: gradients of whole
    parameters are summed whole, whatever slices of them rest, or an update reads. `uneven`: features
    inside MLPs are cut in slices of as many, rounded up, of which the last have fewer. `copies_heads`:
    key-value heads are copied where more devices cut them.

    Of a host's memory: `adds_back`: gradients there are brought back to be added to, in the type that
    they are computed in, and go there at last in that in which they rest. `pinned`: states that are
    page-locked where they are there. `starts_whole`: each process makes its model there in fp32 first.

    `places`: the modes of states along some axis, if the system has none but these and replicated ones.
    `names`: what it is called by, and what is added; `like`: the names of all that it is like.
    """

    name: str = "textbook"
    title: str = "the counts of the papers"
    inside: frozenset[str] = frozenset()
    again: frozenset[str] = NORM_FUNCTIONS
    stores: frozenset[str] = frozenset()
    widths: tuple[tuple[str, int], ...] = ()
    in_full: frozenset[str] = frozenset()
    scales_in_full: bool = False
    repeats: bool = False
    rows: frozenset[str] = frozenset()
    rows_as_computed: frozenset[str] = frozenset()
    composes: bool = False
    masks: bool = False
    heads_alike: bool = False
    keeps_given: bool = False
    routes: bool = False
    as_computed: frozenset[str] = frozenset()
    views: bool = False
    whole: frozenset[str] = frozenset()
    maximum: bool = False
    samples: Samples = Samples.NONE
    policy: str = ""
    gathered: Number | None = None
    reduced: Number | None = None
    quantised: Number | None = None
    units: Units = Units.LARGEST
    padding: Padding = Padding.ELEMENT
    prefetch: int = 0
    placeholders: bool = False
    step_counts: bool = False
    each: bool = False
    holds: bool = False
    held_units: HeldUnits = NONE_HELD
    unpadded: frozenset[State] = frozenset()
    whole_gradients: frozenset[str] = frozenset()
    like_gradients: bool = False
    merged: frozenset[str] = frozenset()
    overwritten: frozenset[str] = frozenset()
    buckets: tuple[int, int] = (0, 0)
    copies: bool = False
    apart: bool = False
    sums_first: bool = False
    uses: int = 1
    at_once: bool = False
    rings_in_full: bool = False
    weighs_within: bool = False
    held: frozenset[str] = frozenset()
    gathers_again: bool = False
    words_a_device: int = 1
    elements_a_device: int = 1
    fills: bool = False
    adds_alone: bool = False
    waits_whole: bool = False
    waits_staged: bool = False
    stays: bool = False
    sums_whole: bool = False
    uneven: bool = False
    copies_heads: bool = True
    adds_back: bool = False
    pinned: frozenset[State] = frozenset()
    starts_whole: bool = False
    differs: tuple[Difference, ...] = ()
    places: tuple[tuple[State, str], ...] = ()
    names: tuple[str, ...] = ("textbook",)
    like: frozenset[str] = frozenset()

    @property
    def owners(self) -> bool:
        """Whether devices own weights, or slices of them all, and no slices of each unit."""
        return self.padding in (Padding.WEIGHT, Padding.VECTOR)

    @property
    def has_units(self) -> bool:
        """Whether units are of their own sizes, and not all as large."""
        return self.units is not Units.LARGEST or self.owners

    @property
    def has_kernel(self) -> bool:
        """Whether attention is one kernel: pairs of tokens never leave it."""
        return "scores" in self.inside

    @property
    def gives_masks(self) -> bool:
        """Whether windows are masks that a kernel of attention is given."""
        return self.masks and self.has_kernel

    @property
    def sums_by_chunk(self) -> bool:
        """Whether gradients that wait are summed chunk by chunk: no unit has weights of several."""
        return self.waits_whole and self.units is not Units.BUCKET and not self.owners

    @property
    def tells_arrays(self) -> bool:
        """Whether it matters which weights are one array."""
        by_array = self.padding in (Padding.ROW, Padding.WEIGHT) or self.units is Units.PARAMETER
        return by_array or self.step_counts

    @property
    def wholes(self) -> dict[State, frozenset[str]]:
        """The weights of which each device has some state whole, along axes that cut them."""
        found = {State.GRADIENTS: self.whole_gradients}
        return found | ({State.OPTIMIZER: self.whole_gradients} if self.like_gradients else {})

    @property
    def says_types(self) -> bool:
        """Whether it says anything of the types of states."""
        return bool(self.policy) or {self.gathered, self.reduced, self.quantised} != {None}

    def in_plan(self, policy: BytePolicy, is_staged: bool) -> Profile:
        """With what follows from a plan: from its optimizer, and from whether layers are in stages."""
        given = Samples.STEP if is_staged else Samples.MICRO_BATCH
        waits = is_staged and self.waits_staged
        return replace(
            self,
            each=self.each and not waits,
            waits_whole=(self.waits_whole or waits) and not self.sums_whole,
            stays=is_staged and self.stays,
            uses=self.uses if policy.counts_steps else 1,
            like_gradients=self.like_gradients and policy.is_momentum,
            samples=given if self.samples is Samples.GIVEN else self.samples,
        )

    def in_terms(self, policy: BytePolicy, cuts: Iterable[str]) -> BytePolicy:
        """The types of states, where terms over the axes that cut weights are summed as they are."""
        return replace(policy, as_they_are=frozenset(cuts if self.sums_first else ()))

    def in_model(self, model: Transformer) -> Profile:
        """With what its own code does: a softmax in the type of what it reads, scales in fp32."""
        plain = {"softmax"} if model.plain_softmax else set[str]()
        choices = {"choices"} if self.routes and model.chosen_in_full else set[str]()
        is_composed = self.heads_alike and self.has_kernel and not model.has_kernel
        composed = PRODUCTS_IN_FULL if is_composed else ()
        return replace(
            self,
            inside=self.inside.difference(composed).union((MASK,) * (not self.gives_masks)),
            widths=(*self.widths, *((name, FULL) for name in composed)),
            in_full=self.in_full - plain | choices,
            scales_in_full=self.scales_in_full or model.scales_in_full,
            merged=self.merged.union(("odds",) * (self.routes and model.of_chosen)),
            stores=self.stores.union(BESIDE_ROUTES * self.routes, BESIDE_OPERATIONS * self.composes),
        )

    def computed(self, model: Model) -> Model:
        """The model as the system computes it."""
        if not isinstance(model, Transformer):
            return model
        within = model.weighed_within or self.weighs_within
        model = replace(model, routed=self.routes, in_steps=self.composes)
        return replace(model, weighed_within=within)

    def types(self, policy: BytePolicy) -> BytePolicy:
        """The types of states, with those in which they pass."""
        return replace(
            policy,
            gathered=self.gathered,
            reduced=self.reduced,
            quantised=self.quantised,
            copied=self.copies and self.units is not Units.BUCKET,
            added=(policy.g if self.gathered is None else self.gathered) if self.adds_back else 0,
        )


TEXTBOOK = Profile()


def rows_of(weight: Value, part: Part) -> tuple[str, ...]:
    """The indices of a weight that are its rows: the features that its product makes.

    Of a table that is looked up, its entries; of experts' weights, the experts. (torch.nn) Where a
    part has what products read first, that. (transformers, pytorch_utils.py: Conv1D)
    """
    line, made = part.first_readers[weight], made_by(weight, part)
    other = next((value for value in line.reads if value != weight), weight)
    summed = tuple(index for index in weight.indices if index not in made)
    if "e" in made:
        return ("e",)
    looks_up = other.role is Role.CONSTANT
    return summed if summed and (part.reads_first or looks_up) else made


def made_by(weight: Value, part: Part) -> tuple[str, ...]:
    """The indices of a weight that its product makes."""
    return tuple(i for i in weight.indices if i in part.first_readers[weight].makes.indices)


def realised_parts(model: Model, profile: Profile, width: Number) -> tuple[Part, ...]:
    """The parts of a model as a system computes them, in its order, with weights of `width` bytes."""
    if isinstance(model, Transformer):
        profile = profile.in_model(model)
    return tuple(realised(part, profile, width) for part in parts(profile.computed(model)))


def realised(part: Part, profile: Profile, width: Number) -> Part:
    """The part as a system computes it, with weights of `width` bytes."""
    of_rows = frozenset(v.name for op in part.operations for v in _of_rows(op, profile))
    between = frozenset(v.name for op in part.operations for v in _between(op, profile))
    stores = profile.stores | between | (of_rows - profile.again)
    sized = _sized(_copied(part, profile, width), profile, width)
    uncut = profile.whole.intersection(weight.name for weight in part.weights)
    return replace(
        sized,
        whole=uncut or profile.whole,  # where a weight has all words, its values do
        stores=stores,
        merged=profile.merged,
        apart=profile.apart,
        overwritten=profile.overwritten,
        arrays=part.arrays,
        by_heads=part.by_heads,
        views=profile.views,
        reads_first=part.reads_first,
        held=profile.held,
        gathers_again=profile.gathers_again,
    )


def _sized(part: Part, profile: Profile, width: Number) -> Part:
    """With the width of each value; masks and fp32 values keep theirs. What is in a kernel has none."""
    named = dict(profile.widths)

    def sized(value: Value) -> Value:
        if value.role is Role.WEIGHT:
            return value
        if value.name in profile.inside:
            return replace(value, width=0)
        is_computed = value.width == WRITTEN or value.name in profile.as_computed
        found = named.get(value.name, width if is_computed else value.width)
        return value if found == value.width else replace(value, width=found)

    def computed(operation: Operation) -> Operation:
        reads = tuple(sized(value) for value in operation.reads)
        return operation.on(reads, sized(operation.makes))

    operations = tuple(computed(operation) for operation in part.operations)
    takes = sized(part.takes) if part.takes else None
    return replace(part, operations=operations, takes=takes, gives=sized(part.gives))


def _between(operation: Operation, profile: Profile) -> tuple[Value, ...]:
    """What operations keep of which a function of each element is composed, but for its argument."""
    count = BETWEEN.get(operation.function, 0) if profile.composes else 0
    makes = operation.makes
    return tuple(replace(makes, name=f"{makes.name}_between{number}") for number in range(1, count + 1))


def _of_rows(norm: Operation, profile: Profile) -> tuple[Value, ...]:
    """The numbers that a norm keeps of each row, in fp32 or as it computes: the last is its root."""
    if norm.does is not Does.NORMALISE or norm.function not in profile.rows:
        return ()
    rows = tuple(index for index in norm.makes.indices if index != norm.over)
    names = ("mean", "root") if norm.function == "layer_norm" else ("root",)
    width = WRITTEN if norm.function in profile.rows_as_computed else FULL
    return tuple(Value(f"{norm.makes.name}_{name}", rows, width=width) for name in names)


def _copied(part: Part, profile: Profile, width: Number) -> Part:
    """With copies in fp32 of what some functions read, a copy of keys and values for each head, and
    numbers of rows. What is in fp32 anyway is not copied.
    """
    in_full = profile.in_full if width < FULL else frozenset()
    if not (in_full or profile.rows or profile.repeats or profile.maximum or profile.composes):
        return part
    work = Builder(part.name, part.takes)
    now: dict[Value, Value] = {}
    copies: dict[Value, Value] = {}  # in fp32, of scores whose log-sum-exp is a value of its own
    for operation in part.operations:
        reads = tuple(now.get(value, value) for value in operation.reads)
        (x, *_), makes = reads, operation.makes
        if CROSS_ENTROPY in in_full and makes.name == "logits" and makes.width == FULL:
            given = work.contract(x, reads[1], replace(makes, width=WRITTEN))
            now[makes] = _copy(work, given, "logits_fp32", FULL)
            continue
        if profile.maximum and makes.name == "raised":  # a sum in its place: it lies, and moves, alike
            words = Value("ones", x.indices[-1:], Role.CONSTANT, 0)
            work.contract(x, words, Value("largest", x.indices[:-1], width=FULL))
        is_full = _is_in_full(operation, part, profile, in_full)
        reads = _copied_operands(work, operation, reads, in_full)
        if "rms_norm" in in_full and makes.name.endswith("_heads_norm_squares"):
            now[x] = x = _copy(work, x, f"{makes.name}_argument", FULL)
            reads = (x,)
        elif x in now.values() and makes.name.endswith("_heads_norm_unit"):
            now[makes] = makes = replace(makes, width=FULL)
        for number in _of_rows(operation, profile):
            ones = Value("ones", (operation.over,), Role.CONSTANT, 0)
            work.contract(x, x if number.name.endswith("root") else ones, number)
        if is_full:
            copy = copies.get(x) or _copy(work, x, f"{makes.name}_argument", FULL)
            if operation.function == LOG_TOTAL:  # the softmax reads the same copy
                copies[x] = copy
                work.operations.append(operation.on((copy,), makes))
                continue
            full = replace(makes, name=f"{makes.name}_fp32", width=FULL)
            work.operations.append(operation.on((copy,), full))
            scaled = operation.function in NORM_FUNCTIONS and profile.scales_in_full
            now[makes] = _copy(work, full, makes.name, FULL if scaled else makes.width)
            continue
        work.operations.append(operation.on(reads, makes))
        for value in _between(operation, profile):
            _copy(work, makes, value.name, value.width)
        if profile.repeats and makes.name in ("keys", "values") and "r" not in makes.indices:
            b, u, g, d = makes.indices
            each = Value(f"{makes.name}_repeated", (b, u, g, "r", d))
            now[makes] = work.contract(makes, Value("ones", ("r",), Role.CONSTANT, 0), each)
    return work.part(part.gives)


def _copied_operands(
    work: Builder, product: Operation, reads: tuple[Value, ...], in_full: frozenset[str]
) -> tuple[Value, ...]:
    """What an operation reads: of a product in fp32, copies."""
    if product.does is not Does.CONTRACT or product.makes.name not in in_full:
        return reads
    return tuple(_copy(work, value, f"{value.name}_fp32", FULL) for value in reads)


def _is_in_full(norm: Operation, part: Part, profile: Profile, in_full: frozenset[str]) -> bool:
    """Whether a function of rows is computed in fp32, from a copy; inside a kernel there is none.

    A log-sum-exp is as the softmax of the same scores.
    """
    if norm.function == LOG_TOTAL:
        alike = (op for op in part.operations if (op.function, op.reads) == ("softmax", norm.reads))
        norm = next(alike, replace(norm, function="softmax"))
    of_rows = norm.does is Does.NORMALISE and norm.function in in_full
    return of_rows and norm.makes.name not in profile.inside


def _copy(work: Builder, x: Value, name: str, width: int) -> Value:
    """The same values in another type: a product with ones."""
    ones = Value("ones", x.indices[:1], Role.CONSTANT, 0)
    return work.contract(x, ones, Value(name, x.indices, width=width))
