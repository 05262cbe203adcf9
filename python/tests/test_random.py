"""Random chains and random views against NumPy, bytes against bytes. XT_TEST_PYTHON: how many (2000)."""

import os
import pathlib
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import xtview as xt

root = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root / "tests"), str(root / "bench")]

import numpy_chain  # noqa: E402
from numpy_check import Random  # noqa: E402

N = int(os.environ.get("XT_TEST_PYTHON", "2000"))
try:
    import ml_dtypes

    NARROW = {"bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}
except ImportError:
    NARROW = {}


def view_in(rng, shape, dtype):
    """An array of random bytes: a permuted, reversed, strided part of a larger one."""
    order = rng.permutation(len(shape))
    steps = rng.choice([1, 1, 1, 2, 3], len(shape))
    room = [int(shape[a] * steps[a] + rng.integers(0, 3)) for a in order]
    flat = rng.integers(0, 256, max(1, int(np.prod(room))) * np.dtype(dtype).itemsize, dtype="u1")
    if dtype == np.bool_:
        flat &= 1
    whole = np.frombuffer(flat.tobytes(), dtype)[: int(np.prod(room))].reshape(room).copy()
    items = []
    for i, a in enumerate(order):
        first = int(rng.integers(0, room[i] - shape[a] * steps[a] + 1))
        s = slice(first, first + shape[a] * steps[a], int(steps[a]))
        items.append(s)
    part = whole[tuple(items)].transpose(np.argsort(order)) if shape else whole
    back = tuple(slice(None, None, -1 if rng.integers(0, 4) == 0 else 1) for _ in shape)
    part = part[back] if shape else part
    assert part.shape == tuple(shape)
    return part, whole


def bytes_of(a):
    return np.ascontiguousarray(a).tobytes()


def random_problem(seed):
    """(arrays by name, chain, what NumPy makes of it), or None for a type that this machine lacks."""
    rng = np.random.default_rng([7, seed])
    r = Random(rng)
    inputs = {k: v.a for k, v in r.names.items() if isinstance(v, numpy_chain.T)}
    text, _ = r.chain()
    if r.dtype in numpy_chain.RAW and r.dtype not in NARROW:
        return None
    lets = [t for t in r.text if " = " in t]
    arrays = {k: view_in(rng, a.shape, a.dtype)[0] for k, a in inputs.items()}
    names = {**numpy_chain.FUNCTIONS, **{k: numpy_chain.T(a) for k, a in arrays.items()}}
    for let in lets:
        name, _, expression = let.partition(" = ")
        names[name] = eval(expression, names)
    want = eval(text, names).a
    if r.dtype in NARROW:
        arrays = {k: a.view(NARROW[r.dtype]) for k, a in arrays.items()}
        want = want.copy("C").view(NARROW[r.dtype])
    return arrays, "; ".join([*lets, text]), want


@pytest.mark.parametrize("part", range(20))
def test_random_chains_are_numpys(part):
    done = 0
    for seed in range(part, N, 20):
        problem = random_problem(seed)
        if not problem:
            continue
        arrays, chain, want = problem
        what = f"seed {seed}: {chain} of { {k: (a.shape, a.strides, a.dtype) for k, a in arrays.items()} }"
        got = xt.copy(arrays, chain)
        assert got.shape == want.shape and got.dtype == want.dtype, what
        assert bytes_of(got) == bytes_of(want), what
        out, whole = view_in(np.random.default_rng(seed), want.shape, want.dtype)
        before = whole.copy()
        assert xt.copy(arrays, chain, out=out) is out, what
        assert bytes_of(out) == bytes_of(want), what
        out[...] = 0
        inside = whole.copy()
        whole[...] = before
        out[...] = 0
        assert inside.tobytes() == whole.tobytes(), f"{what}: wrote beside out"
        done += 1
    assert done


# ------------------------------------------------------------------------------------------- by hypothesis

DTYPES = ["?", "u1", "i2", "f2", "u4", "f4", "f8", "c8", "c16", "M8[ns]", ">f4", "V8", "S4"]
SHAPES = st.lists(st.integers(0, 4), max_size=6).map(tuple)


@st.composite
def views(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(SHAPES)
    a, _ = view_in(rng, shape, f"V{dtype.itemsize}" if dtype != np.bool_ else dtype)
    return a.view(dtype) if dtype != np.bool_ else a


@st.composite
def indices(draw, shape):
    items = []
    for n in shape:
        bound = st.none() | st.integers(-n - 2, n + 2)
        step = st.none() | st.integers(-3, 3).filter(bool)
        kinds = st.builds(slice, bound, bound, step)
        items.append(draw(kinds | st.integers(-n, n - 1) if n else kinds))
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    return tuple(items)


many = settings(max_examples=max(100, N // 10), deadline=None, suppress_health_check=list(HealthCheck))


@many
@given(st.data())
def test_indexing_is_numpys(data):
    a = data.draw(views())
    items = data.draw(indices(a.shape))
    want = a[items if Ellipsis in items else (*items, ...)]  # an array, never a scalar
    got = xt.view(a)[items]
    assert got.shape == want.shape
    assert bytes_of(got.copy()) == bytes_of(want)


@many
@given(st.data())
def test_contiguous_copies_are_numpys(data):
    a = data.draw(views())
    got = xt.ascontiguousarray(a)
    assert got.flags.c_contiguous and got.dtype == a.dtype and got.shape == a.shape
    assert bytes_of(got) == bytes_of(a)
    assert (got is a) == (xt.ascontiguousarray(got) is got and a.flags.c_contiguous)
    axes = data.draw(st.permutations(range(a.ndim)))
    want = a.transpose(axes)
    assert bytes_of(xt.view(a).permute(*axes).copy()) == bytes_of(want)
    dst, _ = view_in(np.random.default_rng(1), want.shape, f"V{a.dtype.itemsize}")
    dst = dst.view(a.dtype)
    xt.copyto(dst, want)
    assert bytes_of(dst) == bytes_of(want)


@many
@given(st.lists(SHAPES.filter(bool), min_size=1, max_size=4), st.data())
def test_concat_and_stack_are_numpys(shapes, data):
    rank = len(shapes[0])
    axis = data.draw(st.integers(-rank, rank - 1))
    rng = np.random.default_rng(len(shapes))
    same = [list(shapes[0]) for _ in shapes]
    for s, other in zip(same, shapes):
        s[axis] = other[0]
    parts = [view_in(rng, tuple(s), "u2")[0] for s in same]
    assert bytes_of(xt.concat(parts, axis=axis)) == bytes_of(np.concatenate(parts, axis=axis))
    ones = [view_in(rng, shapes[0], "f4")[0] for _ in shapes]
    assert bytes_of(xt.stack(ones, axis=axis)) == bytes_of(np.stack(ones, axis=axis))
    lazy = xt.concat([xt.view(p).flip(axis) for p in parts], axis=axis)
    assert isinstance(lazy, xt.View)
    assert bytes_of(lazy.copy()) == bytes_of(np.concatenate([np.flip(p, axis) for p in parts], axis=axis))
