"""What comes in comes out: NumPy's arrays, buffers; what is refused, and in which words."""

import array
import ctypes
import gc
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import xtview as xt


@pytest.fixture
def x():
    return np.arange(24, dtype="f4").reshape(2, 3, 4)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == np.ascontiguousarray(b).tobytes()


def test_a_chain_as_text_and_by_methods(x):
    want = x.transpose(0, 2, 1)[:, ::-1]
    assert same(xt.copy(x, "x.permute(0,2,1)[:, ::-1]"), want)
    v = xt.view(x).permute(0, 2, 1)[:, ::-1]
    assert v.shape == (2, 4, 3) and v.dtype == "f32" and v.ndim == 3 and len(v) == 2
    assert same(v.copy(), want) and same(np.asarray(v), want)
    assert repr(v) == "<xtview.View f32[2, 4, 3] = x.permute(0, 2, 1)[:, ::-1]>"
    assert v.chain == "x.permute(0, 2, 1)[:, ::-1]"
    out = np.empty((2, 4, 3), "f4")
    assert v.copy(out=out) is out and same(out, want)
    assert same(v.compile()(x), want)


def test_methods_take_what_numpys_and_pytorchs_take(x):
    v = xt.view(x)
    assert same(v.T.copy(), x.T)
    assert same(v.reshape(np.int64(6), -1).copy(), x.reshape(6, 4))
    assert same(v.reshape((3, 8)).copy(), x.reshape(3, 8))
    assert same(v.pad((1, 0), (0, 2), (0, 0), value=-1.5).copy(),
                np.pad(x, ((1, 0), (0, 2), (0, 0)), constant_values=-1.5))
    assert same(v[0].tril(-1).copy(), np.tril(x[0], -1))
    assert same(v[..., None, np.int32(1)].copy(), x[..., None, 1])
    assert same(v.unsqueeze(0).expand(5, 2, 3, 4).copy(), np.broadcast_to(x, (5, 2, 3, 4)))
    z = (x + 1j).astype("c8")
    assert same(xt.view(z).pad((0, 0), (0, 0), (1, 1), value=2 - 1j).copy(),
                np.pad(z, ((0, 0), (0, 0), (1, 1)), constant_values=2 - 1j))
    assert xt.view(v) is v


def test_several_inputs(x):
    y = x + 100
    assert same(xt.copy({"q": x, "k": y}, "concat(1, q, k)"), np.concatenate([x, y], 1))
    assert same(xt.copy([x, y], "stack(0, y, x)"), np.stack([y, x]))
    assert same(xt.concat([x, y], axis=-1), np.concatenate([x, y], -1))
    assert same(xt.stack((x, y), 1), np.stack([x, y], 1))
    many = [np.full((2, 3), i, "u1")[:, ::-1] for i in range(40)]
    assert same(xt.stack(many), np.stack(many))
    assert same(xt.copy({"a": x[:, ::-1]}, "a: f32[2,3,4]; a.flip(1)"), x)


