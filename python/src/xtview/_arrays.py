"""What _core asks about arrays when it meets them for the first time: NumPy's types, results of libraries
that have no allocator in C, streams. No array library is imported: that of an array is there already."""

import functools
import sys
from typing import Any

NUMPY, _EXCHANGE, DLPACK, BUFFER = range(4)
TORCH, IMMUTABLE = 8, 16

# enum xt_dtype, in order, by NumPy's names; the last three are ml_dtypes'.
_CODES = {
    "bool": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "uint32": 6, "int32": 7, "uint64": 8,
    "int64": 9, "float16": 10, "float32": 12, "float64": 13, "complex64": 16, "complex128": 17,
    "bfloat16": 11, "float8_e4m3fn": 14, "float8_e5m2": 15,
}


def kind_of(t: type, buffer: bool) -> int:
    """How arrays of type t are looked at; buffer: they have the buffer protocol."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(t, (numpy.ndarray, numpy.generic)):
        if issubclass(t, numpy.ma.MaskedArray):
            raise TypeError("a copy has no mask: give x.data, or x.filled()")
        return NUMPY
    if hasattr(t, "__dlpack__"):
        return DLPACK | {"torch": TORCH, "jax": IMMUTABLE, "jaxlib": IMMUTABLE}.get(_library(t), 0)
    if buffer:
        return BUFFER
    hint = "; wrap it in numpy.array(..)" if t in (list, tuple, int, float, bool, complex) else ""
    hint = "; its copy() makes one" if t.__module__ == "xtview._view" else hint
    raise TypeError(f"{t.__name__} is no array: it has neither __dlpack__ nor the buffer protocol{hint}")


def _library(t: type) -> str:
    return t.__module__.partition(".")[0]


def numpy_empty() -> Any:
    return sys.modules["numpy"].empty


@functools.lru_cache(256)
def numpy_code(dtype: Any) -> int:
    """enum xt_dtype; 0: known by its width alone."""
    if dtype.hasobject:
        raise TypeError(f"{dtype} holds references to objects, which cannot be copied as bytes")
    plain = dtype.isnative and dtype.names is None and dtype.subdtype is None
    return _CODES.get(dtype.name, 0) if plain else 0


def capsule_of(x: Any) -> Any:
    """A DLPack capsule, of the newest form that the library has; on a GPU ready for its current stream."""
    kind, device = x.__dlpack_device__()
    stream = {"stream": _stream_token(x)} if kind in (2, 13) else {}
    try:
        return x.__dlpack__(max_version=(1, 3), **stream)
    except TypeError:
        return x.__dlpack__(**stream)


def take_over(memory: Any, like: Any) -> Any:
    """memory, which exports DLPack, as an array of the library that `like` is of."""
    name = _library(type(like))
    if name in ("jax", "jaxlib"):
        import jax.dlpack

        return jax.dlpack.from_dlpack(memory)
    library = sys.modules[name]
    if hasattr(like, "__array_namespace__"):
        library = like.__array_namespace__()
    return library.from_dlpack(memory)


def empty_like(like: Any, shape: tuple[int, ...]) -> Any:
    """An array to write to on the GPU of `like`."""
    name = _library(type(like))
    if name in ("jax", "jaxlib"):
        raise ValueError("JAX's arrays on a GPU cannot be written to: give out= of another library")
    library = like.__array_namespace__() if hasattr(like, "__array_namespace__") else sys.modules[name]
    return library.empty(shape, dtype=like.dtype, device=like.device)


def stream_handle(stream: Any) -> int:
    """A CUstream from what libraries call a stream."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise TypeError(f"{type(stream).__name__} is no CUDA stream")


def current_stream(x: Any) -> int:
    """The library's current stream on the device of x; JAX has none: the default stream."""
    name = _library(type(x))
    if name == "torch":
        return int(sys.modules["torch"].cuda.current_stream(x.device).cuda_stream)
    if name == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return 0


def _stream_token(x: Any) -> int:
    """The stream as __dlpack__ wants it: 1 is the default one."""
    return current_stream(x) or 1
