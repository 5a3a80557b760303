"""Calls in threads of their own, for what is waited for: a process that ends does not wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def begun(call: Callable[[], T]) -> Future[T]:
    """What `call` returns or raises, once its thread is done; the thread is a daemon, so that Ctrl-C ends the
    process.
    """
    future: Future[T] = Future()

    def work() -> None:
        try:
            answer = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(answer)

    threading.Thread(target=work, daemon=True, name="rlhealth-waiting").start()
    return future