def test_compiled_kernels(x):
    k = xt.compile("x: f32[2,3,4]; x.permute(0,2,1)", backend="cpu")
    out = np.empty((2, 4, 3), "f4")
    assert k(x, out=out) is out and same(out, x.transpose(0, 2, 1)) and same(k(x), out)
    assert same(k(*[x], **{"out": None}), out)
    assert k.shape == (2, 4, 3) and k.dtype == "f32" and k.chain == "x: f32[2,3,4]; x.permute(0,2,1)"
    assert k.info["backend"] == "cpu" and k.info["bytes_written"] == 96 and len(k.info["signature"]) == 32
    assert str(k).startswith("one copy: 96 bytes read, 96 bytes written")
    assert k.explain().startswith(str(k))
    assert "x.permute(0,2,1)" in k.explain() and k.explain(json=True)[0] == "{"
    assert "refused" in k.explain(why=True) and "refused" not in k.explain()
    assert k._repr_svg_().startswith("<svg ") and k._repr_svg_().endswith("</svg>\n")
    assert "one copy" in xt.view(np.zeros((3, 4), "f4")).T._repr_svg_()
    assert repr(k) == "<xtview.Kernel 'x: f32[2,3,4]; x.permute(0,2,1)'>"
    r = xt.compile("x.flip(0)", x[:, ::-2])
    assert same(r(x[:, ::-2]), x[::-1, ::-2])
    into = xt.compile("x: u1[2,3]; x -> [2,3]:[8,2]+5")
    cache = np.zeros((4, 8), "u1")
    into(np.arange(6, dtype="u1").reshape(2, 3),
         out=np.lib.stride_tricks.as_strided(cache.reshape(-1)[5:], (2, 3), (8, 2)))
    assert cache.reshape(-1)[[5, 7, 9, 13, 15, 17]].tolist() == list(range(6))
    for wrong in (x[:, ::-1], x.astype("f8"), x[0], x.T):
        with pytest.raises(ValueError, match="the kernel is compiled for x f32"):
            k(wrong)
    with pytest.raises(TypeError, match="takes 1 array, 2 given"):
        k(x, x)
    with pytest.raises(TypeError, match="none given"):
        k()
    with pytest.raises(TypeError, match="unexpected keyword argument 'dst'"):
        k(x, dst=out)
    with pytest.raises(ValueError, match="give out="):
        into(np.zeros((2, 3), "u1"))
    with pytest.raises(TypeError):
        xt.Kernel()


def test_numpys_names(x):
    assert xt.ascontiguousarray(x) is x
    assert same(xt.ascontiguousarray(x[:, ::-1]), x[:, ::-1])
    dst = np.zeros((5, 9), "f4")
    xt.copyto(dst[1::2, ::-2], np.arange(5, dtype="f4"))
    want = np.zeros((5, 9), "f4")
    want[1::2, ::-2] = np.arange(5)
    assert same(dst, want)
    assert xt.ascontiguousarray(np.array(3.0)).shape == ()


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f8", "c16", "g", ">i4", "M8[s]", "m8[ms]",
                                   "S2", "U1", "V16", [("a", "i4"), ("b", "f4")]])
def test_types_that_numpy_has(dtype):
    dtype = np.dtype(dtype)
    a = np.frombuffer(np.arange(6 * dtype.itemsize, dtype="u1") & 1, dtype).reshape(2, 3)
    got = xt.copy(a, "x.T[::-1]")
    assert got.dtype == dtype and got.tobytes() == np.ascontiguousarray(a.T[::-1]).tobytes()


def test_types_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "int4"):
        t = np.dtype(getattr(ml_dtypes, name))
        a = np.arange(6).astype(t).reshape(2, 3)
        assert same(xt.copy(a, "x.T"), a.T)
    one = np.ones((2, 2), ml_dtypes.bfloat16)
    assert xt.copy(one, "x.pad((1,0),(0,0), value=2)")[0, 0] == 2


def test_rank_0_to_32_and_nothing_at_all():
    assert xt.copy(np.array(7, "i2"), "x").shape == ()
    assert xt.copy(np.zeros((0, 3)), "x.T").shape == (3, 0)
    assert xt.copy(np.zeros((0, 3)), "x.pad((1,1),(0,0))").tolist() == [[0, 0, 0], [0, 0, 0]]
    deep = np.arange(8).reshape((1,) * 29 + (2, 2, 2))
    assert same(xt.copy(deep, "x.T"), deep.T)
    out = np.empty((0, 3))
    assert xt.copy(np.zeros((0, 3)), "x", out=out) is out


