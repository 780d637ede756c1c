"""Where a value comes from, one step back."""

from __future__ import annotations

import ast
from typing import NamedTuple

from amp_migrate.project import Function


class Origin(NamedTuple):
    """A node that a value comes from: `down` into what a call runs, `up` to what a call hands in, or elsewhere."""

    function: Function
    node: ast.AST
    down: ast.Call | None = None
    up: ast.Call | None = None
    elsewhere: bool = False
