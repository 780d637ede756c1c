"""Whether a part of the new text reads as one of the old text, but for what Apex and native AMP have to do with."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property

from amp_migrate.check.apex.installed import lacks
from amp_migrate.check.events.sides import Side, key
from amp_migrate.check.statements.keys import Keys
from amp_migrate.check.statements.words import NAMES, Words, emptied
from amp_migrate.facts.below import every
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import all_given, tail
from amp_migrate.project import Function
from amp_migrate.training import contexts
from amp_migrate.training.beliefs import READS_GRADIENTS
from amp_migrate.training.gradients.magnitude import unscaled

_HOLD = ast.Return | ast.Assign | ast.AnnAssign | ast.keyword | ast.NamedExpr


class Alike:
    """Compares parts of both texts."""

    def __init__(self, old: Side, new: Side) -> None:
        self._old = old
        self._new = new
        self._gone = Words(old, new)
        self._brought = Words(new, old)
        self._kept, self._keeps = Keys(old, new), Keys(new, old)

    def reads(self, before: Function, old: ast.AST, after: Function, new: ast.AST) -> bool:
        """Tell whether a part of the new text reads as one of the old text."""
        if ast.dump(old) == ast.dump(new):
            return True
        inner = self._within(after, new)
        if inner is not None and self.reads(before, old, after, inner):
            return True
        if isinstance(old, ast.Constant) and isinstance(new, ast.Constant):
            return old.value in self._kept.known and new.value in self._keeps.known
        if isinstance(new, ast.Call) and tail(new) == "get_scale":
            return isinstance(old, ast.Attribute | ast.Call)
        if isinstance(old, ast.NamedExpr) and isinstance(new, ast.Name):
            return ast.unparse(old.target) == new.id
        if isinstance(new, ast.Name) and not isinstance(old, ast.Constant | NAMES | ast.stmt):
            held = self._new.labels.values_of(after, new)
            if any(self.reads(before, old, after, value) for value in held):
                return True
        if isinstance(old, ast.Call) and isinstance(new, ast.Call):
            if self._is_called_unseen(before, old, after, new):
                return False
            if added := self._added(old, new):
                left = [a for a in new.args if a not in added]
                named = [k for k in new.keywords if k.value not in added]
                new = ast.Call(new.func, left, named)
                pairs = zip(old.args, left, strict=False)
                if any(self._is_out_of_place(before, *pair, after) for pair in pairs):
                    return False
        if isinstance(new, ast.Tuple) and not isinstance(old, ast.Tuple):
            left = [x for x in new.elts if not self.is_native(after, x)]
            return len(left) == 1 and self.reads(before, old, after, left[0])
        if isinstance(old, ast.Dict) and isinstance(new, ast.Dict):
            return self._entries(before, old, after, new)
        rest = self._rest(before, old)
        if rest is not None and self.reads(before, rest, after, new):
            return True
        if type(old) is type(new) and self._fields(before, old, after, new):
            return True
        if self._is_out_of_place(before, old, new, after) or self._is_settled(old, new):
            return False
        value = old.value if isinstance(old, _HOLD) else old
        goes = self._rest(before, value) is None and self.is_apex(before, old)
        return goes or self.is_native(after, new)

    def _rest(self, function: Function, node: ast.AST | None) -> ast.expr | None:
        """Return what is left of what is asked beside Apex, where something is: ``fp16`` of ``fp16 and amp``."""
        if not isinstance(node, ast.BoolOp):
            return None
        left = [value for value in node.values if not self.is_apex(function, value)]
        if len(left) in (0, len(node.values)):
            return None
        joins = isinstance(node.op, ast.And)
        gone = (value for value in node.values if value not in left)
        if any(_asks_for(function, value) is not joins for value in gone):
            return ast.Constant(not joins)
        return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    def _within(self, function: Function, node: ast.AST) -> ast.expr | None:
        """Return what a part of the new text only scales, as it does the limit of a clip of scaled gradients."""
        scaled = self._new.labels.reads_scaled
        if isinstance(node, ast.BinOp):
            up = function.module.tree.user(node)
            if isinstance(up, ast.Call) and scaled(function, up):
                return unscaled(node)
        inner = _within(node)
        if isinstance(node, ast.BinOp) and isinstance(inner, ast.Call):
            true = tail(inner) in READS_GRADIENTS and not scaled(function, inner)
            return None if true else inner
        return inner

    def _added(self, old: ast.Call, call: ast.Call) -> frozenset[ast.expr]:
        """Return the arguments of a call that has more of them which fill the parameters that only the new text has."""
        if len(all_given(call)) <= len(all_given(old)):
            return frozenset()
        project = self._new.project
        found: set[ast.expr] = set()
        for callee in project.callees(call):
            if had := self._old.functions.get(key(callee), ()):
                known = {name for function in had for name in function.parameters.names}
                given = project.given(call, callee)
                found |= {node for name, node in given.items() if name not in known}
        return frozenset(found)

    def _is_out_of_place(
        self, before: Function, old: ast.AST, new: ast.AST, after: Function
    ) -> bool:
        """Tell whether what comes with AMP stands where something else was given."""
        if not isinstance(old, ast.Constant | NAMES) or not isinstance(new, NAMES):
            return False
        return self.is_native(after, new) and not self.is_apex(before, old)

    def _is_called_unseen(
        self, before: Function, old: ast.Call, after: Function, new: ast.Call
    ) -> bool:
        """Tell whether a GradScaler goes where a function of Apex went, of which no parameter tells what calls it there."""
        given = [a for a in all_given(old) if isinstance(a, NAMES)]
        was, project = self._old.project, self._new.project
        if not any(contexts.is_scale_loss(was, before.module, item) for item in given):
            return False
        taken = {node for f in project.callees(new) for node in project.given(new, f).values()}
        scalers = [a for a in all_given(new) if isinstance(a, NAMES) and self.is_native(after, a)]
        return not taken.issuperset(scalers)

    def _is_settled(self, old: ast.AST, new: ast.AST) -> bool:
        """Tell whether what asks an attribute for Apex or None has one answer in the new text."""
        if isinstance(old, _HOLD) and isinstance(new, _HOLD):
            one, other = old.value, new.value
            return one is not None and other is not None and self._is_settled(one, other)
        while isinstance(old, ast.UnaryOp) and isinstance(old.op, ast.Not):
            old = old.operand
        asked = old.left if isinstance(old, ast.Compare) and is_none(old.comparators[0]) else old
        fixed = isinstance(new, ast.Constant) and isinstance(new.value, bool)
        return fixed and isinstance(asked, ast.Attribute) and asked.attr in self._emptied

    @cached_property
    def _emptied(self) -> frozenset[str]:
        return emptied(self._old)

    def _entries(self, before: Function, old: ast.Dict, after: Function, new: ast.Dict) -> bool:
        """Tell whether the entries of a dictionary read as those of another one; that of Apex may have another key."""
        pairs, others = (
            [*zip(old.keys, old.values, strict=True)],
            [*zip(new.keys, new.values, strict=True)],
        )
        kept = [(k, v) for k, v in pairs if not self.is_apex(before, v)]
        now = [(k, v) for k, v in others if not self.is_native(after, v)]
        return any(
            len(ones) == len(both)
            and all(
                self._item(before, k, after, key) and self._item(before, v, after, value)
                for (k, v), (key, value) in zip(ones, both, strict=True)
            )
            for ones, both in ((pairs, others), (kept, now), (pairs, now))
        )

    def _fields(self, before: Function, old: ast.AST, after: Function, new: ast.AST) -> bool:
        for field in old._fields:
            one, other = getattr(old, field, None), getattr(new, field, None)
            if isinstance(one, list) and isinstance(other, list):
                if not self._items(before, one, after, other):
                    return False
            elif not self._item(before, one, after, other):
                return False
        return True

    def _items(
        self, before: Function, old: Sequence[object], after: Function, new: Sequence[object]
    ) -> bool:
        """Tell whether a list reads as another one, which has what AMP needs beside."""
        kept = [x for x in old if not (isinstance(x, ast.AST) and self.is_apex(before, x))]
        now = [x for x in new if not (isinstance(x, ast.AST) and self.is_native(after, x))]
        return any(
            len(ones) == len(others)
            and all(self._item(before, x, after, y) for x, y in zip(ones, others, strict=True))
            for ones, others in ((old, new), (kept, now), (old, now))
        )

    def _item(self, before: Function, one: object, after: Function, other: object) -> bool:
        if isinstance(one, ast.AST) and isinstance(other, ast.AST):
            return self.reads(before, one, after, other)
        return one == other

    def is_apex(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a part of the old text is of Apex itself, or of what goes with it."""
        if any(self._gone.looked_for(function, part) for part in _joined(node)):
            return True
        return any(self.mentions_apex(function, part) for part in itself(node))

    def mentions_apex(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a part of the old text has to do with Apex, or with what goes with it."""
        return any(
            self._gone.alone(function, part) or self._old.labels.is_apex(function, part)
            if isinstance(part, NAMES)
            else self._gone.looked_for(function, part)
            for part in every(node)
        )

    def is_native(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a part of the new text is of native AMP itself, or of what comes with it."""
        return any(self.mentions_native(function, part) for part in itself(node))

    def mentions_native(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a part of the new text has to do with native AMP, or with what comes with it."""
        external = self._new.project.external
        return any(
            self._brought.alone(function, part)
            or contexts.is_native(external(function.module, part))
            for part in every(node)
            if isinstance(part, NAMES)
        )


def _asks_for(function: Function, node: ast.expr) -> bool:
    """Tell whether a test of Apex asks for it, and not for what is without."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _asks_for(function, node.operand)
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.NotIn):
        return False
    without = (
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Is)
        and isinstance(node.comparators[0], ast.Constant)
        and not node.comparators[0].value
    )
    asked = node.left if isinstance(node, ast.Compare) else node
    return without is (isinstance(asked, ast.Name) and lacks(function, asked))


