"""Performs the edits of a plan on the text of one file; decides nothing."""

from amp_migrate.rewrite.driver import rewrite
from amp_migrate.rewrite.errors import EditError

__all__ = ["EditError", "rewrite"]
