"""Anything in every place of every call: an exception or an array, never a crash, a leak or a kept buffer."""
import gc
import os
import subprocess
import sys

import pytest

import xtview as xt
from xtview import _core

np = pytest.importorskip("numpy")
X = np.arange(24, dtype=np.float32).reshape(4, 6)


class BadSequence:
    def __len__(self):
        return 3

    def __getitem__(self, i):
        raise ZeroDivisionError


class BadDlpack:
    def __dlpack__(self, *a, **k):
        return 7

    def __dlpack_device__(self):
        return (1, 0)


class BadDevice(BadDlpack):
    def __dlpack_device__(self):
        return ("a", None)


class BadInterface:
    __array_interface__ = {"shape": "no", "typestr": 7, "data": None, "version": 3}


def anything():
    return [None, 0, -1, 1 << 70, 1.5, float("nan"), "x", "x.T", "", "\0", "x" * 100000, "x.T" + ".T" * 5000,
            "x: f32[4,6]; x.T", b"x", bytearray(8), memoryview(b"abc"), BadSequence(), BadDlpack(),
            BadDevice(), BadInterface(), X, X[::-1], X.T, X[:0], np.array(3.0), np.zeros(2, object),
            np.zeros(3, "S5"), np.zeros(3, [("a", "i4")]), np.zeros(3, ">f4"),
            np.broadcast_to(X, (3, 4, 6)), [X, X], [], {}, {"x": X}, {1: X}, (X,), [None], [[X]], type,
            object(), xt.compile("x: f32[4,6]; x.T")]


def call(f, *args, **kw):
    """True: it raised what a caller may see."""
    try:
        f(*args, **kw)
        return False
    except (SystemError, MemoryError):
        raise
    except Exception:
        return True


def test_anything_in_every_place():
    k = xt.compile("x: f32[4,6]; x.T")
    things = anything()
    for f in xt.copy, _core.copy, _core.describe, xt.compile, _core.ascontiguousarray:
        for a in things:
            call(f, a)
            for b in things:
                call(f, a, b)
    for a in things:
        for b in things:
            call(xt.copy, a, "x", out=b)
            call(xt.copy, X, "x.T", out=b, stream=a)
        for args, kw in ((a,), {}), ((a,), {"out": a}), ((X,), {"out": a}), ((a, a, a), {}):
            call(k, *args, **kw)
        call(k.explain, json=a is not None, why=isinstance(a, str))


def test_what_failed_keeps_nothing():
    k = xt.compile("x: f32[4,6]; x.T")
    out, fixed, small = (np.zeros(s, np.float32) for s in ((6, 4), (6, 4), (6, 3)))
    fixed.flags.writeable = False
    assert all(call(k, X, out=o) for o in (fixed, small, out.astype(np.float64)))
    before = [sys.getrefcount(v) for v in (X, out, fixed, k)]
    for _ in range(2000):
        k(X, out=out)
        assert call(k, X, out=fixed) and call(xt.copy, X, "x.nope()") and call(xt.copy, BadDlpack(), "x")
    gc.collect()
    assert [sys.getrefcount(v) for v in (X, out, fixed, k)] == before
    room = bytearray(24 * 4)
    xt.copy(memoryview(room).cast("f", (4, 6)), "x.T")
    room.extend(b"1")  # nobody exports it any more


def test_any_number_of_types():
    """Those of a program that makes classes as it goes are looked at one by one."""
    code = """if True:
        import numpy as np
        import xtview as xt

        x = np.arange(6.0).reshape(2, 3)
        for i in range(600):
            y = x.view(type("A", (np.ndarray,), {}))
            assert (xt.copy(y, "x.T") == x.T).all() and type(xt.copy(y)) is np.ndarray
        for y in x, bytearray(b"abc"), memoryview(x):
            assert memoryview(xt.copy(y)).tobytes() == memoryview(y).tobytes()
    """
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_longs_of_a_standard_size():
    buffers = pytest.importorskip("_testbuffer")
    for letter, want in ("<l", "i"), ("=L", "I"), ("<q", "q"), ("l", "l"):
        x = memoryview(buffers.ndarray([1, 2, 3], shape=[3], format=letter))
        y = xt.copy(x, "x.flip(0)")
        assert (y.format, y.nbytes, y.tolist()) == (want, x.nbytes, [3, 2, 1])


def test_threads_are_an_int():
    for n in (1 << 32) + 1, -(1 << 32), 1 << 70, "1", None, 1.0:
        with pytest.raises((OverflowError, TypeError)):
            xt.set_threads(n)


def test_indices_are_refused_as_numpy_refuses_them():
    v = xt.view(X)
    for i in 99, -5, 1 << 70, (0, 6), (0, 0, 0), (..., ...), (None,) * 70:
        with pytest.raises(IndexError):
            X[i]
        with pytest.raises(IndexError, match="index|indices|bits"):
            v[i]
    for i in slice(None, None, 0), (0, slice(1, 2, 0)), (99, slice(1, 2, 0)):
        with pytest.raises(ValueError, match="step cannot|zero|outside"):
            v[i]
    for i in slice(1 << 70), slice(-(1 << 70), 1 << 63), slice(None, None, -(1 << 80)), slice(1 << 64, 2):
        assert np.array_equal(v[i].copy(), X[i])
    with pytest.raises(TypeError, match="an index is an integer"):
        v[1.5]


def test_sentences_are_whole_whatever_is_named(tmp_path):
    out = str(tmp_path / "o.npy")
    accents = ["\u00e9" * (n // 2) + "a" * (n % 2) for n in range(490, 520)]
    for name in [*accents, "a" * 600, "\U0001f600" * 200]:
        with pytest.raises(OSError, match="too long|No such file") as e:
            xt.run("x; x", name + ".npy", out)
        assert str(e.value).startswith(name[:50])
    for name in "\udcff.npy", b"\xff.npy":  # bytes that are no UTF-8
        with pytest.raises(OSError, match="xff.npy: No such file"):
            xt.run("x; x", name, out)
    for name, where in ("", out), (out, ""):
        with pytest.raises(ValueError, match="has no name"):
            xt.run("x; x", name, where)


def test_the_caret_counts_characters():
    with pytest.raises(ValueError) as e:
        xt.copy(X, 'x.rearrange("\u00e9\u00e9 b -> b \u00e9\u00e9").permut(1, 0)')
    _, chain, caret = str(e.value).split("\n")
    assert chain[caret.index("^"):].startswith(("permut", ".permut"))