def test_buffers_without_numpy():
    assert xt.copy(b"abcdef", "x.reshape(2,3).T").tolist() == [[97, 100], [98, 101], [99, 102]]
    a = array.array("d", [1, 2, 3, 4])
    assert xt.copy(a, "x[::-2]").tolist() == [4, 2] and xt.copy(a, "x").format == "d"
    to = bytearray(3)
    assert xt.copy(memoryview(b"abc")[::-1], "x", out=to) is to and to == b"cba"
    with pytest.raises(ValueError, match="out is read-only"):
        xt.copy(b"abc", "x", out=b"abc")
    with pytest.raises(TypeError, match="format"):
        xt.copy(memoryview(np.zeros(3, [("a", "u1"), ("b", "u1"), ("c", "u1")])), "x")


def test_no_array_library_is_imported():
    code = "import sys, xtview as xt; xt.copy(b'ab', 'x.flip(0)'); sys.exit(any(m in sys.modules for m in " \
           "('numpy', 'torch', 'jax')))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_buffer_is_an_array():
    words = (ctypes.c_int * 4)(1, 2, 3, 4)
    assert xt.copy(words, "x[::-1]").tolist() == [4, 3, 2, 1]
    assert xt.copy(array.array("d", [1, 2, 3]), "x[::-1]").tolist() == [3, 2, 1]
    assert xt.copy(xt.copy(words), "x.reshape(2,2).T").tolist() == [[1, 3], [2, 4]]
    out = (ctypes.c_double * 3)()
    assert xt.copy(np.arange(3.0), "x[::-1]", out=out) is out and list(out) == [2, 1, 0]


def test_scalars_of_numpy_are_arrays_of_rank_0():
    for v in np.float32(3), np.int8(-1), np.complex128(1 + 2j), np.bool_(True):
        y = xt.copy(v, "x.unsqueeze(0)")
        assert y.dtype == v.dtype and y.shape == (1,) and y[0] == v
    assert type(xt.copy(np.float32(3))) is np.ndarray


def test_complex_values_of_a_pad():
    x = np.ones(1, "c16")
    for v in 1 + 2j, -0.5j, complex("nan+infj"), complex("-inf-infj"), complex(-0.0, -0.0), 1e300j:
        y = xt.view(x).pad((1, 0), value=v).copy()
        assert same(y, np.array([v, 1], "c16")), v


def test_a_view_is_iterated_and_copied_to(x):
    v = xt.view(x)[::-1]
    assert [same(a.copy(), b) for a, b in zip(v, x[::-1], strict=True)] == [True, True]
    y = np.zeros((3, 2, 3, 4), "f4")
    xt.copyto(y[0], v)
    xt.copyto(y[1:], v)
    assert same(y, np.broadcast_to(x[::-1], y.shape))
    with pytest.raises(TypeError):
        iter(xt.view(x[0, 0, 0:1]).squeeze())


