"""Operators of mutation: what an expression or a statement of the specification may become."""

import ast

COMPARED = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
}
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
FIRST_ARGUMENT = {"reversed", "abs", "sorted"}  # functions of which the argument may take the place
DISPLAYS = (ast.Tuple, ast.List, ast.Set)
TEXTS = (ast.Tuple, ast.List, ast.JoinedStr, ast.ListComp)


def changes(node, enums):
    """What may stand in a node's place; `enums`: by an enumeration's name, its members in order."""
    makers = (compared, computed, joined, constant, called, member, displayed, negated, dropped)
    for maker in makers:
        yield from maker(node, enums)


def like(node, **changed):
    """A node with some fields changed."""
    fields = {name: getattr(node, name, None) for name in node._fields}
    return type(node)(**(fields | changed))


def compared(node, _):
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield like(node, ops=[COMPARED[type(node.ops[0])]()])


def computed(node, _):
    if isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
        if not any(is_text(side) for side in (node.left, node.right)):
            yield like(node, op=COMPUTED[type(node.op)]())
        yield node.left
    if isinstance(node, ast.UnaryOp):
        yield node.operand


def is_text(node):
    """Whether a term of a sum is written as a sequence, so that there is nothing to subtract."""
    return isinstance(node, TEXTS) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def joined(node, _):
    """`and` for `or`, and the last one left out."""
    if isinstance(node, ast.BoolOp):
        yield like(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        kept = node.values[:-1]
        yield like(node, values=kept) if len(kept) > 1 else kept[0]


def constant(node, _):
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield ast.Constant(node.value + 1)


def called(node, _):
    if not isinstance(node, ast.Call):
        return
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in CALLED:
        yield like(node, func=ast.Name(CALLED[name]))
    if name in FIRST_ARGUMENT and len(node.args) == 1:
        yield node.args[0]
    if name == "range" and len(node.args) == 1:
        yield like(node, args=[ast.BinOp(node.args[0], ast.Sub(), ast.Constant(1))])
    for i, (first, second) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if alike(first, second) and name not in ("isinstance", "getattr"):
            yield like(node, args=[*node.args[:i], second, first, *node.args[i + 2 :]])


def alike(first, second):
    """Whether two arguments are written alike, so that one could be taken for the other."""
    written = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)
    return type(first) is type(second) and isinstance(first, written)


def member(node, enums):
    """The next member of an enumeration."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        members = enums.get(node.value.id, [])
        if node.attr in members:
            yield like(node, attr=members[(members.index(node.attr) + 1) % len(members)])


def displayed(node, _):
    """A display without its last element; a comprehension without its last condition."""
    if isinstance(node, DISPLAYS) and len(node.elts) > 1:
        yield like(node, elts=node.elts[:-1])
    if isinstance(node, ast.Dict) and len(node.keys) > 1:
        yield like(node, keys=node.keys[:-1], values=node.values[:-1])
    if isinstance(node, ast.comprehension) and node.ifs:
        yield like(node, ifs=node.ifs[:-1])


def negated(node, _):
    """The other branch."""
    if isinstance(node, ast.IfExp):
        yield like(node, body=node.orelse, orelse=node.body)
    if isinstance(node, ast.Name | ast.Call | ast.Attribute) and getattr(node, "decides", False):
        yield ast.UnaryOp(ast.Not(), node)


def dropped(node, _):
    """Nothing, in place of a statement that is done for its effect."""
    if isinstance(node, ast.AugAssign | ast.Continue):
        yield ast.Pass()
    called_for_effect = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if called_for_effect and "super()" not in ast.unparse(node):
        yield ast.Pass()
