"""The problem language on NumPy: a line's expression is Python, and the methods of T are calls of NumPy.

Imported by peer_chain.py, which times chains, and by tests/numpy_check.py, which compares bytes.
"""
import math
import re

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

# bf16 and fp8 are unknown to NumPy: computed as the unsigned integers of their bits, saved as raw bytes.
DTYPES = {
    "bool": "?", "u8": "u1", "i8": "i1", "u16": "u2", "i16": "i2", "u32": "u4", "i32": "i4", "u64": "u8",
    "i64": "i8", "f16": "f2", "bf16": "u2", "f32": "f4", "f64": "f8", "f8e4m3": "u1", "f8e5m2": "u1",
    "c64": "c8", "c128": "c16",
}
RAW = {"bf16", "f8e4m3", "f8e5m2"}


def one_list(args):
    """f(1, 2), f([1, 2]) and f((1, 2)) are the same."""
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)


def parts(n, r):
    """n // r, which has to be whole."""
    if n % r:
        raise ValueError("%d is not a multiple of %d" % (n, r))
    return n // r


class T:
    """The problem language's tensor over an array of `lib`, which has NumPy's functions."""

    lib = np

    def __init__(self, a):
        self.a = a

    def of(self, a):
        return type(self)(a)

    def __getitem__(self, items):
        r = self.a[items]
        return self.of(r if hasattr(r, "ndim") and r.ndim else self.lib.array(r, self.a.dtype))

    def permute(self, *axes):
        return self.of(self.lib.transpose(self.a, one_list(axes)))

    def transpose(self, *axes):
        if len(axes) == 2 and not isinstance(axes[0], (list, tuple)):
            return self.of(self.lib.swapaxes(self.a, *axes))
        return self.of(self.lib.transpose(self.a, one_list(axes) if axes else None))

    def swapaxes(self, a, b):
        return self.of(self.lib.swapaxes(self.a, a, b))

    def moveaxis(self, source, destination):
        return self.of(self.lib.moveaxis(self.a, source, destination))

    T = property(lambda self: self.of(self.a.T))
    mT = property(lambda self: self.of(self.lib.swapaxes(self.a, -1, -2)))

    def reshape(self, *shape):
        return self.of(self.lib.reshape(self.a, one_list(shape)))

    def flatten(self):
        return self.of(self.a.flatten())

    def squeeze(self, *axes):
        return self.of(self.lib.squeeze(self.a, tuple(one_list(axes)) if axes else None))

    def unsqueeze(self, axis):
        return self.of(self.lib.expand_dims(self.a, axis))

    def flip(self, *axes):
        return self.of(self.lib.flip(self.a, tuple(one_list(axes)) if axes else None))

    def expand(self, *shape):
        shape = one_list(shape)
        lead = len(shape) - self.a.ndim
        shape = [self.a.shape[i - lead] if n == -1 else n for i, n in enumerate(shape)]
        return self.of(self.lib.broadcast_to(self.a, shape))

    def tile(self, *reps):
        return self.of(self.lib.tile(self.a, one_list(reps)))

    def repeat(self, repeats, axis):
        return self.of(self.lib.repeat(self.a, repeats, axis))

    def roll(self, shift, axis=None):
        return self.of(self.lib.roll(self.a, shift, axis))

    def diagonal(self, offset=0, axis1=0, axis2=1):
        return self.of(self.lib.diagonal(self.a, offset, axis1, axis2))

    def unfold(self, axis, size, step):
        windows = sliding_window_view(self.a, size, axis)
        return self.of(windows[(slice(None),) * (axis % self.a.ndim) + (slice(None, None, step),)])

    def scalar(self, value):
        return np.array(value).astype(self.a.dtype)

    def pad(self, *pairs, value=0):
        if len(pairs) == 1 and (isinstance(pairs[0], int) or isinstance(pairs[0][0], (list, tuple))):
            pairs = pairs[0]
        return self.of(self.lib.pad(self.a, pairs, constant_values=self.scalar(value)))

    def triangle(self, keep, value):
        return self.of(self.lib.where(keep, self.a, self.scalar(value)))

    def tril(self, k=0, value=0):
        return self.triangle(self.lib.tri(*self.a.shape[-2:], k, dtype=bool), value)

    def triu(self, k=0, value=0):
        return self.triangle(~self.lib.tri(*self.a.shape[-2:], k - 1, dtype=bool), value)


    def contiguous(self):
        return self

    clone = copy = contiguous

    def narrow(self, axis, start, length):
        start += self.a.shape[axis] if start < 0 else 0
        return self[(slice(None),) * (axis % self.a.ndim) + (slice(start, start + length),)]

    def select(self, axis, index):
        return self[(slice(None),) * (axis % self.a.ndim) + (index,)]

    swapdims = swapaxes
    movedim = moveaxis

    def unflatten(self, axis, sizes):
        axis %= self.a.ndim
        return self.of(self.lib.reshape(self.a, self.a.shape[:axis] + tuple(sizes) + self.a.shape[axis + 1:]))

    def fliplr(self):
        return self.of(self.lib.fliplr(self.a))

    def flipud(self):
        return self.of(self.lib.flipud(self.a))

    def rot90(self, k=1, axes=(0, 1)):
        return self.of(self.lib.rot90(self.a, k, axes))

    def rearrange(self, pattern, **lengths):
        import einops
        return self.of(einops.repeat(self.a, pattern, **lengths))

    def blocks(self, split, axes, join):
        """Reshapes the last three axes to `split`, permutes those, reshapes to `join`."""
        n = self.a.ndim - 3
        a = self.lib.reshape(self.a, self.a.shape[:n] + split)
        a = self.lib.transpose(a, list(range(n)) + [n + i for i in axes])
        return self.of(self.lib.reshape(a, self.a.shape[:n] + join))

    def pixel_shuffle(self, r):
        c, h, w = self.a.shape[-3:]
        d = parts(c, r * r)
        return self.blocks((d, r, r, h, w), (0, 3, 1, 4, 2), (d, h * r, w * r))

    def pixel_unshuffle(self, r):
        c, h, w = self.a.shape[-3:]
        h, w = parts(h, r), parts(w, r)
        return self.blocks((c, h, r, w, r), (0, 2, 4, 1, 3), (c * r * r, h, w))

    def depth_to_space(self, r):
        h, w, c = self.a.shape[-3:]
        d = parts(c, r * r)
        return self.blocks((h, w, r, r, d), (0, 2, 1, 3, 4), (h * r, w * r, d))

    def space_to_depth(self, r):
        h, w, c = self.a.shape[-3:]
        h, w = parts(h, r), parts(w, r)
        return self.blocks((h, r, w, r, c), (0, 2, 1, 3, 4), (h, w, r * r * c))


