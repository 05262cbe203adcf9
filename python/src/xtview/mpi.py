"""Chains over ranks, moved by MPI: with mpi4py, and with libxtview-mpi, which the first plan loads.

    from mpi4py import MPI
    from xtview import mpi
    p = mpi.plan("mesh r[4]; x: f64[4096 r,8192]; x.T -> [8192 r,4096]", MPI.COMM_WORLD)
    p.shape(0), p.shape()                 # of this rank's x and of its result
    p(dst, src)                           # arrays of NumPy, or any with its __array_interface__

All ranks make the plan and call it. It is freed by free(), by all of them, before MPI ends. mpi.library:
where libxtview-mpi is, if the loader does not find it; it wants the MPI that mpi4py was built with.
"""
import ctypes
import math
from typing import Any

__all__ = ["library", "plan", "Plan"]
library = "libxtview-mpi.so.0"
_RANK = 32


class _End(ctypes.Structure):  # struct xt_end_info
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dtype", ctypes.c_int),
                ("rank", ctypes.c_int), ("shape", ctypes.c_int64 * _RANK),
                ("strides", ctypes.c_int64 * _RANK), ("offset", ctypes.c_int64), ("origin", ctypes.c_int),
                ("from_bytes", ctypes.c_int64), ("to_bytes", ctypes.c_int64)]


class _Error(ctypes.Structure):  # struct xt_error
    _fields_ = [("status", ctypes.c_int), ("op", ctypes.c_int), ("axis", ctypes.c_int),
                ("column", ctypes.c_int), ("message", ctypes.c_char * 512)]


_loaded: list[Any] = []


def _lib() -> Any:
    if not _loaded:
        lib = ctypes.CDLL(library)
        pointer, pointers = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
        lib.xt_last_error.restype = ctypes.POINTER(_Error)
        lib.xt_dtype_name.restype = ctypes.c_char_p
        lib.xt_dtype_bytes.restype = ctypes.c_size_t
        lib.xt_mpi_shard.restype = pointer
        lib.xt_mpi_shard.argtypes = [pointer]
        lib.xt_shard_inputs.argtypes = [pointer]
        lib.xt_mpi_shape.argtypes = [pointer, ctypes.c_int, ctypes.POINTER(_End)]
        lib.xt_mpi_run.argtypes = [pointer, pointer, pointers]
        lib.xt_mpi_free.argtypes = [pointer]
        lib.xt_mpi_free.restype = None
        _loaded.append(lib)
    return _loaded[0]


# Of enum xt_status what is no fault of the arguments: the same exceptions as those of the package.
_RAISES = {-6: TypeError, -11: MemoryError, -17: OSError,
           **dict.fromkeys((-12, -13, -14, -16, -18, -19, -20, -21), RuntimeError)}


def _check(status: int) -> None:
    if status:
        message = _lib().xt_last_error().contents.message.decode(errors="replace")
        raise _RAISES.get(status, ValueError)(message)


def _handle(comm: Any) -> Any:
    """An MPI_Comm as C has it: a number, or a pointer."""
    from mpi4py import MPI
    kind = {4: ctypes.c_int, 8: ctypes.c_void_p}[MPI._sizeof(MPI.Comm)]
    return kind.from_address(MPI._addressof(comm))


class Plan:
    """What this rank does; p(dst, src, ..) does it, together with the others."""

    def __init__(self, line: str, comm: Any) -> None:
        self._plan = ctypes.c_void_p()
        _check(_lib().xt_mpi_plan(line.encode(), _handle(comm), ctypes.byref(self._plan)))
        self.inputs: int = _lib().xt_shard_inputs(_lib().xt_mpi_shard(self._plan))

    def _end(self, which: int) -> _End:
        if not self._plan:
            raise ValueError("the plan was freed")
        end = _End(size=ctypes.sizeof(_End))
        _check(_lib().xt_mpi_shape(self._plan, which, ctypes.byref(end)))
        return end

    def shape(self, which: int = -1) -> tuple[int, ...]:
        """Extents of this rank's part of an input, or of the result (-1)."""
        end = self._end(which)
        return tuple(end.shape[:end.rank])

    def dtype(self, which: int = -1) -> str:
        return str(_lib().xt_dtype_name(self._end(which).dtype).decode())

    def _pointer(self, which: int, array: Any, write: bool) -> Any:
        end, name = self._end(which), "the result" if which < 0 else f"input {which}"
        have, shape = array.__array_interface__, self.shape(which)
        item = int(_lib().xt_dtype_bytes(end.dtype))
        size = int(have["typestr"][2:])
        if tuple(have["shape"]) != shape or size != item:
            raise ValueError(f"{name} is {self.dtype(which)}{list(shape)} on this rank, not "
                             f"{list(have['shape'])} of {size} bytes each")
        if math.prod(shape) == 0:
            return ctypes.c_void_p(have["data"][0])
        dense = [item * math.prod(shape[k + 1:]) for k in range(len(shape))]
        strides = have.get("strides") or dense
        if any(a != b and n > 1 for a, b, n in zip(strides, dense, shape)):
            raise ValueError(f"{name} is not dense")
        if end.offset or any(s * item != d and n > 1 for s, d, n in zip(end.strides, dense, shape)):
            raise ValueError(f"{name} has strides in the line: arrays are dense here")
        if write and have["data"][1]:
            raise ValueError("the result is read-only")
        return ctypes.c_void_p(have["data"][0])

    def __call__(self, dst: Any, *srcs: Any) -> Any:
        if len(srcs) != self.inputs:
            raise TypeError(f"{self.inputs} inputs, {len(srcs)} given")
        pointers = [self._pointer(i, s, False) for i, s in enumerate(srcs)]
        at = (ctypes.c_void_p * max(1, len(srcs)))(*pointers)
        _check(_lib().xt_mpi_run(self._plan, self._pointer(-1, dst, True), at))
        return dst

    def free(self) -> None:
        if self._plan:
            _lib().xt_mpi_free(self._plan)
            self._plan = ctypes.c_void_p()


def plan(line: str, comm: Any) -> Plan:
    """Plans a chain over the ranks of a communicator of mpi4py: by all of them."""
    return Plan(line, comm)
