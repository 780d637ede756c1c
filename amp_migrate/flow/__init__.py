"""What runs when inside one body: a function, a lambda, a class or a module. Flow only reads.

`build` makes the control-flow graph of a body (`Graphs` keeps many). Its *points* are the moments of evaluation in
their order: calls, loads, stores, tests, the begin and end of a `with`, the next item of a loop. What is defined
inside a body is a point of it (`Kind.DEFINE`) and has a graph of its own; a class body runs at its point, a function,
lambda or generator expression later, more than once, or never. Comprehensions are loops of the body they stand in.
Annotations and `python -O` are left out of account, and so are exceptions out of nowhere (`KeyboardInterrupt`).

`Graph.order` says what runs before what: dominators, may and must reach, loops, witnesses.
`Paths` says the same under an assumption, when a test whose operands nothing changes has one truth. `evaluate`
gives the truth of an expression.
"""

from amp_migrate.flow.assumption import NOTHING, Assumption, Known, Truth
from amp_migrate.flow.cfg.build import Graphs, any_context, build
from amp_migrate.flow.cfg.graph import Graph, Root
from amp_migrate.flow.cfg.points import Edge, EdgeKind, Kind, Point, Way
from amp_migrate.flow.changes import Changes, cautious, keeping, steady
from amp_migrate.flow.evaluate import evaluate, value_of
from amp_migrate.flow.loops import Loop
from amp_migrate.flow.order import Order
from amp_migrate.flow.paths import Paths, leads, leads_over
from amp_migrate.flow.refine import assume, refine, refuted
from amp_migrate.flow.terms import Aspect, Operand, Term, term

__all__ = [
    "NOTHING",
    "Aspect",
    "Assumption",
    "Changes",
    "Edge",
    "EdgeKind",
    "Graph",
    "Graphs",
    "Kind",
    "Known",
    "Loop",
    "Operand",
    "Order",
    "Paths",
    "Point",
    "Root",
    "Term",
    "Truth",
    "Way",
    "any_context",
    "assume",
    "build",
    "cautious",
    "evaluate",
    "keeping",
    "leads",
    "leads_over",
    "refine",
    "refuted",
    "steady",
    "term",
    "value_of",
]
