"""Arrays on a GPU, without one: the driver is the double of tests/support, whose device memory is the host's
and which runs kernels in the interpreter. A process of its own, because a driver is loaded once."""

import os
import pathlib
import subprocess
import sys

import pytest

root = pathlib.Path(__file__).resolve().parents[2]
DOUBLE = pathlib.Path(os.environ.get("B", root / "build")) / "tests/libcuda_double.so"

PROGRAM = r'''
import ctypes, sys
import xtview as xt

cuda = ctypes.CDLL(sys.argv[1])
context, stream = ctypes.c_void_p(), ctypes.c_void_p()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxPushCurrent_v2(context) and not cuda.cuStreamCreate(ctypes.byref(stream), 0)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
asked = []


class Array:
    """bytes [rows, columns] on the device; as a library's that knows DLPack's old form."""
    dtype, device = "u1", 0

    def __init__(self, rows, columns, values=None, reverse=False):
        self.shape, n = (rows, columns), rows * columns
        self.block = ctypes.c_uint64()
        assert not cuda.cuMemAlloc_v2(ctypes.byref(self.block), ctypes.c_size_t(max(n, 1)))
        self.bytes = (ctypes.c_uint8 * n).from_address(self.block.value)
        if values:
            self.bytes[:] = values
        self.i64 = (ctypes.c_int64 * 4)(rows, columns, -columns if reverse else columns, 1)
        at = ctypes.addressof(self.i64)
        first = self.block.value + (n - columns if reverse else 0)
        self.tensor = Tensor(first, (ctypes.c_int32 * 2)(2, 0), 2, 1, 8, 1, at, at + 16, 0, None, None)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        asked.append(stream)
        return capsule(ctypes.addressof(self.tensor), b"dltensor", None)

    def __array_namespace__(self):
        return self

    @staticmethod
    def empty(shape, dtype, device):
        return Array(*shape)


x = Array(3, 5, range(15))
y = xt.copy(x, "x.T")
assert isinstance(y, Array) and y.shape == (5, 3), y
assert list(y.bytes) == [5 * r + c for c in range(5) for r in range(3)]
assert asked[0] == 1  # the default stream: this library has no current one

out = Array(5, 3)
assert xt.copy(x, "x.T", out=out, stream=stream.value) is out and list(out.bytes) == list(y.bytes)
up = Array(3, 5, range(15), reverse=True)
assert list(xt.copy(up, "x").bytes) == [5 * r + c for r in (2, 1, 0) for c in range(5)]

k = xt.compile("x.T", x)
assert k.info["backend"] == "cuda"
assert k(x, out=out) is out and list(k(x).bytes) == list(y.bytes)
host = xt.compile("x: u8[3,5]; x.T")
for wrong, words in ((lambda: host(x), "compiled for the CPU"),
                     (lambda: k(memoryview(bytes(15)).cast("B", (3, 5))), "compiled for CUDA"),
                     (lambda: xt.copy([x, bytes(15)], "x"), "different devices")):
    try:
        wrong()
    except ValueError as e:
        assert words in str(e), e
    else:
        raise AssertionError(words)
print("done")
'''


def test_arrays_on_a_gpu_that_is_not_there():
    if not DOUBLE.exists():
        pytest.skip("libcuda_double.so is not there")
    env = {**os.environ, "XT_LIBCUDA": str(DOUBLE), "XT_CACHE_DIR": ""}
    p = subprocess.run([sys.executable, "-c", PROGRAM, str(DOUBLE)], capture_output=True, text=True, env=env)
    if "NVRTC" in p.stderr.split("\n")[-2:][0]:
        pytest.skip("no NVRTC")
    assert p.stdout == "done\n", p.stderr
