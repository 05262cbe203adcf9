"""xtview: chains of views in one copy.

    import xtview as xt
    y = xt.copy(x, "x.permute(0,2,1,3)[:, ::-1]")              NumPy in, NumPy out; torch in, torch out; ..
    y = xt.view(x).permute(0, 2, 1, 3)[:, ::-1].copy()         the same by methods
    y = xt.rearrange(x, "b s (h d) -> b h s d", h=8)           einops' patterns; xt.repeat too
    y = xt.concat([a, b], axis=1)
    y = xt.copy({"q": q, "k": k}, "concat(1, q, k)")           several inputs
    k = xt.compile("x: f16[16,64,32,128]; x.permute(0,2,1,3)"); k(x, out=y)
    print(k); print(k.explain()); in a notebook k, or a view, shows the picture of its copy
    xt.ascontiguousarray(x); xt.copyto(dst, src)
    xt.run("x; x.T", "in.npy", "out.zarr", mem="2GB")          files of any size

Arrays are all that has the buffer protocol or DLPack: NumPy, PyTorch, JAX, CuPy, memoryview. What comes in
comes out. The GIL is released while 16 KiB or more are written. Each sub-interpreter has its own compiled
chains. Free-threaded Pythons are not supported: they load no extension of the stable ABI."""

from typing import Any

from . import _view
from ._core import Kernel, ascontiguousarray, copy, set_threads
from ._core import version as __version__
from ._files import run
from ._view import View, compile, concat, copyto, rearrange, repeat, stack, view

__all__ = [
    "Kernel", "View", "ascontiguousarray", "compile", "concat", "copy", "copyto", "rearrange", "repeat",
    "run", "set_threads", "stack", "view",
]


def __getattr__(name: str) -> Any:
    hint = f": xt.view(x).{name}(..).copy(), or xt.copy(x, 'x.{name}(..)')" if name in _view.METHODS else ""
    raise AttributeError(f"module 'xtview' has no attribute '{name}'{hint}", name=name)
