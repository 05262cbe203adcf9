from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, overload

A = TypeVar("A")
version: str

class Kernel:
    chain: str
    shape: tuple[int, ...]
    dtype: str
    info: dict[str, Any]
    def __call__(self, *arrays: A, out: Any = None, stream: Any = None) -> A: ...
    def explain(self, json: bool = False, why: bool = False) -> str: ...
    def _repr_svg_(self) -> str: ...

@overload
def copy(x: Mapping[str, A], chain: str, out: Any = None, stream: Any = None) -> A: ...
@overload
def copy(x: Sequence[A], chain: str, out: Any = None, stream: Any = None) -> A: ...
@overload
def copy(x: A, chain: str = "x", out: Any = None, stream: Any = None) -> A: ...
def ascontiguousarray(x: A) -> A: ...
def describe(x: Any, chain: str) -> tuple[tuple[int, ...], str]: ...
def compile(
    chain: str, arrays: Any = None, backend: str = "auto", arch: str | None = None, measure: bool = False
) -> Kernel: ...
def set_threads(n: int) -> None: ...
def run_files(
    line: str,
    paths: tuple[Any, ...],
    mem: int,
    chunks: tuple[int, ...],
    zarr_format: int,
    restart: bool,
    progress: Any,
    /,
) -> None: ...