@pytest.mark.parametrize("call, error, words", [
    (lambda x: xt.copy(x, "x.permut(0,1)"), ValueError,
     "did you mean 'permute'?\n    x.permut(0,1)\n      ^"),
    (lambda x: xt.copy(x, "x.reshape(5,5)"), ValueError,
     "[2,3,4] (24 elements) does not fit [5,5] (25 elements)"),
    (lambda x: xt.copy(x, "x + 1"), ValueError, "    x + 1\n      ^"),
    (lambda x: xt.copy(x, "x.permute(0,1)"), ValueError, "permute"),
    (lambda x: xt.copy(x, "y"), ValueError, "y"),
    (lambda x: xt.copy(x, 3), TypeError, "the chain, behind the array, is a string"),
    (lambda x: xt.copy(), TypeError, "takes 1 to 4 arguments"),
    (lambda x: xt.copy(x, "x", to=x), TypeError, "unexpected keyword argument 'to'"),
    (lambda x: xt.copy({}, "x"), ValueError, "no array"),
    (lambda x: xt.copy({"a": x}, "b: f32[2,3,4]; b"), ValueError,
     "input 0 of the chain is 'b', the array's name is 'a'"),
    (lambda x: xt.copy({"a": x, "b": x}, "a: f32[2,3,4]; a"), ValueError, "the chain has 1 inputs, 2 arrays"),
    (lambda x: xt.copy({1: x}, "x"), TypeError, "1 is no name that a chain has for an array"),
    (lambda x: xt.copy({"1a": x}, "x"), ValueError, "'1a' is no name that a chain has for an array"),
    (lambda x: xt.copy({"a b": x}, "x"), ValueError, "'a b' is no name"),
    (lambda x: xt.copy(xt.view(x), "x"), TypeError, "nor the buffer protocol; its copy() makes one"),
    (lambda x: xt.View(x), TypeError, "view(x) makes"),
    (lambda x: xt.copy(bytes(1), f"x.expand({1 << 60})"), MemoryError,
     "no memory for a result of 1152921504606846976 bytes"),
    (lambda x: xt.compile("x: f32[2]; x", arch="sm_90", backend="cpu"), ValueError, "arch is of CUDA"),
    (lambda x: xt.compile("x: f32[2]; x", arch="sm_1"), ValueError, "there is no architecture 'sm_1'"),
    (lambda x: xt.copy(3.5, "x"), TypeError, "float is no array"),
    (lambda x: xt.copy(np.array([x, None], object), "x"), TypeError, "references to objects"),
    (lambda x: xt.copy(np.ma.masked_array(x), "x"), TypeError, "no mask"),
    (lambda x: xt.copy(np.zeros(3, "S3"), "x"), TypeError, "1, 2, 4, 8 or 16 bytes"),
    (lambda x: xt.copy([x, x.astype("f8")], "concat(0,x,y)"), TypeError, "f64"),
    (lambda x: xt.copy([x.astype(">f4"), x.view("u4")], "concat(0,x,y)"), TypeError,
     "different element types"),
    (lambda x: xt.copy(x.astype(">f4"), "x.pad((1,1),(0,0),(0,0), value=1)"), TypeError, "zero bytes"),
    (lambda x: xt.copy(x, "x", out=x[::-1]), ValueError, "overlaps input 0"),
    (lambda x: xt.copy(x, "x", out=np.zeros((2, 3, 5), "f4")), ValueError,
     "the result is (2, 3, 4), out is (2, 3, 5)"),
    (lambda x: xt.copy(x, "x", out=np.zeros((2, 3, 4))), TypeError,
     "the result is f32, out f64: xt moves elements, it does not convert them"),
    (lambda x: xt.copy(x, "x", out=np.broadcast_to(np.zeros(1, "f4"), (2, 3, 4))), ValueError, "read-only"),
    (lambda x: xt.copy(x, "x", out=np.lib.stride_tricks.as_strided(x, (2, 3, 4), (4, 4, 4))), ValueError,
     "address"),
    (lambda x: xt.copy(x, "x -> [2,3,4]:[24,8,2]+0"), ValueError, "give out="),
    (lambda x: xt.copy(x, "x", stream="main"), TypeError, "str is no CUDA stream"),
    (lambda x: xt.view(x)[[0, 1]], TypeError, "an index is"),
    (lambda x: xt.view(x)[x > 1], TypeError, "an index is an integer, a slice, None or ..., not ndarray"),
    (lambda x: xt.view(x).nothing(), ValueError, "nothing"),
    (lambda x: len(xt.view(x[0, 0, 0:1]).squeeze()), TypeError, "rank 0"),
    (lambda x: xt.rearrange(x, "a b -> b a"), ValueError, "the left side has 2 axes, the tensor 3"),
    (lambda x: xt.rearrange(x, 'a "b -> b a'), ValueError, "a quote"),
    (lambda x: xt.rearrange(x, "a b (c d) -> a b c d", c="2"), TypeError,
     "c='2': the length of an axis is an integer"),
    (lambda x: xt.copyto(x, 5), TypeError, "copyto: src is no array but int"),
    (lambda x: xt.permute(x, (2, 0, 1)), AttributeError, "xt.view(x).permute(..).copy()"),
    (lambda x: xt.nothing, AttributeError, "module 'xtview' has no attribute 'nothing'"),
    (lambda x: xt.copy(x, "permute(2,0,1)"), ValueError, "as x in flip(x, 0)"),
    (lambda x: xt.copy(x, ".permute(2,0,1)"), ValueError, "'.' follows a tensor"),
    (lambda x: xt.compile("x; x.T"), ValueError, "as in x: f32"),
    (lambda x: xt.compile("x: f32[2]; x", backend="gpu"), ValueError, "backend is 'auto'"),
    (lambda x: xt.concat([]), ValueError, "no array"),
    (lambda x: xt.copyto(x, np.zeros(3, "f4")), ValueError,
     "copyto: a source of shape (3,) does not fit a destination of shape (2, 3, 4)"),
    (lambda x: xt.copyto(x[0], x), ValueError, "a source of shape (2, 3, 4) does not fit"),
    (lambda x: xt.copy([[1, 2]], "x.T"), TypeError,
     "list is no array: it has neither __dlpack__ nor the buffer protocol; wrap it in numpy.array(..)"),
    (lambda x: xt.copy(np.frombuffer(bytes(13), "u1")[1:].view("f4"), "x"), ValueError, "not aligned"),
    (lambda x: xt.copy(np.zeros(4, [("a", "u1"), ("b", "<f4")])["b"], "x"), ValueError, "no multiple"),
])
def test_refusals(x, call, error, words):
    with pytest.raises(error) as e:
        call(x)
    assert words in str(e.value), str(e.value)
    assert same(x, np.arange(24, dtype="f4").reshape(2, 3, 4))


