"""Runs functions in processes that are forked from a small one, made once for each process of the tests.

To fork costs as much as there is memory to share, and by then a process of the tests holds every collected test and
all that the engine has said. The server holds torch and what the functions import, in large pages where there are any.
"""

from __future__ import annotations

import atexit
import gc
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import IO, NoReturn

_IN_LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "PYTHONMALLOC": "malloc"}
"""Objects of Python too: its own allocator takes small ones."""


def call(function: Callable[..., None], *arguments: object) -> int:
    """Call a function of a module in a process of its own, and return the exit code of that."""
    return ended(start(function, *arguments))


def start(function: Callable[..., None], *arguments: object) -> int:
    """Start to call a function of a module in a process of its own, and return the number of that."""
    return _asked(function, arguments, dict(os.environ))


def ended(child: int) -> int:
    """Wait for a process that was started here, and return its exit code."""
    return _asked(child)


def _asked(*request: object) -> int:
    server = _server()
    assert server.stdin and server.stdout
    pickle.dump(request, server.stdin)
    server.stdin.flush()
    answer: int = pickle.load(server.stdout)
    return answer


@cache
def _server() -> subprocess.Popen[bytes]:
    """Start the server; it ends with what asks it, as nothing more can come from there."""
    environment = os.environ | _IN_LARGE_PAGES
    server = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert server.stdin
    pickle.dump(sys.path, server.stdin)
    atexit.register(server.communicate)
    return server


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer every request: a process to wait for, or a function that is called in one."""
    sys.path[:] = pickle.load(requests)
    while requests.peek(1):  # type: ignore[attr-defined]
        request = pickle.load(requests)
        if isinstance(request[0], int):
            answer = os.waitstatus_to_exitcode(os.waitpid(request[0], 0)[1])
        else:
            gc.freeze()  # what a function does not look at need not be copied for it
            answer = os.fork() or _become(*request)
        pickle.dump(answer, answers)
        answers.flush()


def _become(
    function: Callable[..., None], arguments: Sequence[object], environment: dict[str, str]
) -> NoReturn:
    """Call the function in the environment of who asked, and never return."""
    code = 1
    gc.disable()
    try:
        os.environ.clear()
        os.environ.update(environment)
        function(*arguments)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    with os.fdopen(os.dup(0), "rb") as read, os.fdopen(os.dup(1), "wb") as write:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        _serve(read, write)
