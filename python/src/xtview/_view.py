"""Chains by methods and indexing: view(x).permute(0, 2, 1)[:, ::-1].copy(). A View is text with places for
arrays; each step is checked at once, and nothing moves before copy()."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from . import _core

# Parts of a chain's text: an int stands for the name of that array.
_Text = tuple[Any, ...]

METHODS = (
    "permute transpose reshape squeeze unsqueeze flip expand tile repeat roll diagonal unfold pad tril triu "
    "rearrange narrow select swapaxes movedim flatten unflatten ravel rot90 fliplr flipud broadcast_to"
).split()


def _number(v: Any) -> str:
    """As the language writes it."""
    if v is None or isinstance(v, bool):
        return str(v)
    if isinstance(v, str):
        if '"' in v or "\n" in v:
            raise ValueError(f"{v!r} has a quote or a line break in it")
        return f'"{v}"'
    if isinstance(v, (tuple, list)):
        return "(" + ", ".join(map(_number, v)) + ("," if len(v) == 1 else "") + ")"
    if hasattr(v, "item") and not hasattr(v, "__index__"):
        v = v.item()
    if isinstance(v, float):
        return repr(v)
    if isinstance(v, complex):
        return f"({v.real!r}, {v.imag!r})"
    return str(operator.index(v))


_MOST = (1 << 63) - 1  # what the language has numbers for


def _bound(v: Any) -> str:
    """Of a slice, as Python takes it: of any size."""
    return "" if v is None else str(max(-_MOST, min(_MOST, operator.index(v))))


def _item(i: Any) -> str:
    if isinstance(i, slice):
        a, b, c = _bound(i.start), _bound(i.stop), _bound(i.step)
        return f"{a}:{b}" + (f":{c}" if c else "")
    if i is None or i is Ellipsis:
        return "None" if i is None else "..."
    try:
        if not isinstance(i, bool):
            return str(operator.index(i))
    except TypeError:
        pass
    raise TypeError(f"an index is an integer, a slice, None or ..., not {type(i).__name__}: which elements "
                    "move is known when a chain is compiled")


class View:
    """A chain on arrays that has not been copied yet. Its methods are the operations of the language, by the
    names that NumPy and PyTorch give them: permute, reshape, pad, rearrange, .."""

    __slots__ = ("_arrays", "_text", "_shape", "_dtype")

    def __init__(self, arrays: tuple[Any, ...], text: _Text = (0,)):
        if not isinstance(arrays, tuple):
            raise TypeError("view(x) makes the View of an array")
        self._arrays, self._text = arrays, text
        self._shape, self._dtype = _core.describe(*self._call())

    def _call(self) -> tuple[Any, str]:
        """(arrays, chain) for _core."""
        names = ["x"] if len(self._arrays) == 1 else [f"x{i}" for i in range(len(self._arrays))]
        text = "".join(names[p] if isinstance(p, int) else p for p in self._text)
        return (self._arrays[0] if len(names) == 1 else dict(zip(names, self._arrays))), text

    def _then(self, text: str) -> View:
        return View(self._arrays, (*self._text, text))

    def _method(self, name: str, *args: Any, **kw: Any) -> View:
        parts = [_number(a) for a in args] + [f"{k}={_number(v)}" for k, v in kw.items()]
        return self._then(f".{name}({', '.join(parts)})")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kw: self._method(name, *args, **kw)

    def __getitem__(self, items: Any) -> View:
        items = items if isinstance(items, tuple) else (items,)
        text = "[" + (", ".join(map(_item, items)) or "...") + "]"
        try:
            return self._then(text)
        except ValueError as e:
            if any(isinstance(i, slice) and i.step is not None and not operator.index(i.step) for i in items):
                raise  # as NumPy, and lists, have it
            raise IndexError(*e.args) from None

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def dtype(self) -> str:
        """As xt calls it: 'f32'."""
        return self._dtype

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def T(self) -> View:
        return self._then(".T")

    @property
    def chain(self) -> str:
        return self._call()[1]

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a view of rank 0")
        return self._shape[0]

    def __iter__(self) -> Iterator[View]:
        return (self[i] for i in range(len(self)))

    def copy(self, out: Any = None, stream: Any = None) -> Any:
        """The array, of the library that the first one is of; or out, written."""
        return _core.copy(*self._call(), out, stream)

    def compile(self, **options: Any) -> _core.Kernel:
        arrays, chain = self._call()
        return _core.compile(chain, arrays, **options)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy

        if copy is False:
            raise ValueError("a view becomes an array by a copy")
        return numpy.asarray(self.copy(), dtype)

    def __repr__(self) -> str:
        return f"<xtview.View {self._dtype}{list(self._shape)} = {self.chain}>"

    def _repr_svg_(self) -> str:
        """The picture of the copy that copy() would be: what notebooks show."""
        return self.compile()._repr_svg_()

    def __dir__(self) -> Iterable[str]:
        return [*object.__dir__(self), *METHODS]


def view(x: Any) -> View:
    """A view of an array, to which operations are added."""
    return x if isinstance(x, View) else View((x,))


def _join(name: str, xs: Sequence[Any], axis: int) -> Any:
    """concat or stack: of views a view, of arrays an array."""
    if not isinstance(axis, int):
        axis = operator.index(axis)
    if not any(isinstance(x, View) for x in xs):
        return _core.copy(xs if isinstance(xs, (list, tuple)) else list(xs), _join_chain(name, axis, len(xs)))
    arrays: list[Any] = []
    text: list[Any] = [f"{name}({axis}"]
    for v in map(view, xs):
        text += [", ", *(p + len(arrays) if isinstance(p, int) else p for p in v._text)]
        arrays += v._arrays
    return View(tuple(arrays), (*text, ")"))


@functools.lru_cache(1024)
def _join_chain(name: str, axis: int, n: int) -> str:
    """Of inputs by the names that lists of arrays have: x, y, z, x3, x4 .."""
    return f"{name}({axis}, " + ", ".join([*"xyz", *(f"x{i}" for i in range(3, n))][:n]) + ")"


def concat(xs: Sequence[Any], axis: int = 0) -> Any:
    """Arrays one after the other along an axis that they have."""
    return _join("concat", xs, axis)


def stack(xs: Sequence[Any], axis: int = 0) -> Any:
    """Arrays one after the other along a new axis."""
    return _join("stack", xs, axis)


def rearrange(x: Any, pattern: str, **lengths: int) -> Any:
    """einops.rearrange: rearrange(x, "b s (h d) -> b h s d", h=8)."""
    return _pattern("rearrange", x, pattern, lengths)


def repeat(x: Any, pattern: str, **lengths: int) -> Any:
    """einops.repeat: repeat(x, "h w -> h (w r)", r=2)."""
    return _pattern("repeat", x, pattern, lengths)


def _pattern(name: str, x: Any, pattern: str, lengths: dict[str, int]) -> Any:
    if isinstance(x, View):
        return x._method(name, pattern, **lengths)
    if isinstance(x, (list, tuple)):
        return view(stack([view(a) for a in x]))._method(name, pattern, **lengths).copy()
    return _core.copy(x, _pattern_chain(name, pattern, *lengths.items()))


@functools.lru_cache(1024)
def _pattern_chain(name: str, pattern: str, *lengths: tuple[str, int]) -> str:
    for k, v in lengths:
        if not hasattr(v, "__index__"):
            raise TypeError(f"{k}={v!r}: the length of an axis is an integer")
    rest = "".join(f", {k}={operator.index(v)}" for k, v in lengths)
    return f"x.{name}({_number(pattern)}{rest})"


def copyto(dst: Any, src: Any, stream: Any = None) -> None:
    """dst[...] = src, src broadcast to dst's shape. Both may have any strides; they must not overlap."""
    for name, a in ("dst", dst), ("src", src):
        if not hasattr(a, "shape"):
            raise TypeError(f"copyto: {name} is no array but {type(a).__name__}: numpy.asarray(..) makes one")
    shape, given = tuple(dst.shape), tuple(src.shape)
    if len(given) > len(shape) or any(n not in (1, m) for n, m in zip(reversed(given), reversed(shape))):
        raise ValueError(f"copyto: a source of shape {given} does not fit a destination of shape {shape}")
    if isinstance(src, View):
        (src if given == shape else src.broadcast_to(shape)).copy(dst, stream)
    else:
        _core.copy(src, "x" if given == shape else f"x.broadcast_to({_number(shape)})", dst, stream)


def compile(
    chain: str, *arrays: Any, backend: str = "auto", arch: str | None = None, measure: bool = False
) -> _core.Kernel:
    """A kernel for a problem line that declares its inputs ("x: f16[16,64]; x.T"), or for a chain on these
    arrays' layouts. k(x) and k(x, out=y) then run it on arrays of exactly those layouts. arch: for a GPU of
    that architecture, "sm_90", which need not be there. measure: times the plans that a CPU copy could have
    and keeps the fastest."""
    given = None if not arrays else arrays[0] if len(arrays) == 1 else arrays
    return _core.compile(chain, given, backend, arch, measure)