def _within(node: ast.AST) -> ast.expr | None:
    """Return what an expression only scales, divides by the loss scale, or takes in fp32."""
    if isinstance(node, ast.BinOp):
        if not isinstance(node.op, ast.Div) or not isinstance(node.right, ast.Call):
            return None
        return node.left if tail(node.right) == "get_scale" else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr == "scale" and len(node.args) == 1:
        return node.args[0]
    return node.func.value if node.func.attr == "float" and not node.args else None


def _joined(node: ast.AST) -> Iterator[ast.AST]:
    """Yield an expression, or what `and`, `or` and `not` join in it."""
    queue = [node]
    for part in queue:
        yield part
        if isinstance(part, ast.BoolOp | ast.UnaryOp | ast.Compare):
            queue += ast.iter_child_nodes(part)


def itself(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a part of a text is, without what it is given: ``f`` of ``f(x)[0]``."""
    queue = [node]
    for part in queue:
        if isinstance(part, NAMES):
            yield part
        elif isinstance(part, ast.Call):
            queue.append(part.func)
        elif isinstance(part, ast.Subscript | ast.Starred | ast.keyword | ast.Await):
            queue.append(part.value)
        elif isinstance(part, ast.Expr | ast.Assign | ast.AnnAssign | ast.Return):
            queue += [part.value] if part.value is not None else []
        elif isinstance(part, ast.NamedExpr | ast.AugAssign):
            queue.append(part.value)
        elif isinstance(part, ast.IfExp | ast.BoolOp | ast.Compare | ast.UnaryOp):
            queue += ast.iter_child_nodes(part)
        elif isinstance(part, ast.Lambda):
            queue.append(part.body)