def hstack(*xs):
    return xs[0].of(xs[0].lib.hstack([x.a for x in xs]))


def vstack(*xs):
    return xs[0].of(xs[0].lib.vstack([x.a for x in xs]))


def dstack(*xs):
    return xs[0].of(xs[0].lib.dstack([x.a for x in xs]))


def concat(axis, *xs):
    return xs[0].of(xs[0].lib.concatenate([x.a for x in xs], axis))


def stack(axis, *xs):
    return xs[0].of(xs[0].lib.stack([x.a for x in xs], axis))


FUNCTIONS = {"concat": concat, "stack": stack, "hstack": hstack, "vstack": vstack, "dstack": dstack,
             "bits": int, "inf": math.inf, "nan": math.nan}
LAYOUT = r"(?::(\[[^]]*\])(?:\+(\d+))?)?"


def lowest_highest(shape, strides, offset):
    lo = hi = offset
    for n, st in zip(shape, strides):
        lo, hi = lo + min(0, st * (n - 1)), hi + max(0, st * (n - 1))
    return (offset, offset - 1) if 0 in shape else (lo, hi)


def strided(flat, shape, strides, offset):
    return as_strided(flat[offset:], shape, [st * flat.itemsize for st in strides])


def random_bytes(rng, dtype, n):
    period = 16777213  # a prime: large tensors repeat so many bytes, which is quicker and as hard to permute
    return np.resize(rng.integers(0, 2 if dtype == "bool" else 256, min(n, period), np.uint8), n)


class Problem:
    """A parsed line: inputs with random bytes, what computes the result, the destination's layout or None."""

    def __init__(self, line, rng):
        self.line, self.inputs, self.layout, self.lets = line, [], None, []
        self.names = names = dict(FUNCTIONS)
        for statement in line.split("; "):
            m = re.fullmatch(r"(\w+): (\w+)(\[[^]]*\])" + LAYOUT, statement)
            if m:
                strides = m[4] and eval(m[4])
                names[m[1]] = self.declare(m[2], eval(m[3]), strides, int(m[5] or 0), rng)
                continue
            m = re.fullmatch(r"(\w+) = (.*)", statement)
            if m:
                self.lets.append((m[1], compile(m[2], line, "eval")))
                continue
            m = re.fullmatch(r"(.*?)(?: -> (\[[^]]*\])" + LAYOUT + ")?", statement)
            self.expression = compile(m[1], line, "eval")
            if m[3]:
                self.layout = eval(m[3]), int(m[4] or 0)

    def declare(self, dtype, shape, strides, offset, rng):
        t = np.dtype(DTYPES[dtype])
        self.dtype = dtype
        lo, hi = lowest_highest(shape, strides, offset) if strides else (0, math.prod(shape) - 1)
        n = hi + 1 if lo <= hi else offset
        flat = random_bytes(rng, dtype, n * t.itemsize).view(t)
        self.inputs.append(flat if strides else flat.reshape(shape))
        return T(strided(flat, shape, strides, offset) if strides else self.inputs[-1])

    def evaluate(self):
        """The chain's result, a view of the inputs where NumPy can."""
        names = dict(self.names)
        for name, code in self.lets:
            names[name] = eval(code, names)
        return eval(self.expression, names).a