def test_a_huge_result_is_no_crash():
    with pytest.raises(MemoryError):
        xt.copy(np.zeros(1, "u1"), "x.expand(1000000,1000000,1000)")


def test_read_only_inputs(x):
    x.flags.writeable = False
    assert same(xt.copy(x, "x.flip(0)"), x[::-1])


def test_layouts_are_told_apart(x):
    for a in (x, x[::-1], x[:, ::-1], x.astype("i4"), np.asfortranarray(x), x):
        for _ in range(2):
            assert same(xt.copy(a, "x.T"), a.T)


def test_elements_of_one_letter_and_two_widths_are_told_apart():
    exporter = pytest.importorskip("_testbuffer").ndarray
    for fmt, width in ("l", 8), ("<l", 4), ("l", 8), ("<l", 4):
        numbers = exporter(list(range(6)), shape=[6], format=fmt)
        every = memoryview(numbers[::8 // width])[:3]
        assert every.strides == (8,)
        assert xt.copy(every, "x").tobytes() == every.tobytes()


def test_what_pretends_to_be_text_breaks_nothing(x):
    class Bad(str):
        def __hash__(self):
            raise KeyError("no hash")

    with pytest.raises(KeyError):
        xt.copy(x, Bad("x.T"))
    for _ in range(2):
        with pytest.raises(TypeError):
            xt.copy({1: x}, "x.T")
        assert same(xt.copy({"x": x}, "x.T"), x.T)
    with pytest.raises(ValueError):
        xt.copy(x, "x.\N{SNOWMAN}")
    with pytest.raises(ValueError, match="NUL"):
        xt.copy(x, "x.T\0.flip(0)")


def test_more_chains_than_the_table_keeps(x):
    for i in range(5000):
        assert xt.copy(x, f"x.roll({i},0)[0,0,{i % 4}]") == x[i % 2, 0, i % 4]


def test_nothing_leaks(x):
    class Array(np.ndarray):
        pass

    a = x.view(Array)
    r = weakref.ref(a)
    dtype = np.dtype([("a", "i4")])
    before = sys.getrefcount(dtype)
    for i in range(200):
        xt.copy(a, "x.T")
        with pytest.raises(ValueError):
            xt.copy(a, "x.T", out=np.zeros(3, "f4"))
        with pytest.raises(ValueError):
            xt.copy([a, a], "concat(0, x, z)")
    xt.copy(np.zeros(3, dtype), "x")
    del a
    gc.collect()
    assert r() is None
    assert sys.getrefcount(dtype) <= before + 2
    m = xt.copy(bytearray(b"abc"), "x")
    base = m.obj
    n = sys.getrefcount(base)
    del m
    assert sys.getrefcount(base) == n - 1


def test_pages_of_a_large_result_serve_the_next():
    x = np.arange(9 << 20, dtype="f4").reshape(3, -1)  # 36 MB
    y = xt.copy(x, "x[::-1]")
    at, part = y.ctypes.data, y[1:]
    assert y.flags.writeable and y.flags.c_contiguous and at % 64 == 0
    del y
    other = xt.copy(x, "x.roll(1,1)")  # the first is in use
    assert other.ctypes.data != at and np.array_equal(part, x[1::-1])
    del part
    small = xt.copy(x[:1], "x")
    again = xt.copy(x, "x.T")
    assert again.ctypes.data == at and np.array_equal(again, x.T)
    assert small.ctypes.data != at and np.array_equal(other, np.roll(x, 1, 1))
    del again
    large = xt.copy(x, "x.tile(3,1)")  # more than there is
    assert large.ctypes.data != at and np.array_equal(large, np.tile(x, (3, 1)))


def test_threads_share_chains():
    rng = np.random.default_rng(5)
    arrays = [rng.random((64, 64 + i), "f4") for i in range(20)]
    wrong = []

    def work(seed):
        for i in np.random.default_rng(seed).integers(0, 20, 300):
            a = arrays[i]
            if not same(xt.copy(a, "x.T"), a.T) or not same(xt.copy(a, f"x.roll({i},1)"), np.roll(a, i, 1)):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_the_gil_is_released_while_it_copies():
    a = np.zeros((4096, 4096), "f4")
    k, out = xt.compile("x: f32[4096,4096]; x.T"), np.empty((4096, 4096), "f4")
    seen, stop = [], threading.Event()

    def count():
        while not stop.is_set():
            seen.append(None)
            time.sleep(0)

    old = sys.getswitchinterval()
    sys.setswitchinterval(60)  # nobody gives the GIL away unasked
    t = threading.Thread(target=count)
    try:
        t.start()
        time.sleep(0.01)
        before = len(seen)
        k(a, out=out)
        assert len(seen) > before
    finally:
        stop.set()
        sys.setswitchinterval(old)
        t.join()


def test_threads_can_be_set(x):
    xt.set_threads(1)
    big = np.random.default_rng(1).random((2048, 2048), "f4")
    assert same(xt.copy(big, "x.T"), big.T)
    xt.set_threads(0)
    assert same(xt.copy(big, "x.T"), big.T)
    with pytest.raises(ValueError):
        xt.set_threads(-1)


def test_sub_interpreters_have_their_own_state():
    try:
        import _interpreters as interpreters
    except ImportError:
        interpreters = pytest.importorskip("_xxsubinterpreters")
    i = interpreters.create()
    code = f"import sys; sys.path[:] = {sys.path!r}; import xtview as xt\n" \
           "assert xt.copy(b'abc', 'x.flip(0)').tobytes() == b'cba'"
    run = getattr(interpreters, "run_string")
    assert run(i, code) is None
    interpreters.destroy(i)
    assert xt.copy(b"abc", "x").tobytes() == b"abc"


def test_large_results_begin_with_a_line_of_memory():
    x = np.arange(1 << 20, dtype="u1").reshape(1024, 1024)
    y = xt.copy(x, "x.T")
    assert y.ctypes.data % 64 == 0 and y.flags.c_contiguous and y.flags.writeable
    assert np.array_equal(y, x.T)
    assert xt.copy(x.view("V2"), "x.T").shape == (512, 1024)
