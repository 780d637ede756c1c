"""Names out of imports, new imports, and where those go."""

from __future__ import annotations

import pytest

from amp_migrate.plan.model import AddImport, AddImportedName, Drop, DropImportedName
from rewrite.places import Plan, applied, case

CASES = [
    case(
        "first_middle_last",
        """
        from a import b, c, d
        from a import b, c, d  # note
        from a import b, c, d
        """,
        lambda p: [
            DropImportedName(p.statement("from", nth), (name,)) for nth, name in enumerate("bcd")
        ],
        """
        from a import c, d
        from a import b, d  # note
        from a import b, c
        """,
    ),
    case(
        "one_more_name",
        """
        from a import b
        from .a import b, c  # note
        from a import (b, c)
        from a import (
            b,  # about b
            c,  # about c
        )
        from a import (
            b,
            c
        )
        from a import b, \\
            c
        """,
        lambda p: [AddImportedName(p.statement("from", nth), "d") for nth in range(6)],
        """
        from a import b, d
        from .a import b, c, d  # note
        from a import (b, c, d)
        from a import (
            b,  # about b
            c,  # about c
            d,
        )
        from a import (
            b,
            c,
            d
        )
        from a import b, \\
            c, d
        """,
    ),
    case(
        "one_more_and_one_less",
        """
        from a import b, c
        from e import b
        """,
        lambda p: [
            AddImportedName(p.statement("from"), "d"),
            DropImportedName(p.statement("from"), ("b",)),
            DropImportedName(p.statement("from e"), ("b",)),
            AddImportedName(p.statement("from e"), "d"),
        ],
        """
        from a import c, d
        from e import d
        """,
    ),
    case(
        "parentheses_and_comments",
        """
        from a import (
            b,  # about b
            c,  # about c
            d
        )
        from a import (b, c)
        from a import b, \\
            c
        """,
        lambda p: [DropImportedName(p.statement("from", nth), ("c",)) for nth in range(3)],
        """
        from a import (
            b,  # about b
            d
        )
        from a import b
        from a import b
        """,
    ),
    case(
        "last_of_several_lines",
        """
        from a import (
            b,
            c
        )
        """,
        lambda p: [DropImportedName(p.statement("from"), ("c",))],
        """
        from a import (
            b
        )
        """,
    ),
    case(
        "renamed_and_dotted",
        """
        import a, apex.amp as amp
        from apex import amp as mixed, parallel
        """,
        lambda p: [
            DropImportedName(p.statement("import"), ("apex.amp",)),
            DropImportedName(p.statement("from"), ("amp",)),
        ],
        """
        import a
        from apex import parallel
        """,
    ),
    case(
        "statement_goes_with_its_last_name",
        """
        import a
        # apex
        from apex import amp, parallel  # speed
        from apex.fp16_utils import *
        if x:
            import apex
        """,
        lambda p: [
            DropImportedName(p.statement("from"), ("amp",)),
            DropImportedName(p.statement("from"), ("parallel",)),
            DropImportedName(p.statement("from", 1), ("*",)),
            DropImportedName(p.statement("import apex"), ("apex",)),
        ],
        """
        import a
        if x:
            pass
        """,
    ),
    case(
        "drop_of_the_statement_and_of_its_name",
        """
        import a
        from apex import amp
        """,
        lambda p: [
            DropImportedName(p.statement("from"), ("amp",)),
            Drop(p.statement("from")),
        ],
        """
        import a
        """,
    ),
    case(
        "below_the_first_imports",
        '''
        """Doc."""
        from __future__ import annotations

        import a
        from b import c  # note

        d()
        import e
        ''',
        lambda p: [AddImport("import torch"), AddImport("import torch.nn as nn")],
        '''
        """Doc."""
        from __future__ import annotations

        import a
        from b import c  # note
        import torch
        import torch.nn as nn

        d()
        import e
        ''',
    ),
    case(
        "not_inside_try",
        """
        import a
        try:
            import torch
        except ImportError:
            pass
        """,
        lambda p: [AddImport("import torch")],
        """
        import a
        import torch
        try:
            import torch
        except ImportError:
            pass
        """,
    ),
    case(
        "above_the_imports_of_its_package",
        """
        import a
        from .b import c

        c()
        """,
        lambda p: [AddImport("import torch")],
        """
        import a
        import torch
        from .b import c

        c()
        """,
    ),
    case(
        "in_front_where_all_are_of_its_package",
        """
        # about it
        from . import a
        from .b import c
        """,
        lambda p: [AddImport("import torch")],
        """
        # about it
        import torch

        from . import a
        from .b import c
        """,
    ),
    case(
        "known_imports_are_not_repeated",
        """
        import a, torch
        b()
        from c import (
            d as e,
        )
        """,
        lambda p: [AddImport("import torch"), AddImport("from c import d as e")],
        """
        import a, torch
        b()
        from c import (
            d as e,
        )
        """,
    ),
    case(
        "an_import_that_goes_is_not_known",
        """
        import a
        from b import c
        d()
        from b import e, f
        """,
        lambda p: [
            Drop(p.statement("from b import c")),
            AddImport("from b import c"),
            DropImportedName(p.statement("from b import e"), ("f",)),
            AddImport("from b import f"),
        ],
        """
        import a
        from b import c
        from b import f
        d()
        from b import e
        """,
    ),
    case(
        "in_place_of_the_only_import",
        """
        # license

        from apex import amp


        def f(): pass
        """,
        lambda p: [Drop(p.statement("from")), AddImport("import torch")],
        """
        # license

        import torch


        def f(): pass
        """,
    ),
    case(
        "below_docstring",
        '''
        """Doc."""
        a()
        ''',
        lambda p: [AddImport("import torch")],
        '''
        """Doc."""

        import torch

        a()
        ''',
    ),
    case(
        "below_future",
        """
        from __future__ import annotations

        a()
        """,
        lambda p: [AddImport("import torch")],
        """
        from __future__ import annotations

        import torch

        a()
        """,
    ),
    case(
        "below_shebang",
        """
        #!/usr/bin/env python
        a()
        """,
        lambda p: [AddImport("import torch")],
        """
        #!/usr/bin/env python
        import torch

        a()
        """,
    ),
    case(
        "above_the_comment_of_the_first_function",
        """
        # license

        # about f
        def f(): pass
        """,
        lambda p: [AddImport("import torch")],
        """
        # license

        import torch


        # about f
        def f(): pass
        """,
    ),
    case("file_of_comments", "# only\n", lambda p: [AddImport("import a")], "# only\nimport a\n"),
]


@pytest.mark.parametrize(("before", "plan", "after"), CASES)
def test_import(before: str, plan: Plan, after: str) -> None:
    """Imports lose and gain what the plan says, in the layout of the file."""
    assert applied(before, plan) == after
