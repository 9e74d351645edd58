"""Break one rule of the checker: T4 must notice that what is accepted need not match."""

import pytest

from tests.support.broken import notices

pytestmark = pytest.mark.slow

MUTANTS = [
    # (what is wrong, file, the rule, the broken rule)
    (
        "a sum of equal values forgets n",
        "operators.py",
        "n if both == (ALL, ALL) else",
        "1 if both == (ALL, ALL) else",
    ),
    ("another device's slice is the owner's", "operators.py", "int(left.of == right.to)", "1"),
    (
        "an operator is read wrongly elsewhere",
        "operators.py",
        "    return (*named, *unnamed)",
        "    return unnamed",
    ),
    (
        "reduction forgets to sum",
        "operators.py",
        "total(n, lambda i: value({**device, axis: i}))",
        "value(device)",
    ),
    (
        "the owner is somebody else",
        "operators.py",
        "value({**device, axis: owner})",
        "value({**device, axis: owner + 1})",
    ),
    (
        "the rest of a group counts once",
        "algebra.py",
        "count * unnamed(place, self.named[i], self.sizes[i])",
        "count",
    ),
    (
        "a slice is added to what it replaces",
        "algebra.py",
        "change: NormalForm = add(new, scale(old, -1))",
        "change: NormalForm = dict(new)",
    ),
    (
        "what is not known is known when it is scaled",
        "algebra.py",
        "return add(scale(known, factor.at(self.mesh, self.micro_steps)), unknown)",
        "return scale(known, factor.at(self.mesh, self.micro_steps))",
    ),
    (
        "what is not known is nothing",
        "algebra.py",
        'form = {(Symbol("unknown", 0, made_of=why), (IDENTITY,) * len(self.axes)): 1}',
        "form = {}",
    ),
    (
        "the first device is the owner",
        "algebra.py",
        "self._apply(Operator(ALL, self.roots[axis]), axis, value)",
        "self._apply(Operator(ALL, 0), axis, value)",
    ),
    (
        "contributions are the same on all devices",
        "symbols.py",
        'SAME = ("weight", "moment", "statistics")',
        'SAME = ("weight", "moment", "statistics", "gradient")',
    ),
    (
        "the whole gradient is a device's own",
        "forms.py",
        "word: Word = (SUM_ALL,) * len(self.axes)",
        "word: Word = (IDENTITY,) * len(self.axes)",
    ),
    (
        "backward may read anything",
        "forms.py",
        'Need("fresh", view, self.symbol("weight", self.step), words, of)',
        'Need("fresh", view, view, words, of)',
    ),
    (
        "an update may apply any gradient",
        "forms.py",
        'Need("whole", gradient, self.whole_gradient(), "the gradients it applies are")',
        'Need("whole", gradient, gradient, "the gradients it applies are")',
    ),
    (
        "an update may read any moments",
        "forms.py",
        'Need("current", moment, now_moment, "the moments are")',
        'Need("current", moment, moment, "the moments are")',
    ),
    (
        "what is kept may be as old as the step",
        "verdict.py",
        "forms.symbol(kind, forms.step + 1)",
        "forms.symbol(kind, forms.step)",
    ),
    (
        "copies are compared at owners only",
        "verdict.py",
        "forms.require(need, forms.device_kinds(schedule.rest(state).sharded))",
        "forms.require(need, forms.device_kinds(forms.axes))",
    ),
    (
        "activations may be stale",
        "forms.py",
        'self._fresh(read, "its activations are"',
        'self._fresh(view, "its activations are"',
    ),
    (
        "moments are taken for gradients",
        "forms.py",
        'Need("whole", gradient, self.whole_gradient()',
        'Need("whole", moment, self.whole_gradient()',
    ),
    (
        "an update leaves the old states",
        "forms.py",
        '(self.symbol(s, self.step + 1) for s in ("weight", "moment"))',
        '(self.symbol(s, self.step) for s in ("weight", "moment"))',
    ),
    (
        "of two axes only the last one's devices are counted",
        "algebra.py",
        "count = count * unnamed(place, self.named[i], self.sizes[i])",
        "count = unnamed(place, self.named[i], self.sizes[i])",
    ),
    (
        "whatever its axis, an operator is along the first",
        "operators.py",
        "(*word[:axis], after, *word[axis + 1 :])",
        "(after, *word[1:])",
    ),
    (
        "along each axis there are as many devices as along the first",
        "algebra.py",
        "return apply_operator(operator_, i, form, self.sizes[i])",
        "return apply_operator(operator_, i, form, self.sizes[0])",
    ),
    (
        "the first device is where it is along the first axis",
        "algebra.py",
        "self._apply(Operator(ALL, self.roots[axis]), axis, value)",
        "self._apply(Operator(ALL, [*self.roots.values()][0]), axis, value)",
    ),
    (
        "of two words that become one the last counts",
        "operators.py",
        "result.get(term, 0) + factor * coefficient",
        "factor * coefficient",
    ),
    (
        "of a number of devices none has no name",
        "algebra.py",
        "others = [OTHER] if not isinstance(n, int) or n > len(named) else []",
        "others = [OTHER] if not isinstance(n, int) else []",
    ),
    (
        "the first need alone is looked at",
        "forms.py",
        "for need, difference in found if difference]",
        "for need, difference in found[:1] if difference]",
    ),
    (
        "what one device sees wrong does no harm",
        "forms.py",
        "            if here:\n                fault",
        "            if len(here) > 1:\n                fault",
    ),
    (
        "along a second axis only owners are compared",
        "algebra.py",
        "choices.append([0] if axis in owned else [*named, *others])",
        "choices.append([0] if axis in owned or choices else [*named, *others])",
    ),
    (
        "a norm of slices is the whole norm",
        "algebra.py",
        "norm.append(SUM_ALL if to == {ALL} else IDENTITY)",
        "norm.append(SUM_ALL)",
    ),
    (
        "a whole norm is a slice's",
        "algebra.py",
        "norm.append(SUM_ALL if to == {ALL} else IDENTITY)",
        "norm.append(IDENTITY)",
    ),
    (
        "a norm of twice the gradient is the gradient's",
        "algebra.py",
        "return {(symbol, tuple(norm)): multiple * multiple}",
        "return {(symbol, tuple(norm)): 1}",
    ),
    (
        "a norm is of what is known alone",
        "algebra.py",
        "for position in self.device_kinds() if unknown else ():\n            for symbol",
        "for position in ():\n            for symbol",
    ),
    (
        "a clip does nothing",
        "algebra.py",
        'self._times("clip", known, square_norm) if square_norm else known',
        "known",
    ),
    (
        "all norms clip alike",
        "algebra.py",
        "factor = Multiplier(function, self._frozen(number))",
        "factor = Multiplier(function, ())",
    ),
    (
        "what is applied is never clipped",
        "forms.py",
        "return self.clip(form, self.square_norm(form)) if self.training.clip else form",
        "return form",
    ),
    (
        "a norm adds the slices of others",
        "semantics.py",
        "own = domain.replace(domain.zero, read(source, present), op.within, op.shift)",
        "own = read(source, present)",
    ),
    (
        "a norm is of the next device's slices",
        "semantics.py",
        "own = domain.replace(domain.zero, read(source, present), op.within, op.shift)",
        "own = domain.replace(domain.zero, read(source, present), op.within, op.shift + 1)",
    ),
    (
        "a norm is of slices along the first axis alone",
        "semantics.py",
        "own = domain.replace(domain.zero, read(source, present), op.within, op.shift)",
        "own = domain.replace(domain.zero, read(source, present), op.within[:1], op.shift)",
    ),
    (
        "sums of norms forget axes after the first",
        "semantics.py",
        "    for axis in op.axes:\n        if op.kind in REDUCTIONS:",
        "    for axis in op.axes[:1]:\n        if op.kind in REDUCTIONS:",
    ),
    (
        "a clip reads what it clips for its norm",
        "semantics.py",
        "write(target, domain.clip(read(source, present), read(op.by)), present)",
        "write(target, domain.clip(read(source, present), read(source)), present)",
    ),
    (
        "a division does nothing",
        "algebra.py",
        'self._times("over", split(value)[0], count)',
        "split(value)[0]",
    ),
    (
        "twice a count divides as it does once",
        "algebra.py",
        "count), power(multiple, -1))",
        "count), 1)",
    ),
    (
        "a count is divided by in none of what is needed",
        "forms.py",
        "if self.training.loss is Loss.TOKEN_MEAN:",
        "if False:",
    ),
    (
        "a gradient is divided by itself",
        "semantics.py",
        "domain.divide(read(source, present), read(op.by))",
        "domain.divide(read(source, present), read(source))",
    ),
    (
        "a count is of another micro-step",
        "forms.py",
        'return self.symbol("tokens", self.step, micro_step)',
        'return self.symbol("tokens", self.step)',
    ),
    (
        "moments are each device's own",
        "symbols.py",
        'SAME = ("weight", "moment", "statistics")',
        'SAME = ("weight", "statistics")',
    ),
]


@pytest.mark.parametrize(("wrong", "file", "rule", "broken"), MUTANTS, ids=[m[0] for m in MUTANTS])
def test_a_checker_that_is_broken_is_not_sound(wrong, file, rule, broken):
    whole = "proofs.checking.necessary_and_sufficient", "what_is_accepted_matches"
    assert notices(*whole, file, rule, broken), wrong
