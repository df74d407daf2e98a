"""Kernels for the tests of engines: a worker must be able to import them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import polars as pl

from evalpipe.contracts.errors import EvalpipeError


def square(n: int) -> int:
    return n * n


def slow_first(n: int) -> tuple[int, int]:
    time.sleep(0.3 if n == 0 else 0.0)
    return n, os.getpid()


def threads(_: int) -> tuple[int, int]:
    return pl.thread_pool_size(), os.getpid()


def total(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(pl.col("a").sum())


def refuse(n: int) -> int:
    if n == 2:
        raise EvalpipeError("BAD_ARGUMENT", "two is refused.", where="n", fix="Take three.")
    return n


class KeywordError(Exception):
    def __init__(self, *, name: str) -> None:
        super().__init__(f"keyword {name}")


def raise_keyword(_: int) -> None:
    raise KeywordError(name="n")


def give_lambda(_: int) -> object:
    return lambda: None


def die(n: int) -> int:
    if n == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def leave(n: int) -> int:
    if n == 1:
        os._exit(7)
    return n


def mark_started(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(60)


def mark(path: str) -> str:
    Path(path).touch()
    return path


def say(n: int) -> int:
    print("from a kernel", flush=True)
    return n
