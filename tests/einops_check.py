#!/usr/bin/env python3
"""Compares xt's rearrange with einops itself: its documented examples, random patterns, damaged patterns.

    einops_check.py --lib build/libxtview.so.0 [--n 2000] [--seed 1]

xt accepts a pattern exactly if einops' rearrange or repeat does, and gives the same bytes. Prints "N passed,
M failed", exits 1 when something failed; without einops or NumPy a line that begins with "skipped".
"""
import argparse
import ctypes
import math
import random
import re
import sys
import warnings

sys.dont_write_bytecode = True
try:
    import einops
    import numpy as np
except ImportError as e:
    print("skipped: %s" % e)
    sys.exit(0)

warnings.simplefilter("ignore")  # einops: axes that are named as Python's keywords


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("op", ctypes.c_int), ("axis", ctypes.c_int),
                ("column", ctypes.c_int), ("message", ctypes.c_char * 512)]


class Xt:
    """The library by its text interface alone."""

    def __init__(self, path):
        self.c, self.ctx = ctypes.CDLL(path), ctypes.c_void_p()
        self.c.xt_last_error.restype = ctypes.POINTER(Error)
        self.c.xt_graph_free.argtypes = self.c.xt_kernel_free.argtypes = [ctypes.c_void_p]
        self.check(self.c.xt_ctx_new(None, ctypes.byref(self.ctx)))

    def check(self, status):
        if status:
            raise ValueError(self.c.xt_last_error().contents.message.decode())

    def run(self, line, arrays, out):
        """The line's result in out."""
        g, k = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.c.xt_parse(line.encode(), 0, None, ctypes.byref(g)))
        try:
            if out is None:
                return
            self.check(self.c.xt_compile(self.ctx, g, None, ctypes.byref(k)))
            srcs = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
            self.check(self.c.xt_run(k, ctypes.c_void_p(out.ctypes.data), srcs, None))
        finally:
            self.c.xt_kernel_free(k)
            self.c.xt_graph_free(g)


def text(shape):
    return "[%s]" % ",".join(map(str, shape))


def line_of(x, pattern, lengths, method="rearrange"):
    named = "".join(", %s=%d" % kv for kv in lengths.items())
    return 'x: i32%s; x.%s("%s"%s)' % (text(x.shape), method, pattern, named)


def by_einops(x, pattern, lengths):
    """The result, or None where both refuse."""
    for f in (einops.rearrange, einops.repeat):
        try:
            return np.array(f(x, pattern, **lengths), order="C")
        except (einops.EinopsError, ValueError, ZeroDivisionError, TypeError):
            pass
    return None


def differs(xt, x, pattern, lengths, method="rearrange"):
    """None, or what differs."""
    line, want = line_of(x, pattern, lengths, method), by_einops(x, pattern, lengths)
    try:
        out = None if want is None else np.full(want.shape, -1, np.int32)
        xt.run(line + ("" if want is None else " -> " + text(want.shape)), [x], out)
    except ValueError as e:
        return None if want is None else "%s\n  xt refuses: %s" % (line, e)
    if want is None:
        return line + "\n  xt accepts"
    return None if out.tobytes() == want.tobytes() else line + "\n  other bytes"


# What einops' documentation shows: the tutorial's part 1, the readme, the docstrings of rearrange and repeat.
EXAMPLES = [
    ((6, 8, 9, 3), "b h w c -> b h w c"), ((6, 8, 9, 3), "b h w c -> h (b w) c"),
    ((6, 8, 9, 3), "b h w c -> (b h) w c"), ((6, 8, 9, 3), "b h w c -> h b w c"),
    ((6, 8, 9, 3), "b h w c -> (b h w c)"), ((6, 8, 9, 3), "(b1 b2) h w c -> b1 b2 h w c", dict(b1=2)),
    ((6, 8, 9, 3), "(b1 b2) h w c -> (b1 h) (b2 w) c", dict(b1=2)),
    ((6, 8, 9, 3), "(b1 b2) h w c -> (b2 h) (b1 w) c", dict(b1=2)),
    ((6, 8, 9, 3), "b h w c -> b (h w) c"), ((6, 8, 9, 3), "b h w c -> h w b c"),
    ((6, 8, 8, 3), "b h (w w2) c -> (h w2) (b w) c", dict(w2=2)),
    ((6, 8, 9, 3), "b h w c -> h (w b) c"), ((6, 8, 9, 3), "(b1 b2) h w c -> h (b1 b2 w) c", dict(b1=2)),
    ((6, 8, 9, 3), "(b1 b2) h w c -> h (b2 b1 w) c", dict(b1=2)),
    ((6, 8, 9, 3), "b h w c -> b 1 h w 1 c"), ((6, 8, 9, 3), "b h w c -> b () h w () c"),
    ((6, 1, 9, 1), "b 1 w () -> w b"),
    ((8, 9, 3), "h w c -> h new_axis w c", dict(new_axis=5)), ((8, 9, 3), "h w c -> h 5 w c"),
    ((8, 9, 3), "h w c -> h (repeat w) c", dict(repeat=3)),
    ((8, 9, 3), "h w c -> (2 h) (2 w) c"), ((8, 9, 3), "h w c -> h (w repeat) c", dict(repeat=3)),
    ((30, 40), "h w -> h w c", dict(c=3)), ((30, 40), "h w -> (repeat h) w", dict(repeat=2)),
    ((30, 40), "h w -> (h tile1) (w tile2)", dict(tile1=2, tile2=2)),
    ((32, 30, 40, 3), "b h w c -> b c h w"), ((32, 30, 40, 3), "b h w c -> (b h) w c"),
    ((32, 30, 40, 3), "b h w c -> h (b w) c"), ((32, 30, 40, 3), "b h w c -> b (c h w)"),
    ((32, 30, 40, 3), "b (h1 h) (w1 w) c -> (b h1 w1) h w c", dict(h1=2, w1=2)),
    ((32, 30, 40, 3), "b (h h1) (w w1) c -> b h w (c h1 w1)", dict(h1=2, w1=2)),
    ((2, 3, 4, 5), "b c ... -> b (...) c"), ((2, 3, 4), "... -> (...)"), ((2, 3, 4), "... h w -> ... w h"),
    ((2, 12, 4, 5), "b (c h2 w2) h w -> b c (h h2) (w w2)", dict(h2=2, w2=2)),
    ((2, 3, 8, 10), "b c (h h2) (w w2) -> b (c h2 w2) h w", dict(h2=2, w2=2)),
    ((4, 10, 24), "b t (head c) -> b head t c", dict(head=8)),
    ((2, 6, 4), "b (g c) t -> b (c g) t", dict(g=2)),
    ((), "-> 1"), ((), " -> a b", dict(a=2, b=3)), ((2, 0, 3), "a b c -> c (b a)"), ((7,), "a -> a"),
    # and what it refuses
    ((6, 8, 9, 3), "b h w c -> b h w"), ((6, 8, 9, 3), "b h w -> b h w"), ((6, 8), "b h -> b h c"),
    ((6, 8), "(b1 b2) h -> b1 b2 h"), ((6, 8), "(b1 b2) h -> b1 b2 h", dict(b1=4)),
    ((6, 8), "b h -> h b", dict(x=3)), ((6, 8), "b b -> b b"), ((6, 8), "b (h (w)) -> b h w"),
    ((6, 8), "b h > h b"), ((6, 8), "b h -> h -> b"), ((6, 8), "b ... ... -> b ..."),
    ((6, 8), "_b h -> h _b"),
    ((6, 8), "b .. -> b .."), ((6, 8), "(...) -> ..."), ((6, 8), "b h -> ... b h"), ((6, 8), "b h -> h b 0"),
    ((6, 8), "b h -> h b)"), ((6, 8), "b 8 -> b 8"), ((6, 8), "b h -> h b", dict(b=5)),
]


class Random:
    """Patterns by construction: axes, grouped on the left, shuffled and grouped again on the right."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def groups(self, axes):
        """The axes as text, some in brackets, with ones and blanks here and there."""
        out, i = [], 0
        while i < len(axes):
            n = self.rng.choice([1, 1, 1, 2, 3])
            part = axes[i:i + n]
            out.append(part)
            i += n
        for _ in range(self.rng.choice([0, 0, 0, 1, 2])):
            out.insert(self.rng.randint(0, len(out)), [])
        return out

    def side(self, groups):
        words = []
        for g in groups:
            if not g:
                words.append(self.rng.choice(["1", "()", "( 1 )"]))
            elif len(g) > 1 or self.rng.random() < 0.1:
                words.append("(%s)" % " ".join(g + self.rng.choice([[], [], ["1"]])))
            else:
                words.append(g[0])
        return self.rng.choice([" ", " ", "  "]).join(words)

    def case(self):
        """(shape, pattern, lengths)"""
        rng = self.rng
        names = rng.sample(["a", "b", "h", "w", "c", "h2", "w_2", "pattern1", "axis", "x"], rng.randint(0, 5))
        size = {a: rng.choice([1, 2, 2, 3, 4, 5]) for a in names}
        if names and rng.random() < 0.03:
            size[rng.choice(names)] = 0
        left = self.groups(names)
        lengths = {}
        for g in left:
            hidden = rng.choice(g) if g and rng.random() < 0.9 else None
            lengths.update({a: size[a] for a in g if a != hidden and (len(g) > 1 or rng.random() < 0.2)})
        shape = [math.prod(size[a] for a in g) for g in left]
        words = [list(g) for g in left]
        dots = []
        if rng.random() < 0.3:
            at, dots = rng.randint(0, len(words)), [rng.choice([1, 2, 3]) for _ in range(rng.randint(0, 3))]
            words.insert(at, ["..."])
            shape[at:at] = dots
            names = names + ["..."]
        new = list(names)
        rng.shuffle(new)
        for i in range(rng.choice([0, 0, 0, 1, 2])):
            n = rng.choice([1, 2, 3])
            name = rng.choice([str(n), "new%d" % i])
            if not name.isdigit():
                lengths[name] = n
            new.insert(rng.randint(0, len(new)), name)
        left_text = " ".join(self.side([g]) if g != ["..."] else "..." for g in words)
        right = [g for g in self.groups(new)]
        return shape, left_text + rng.choice([" -> ", "->"]) + self.side(right), lengths

    def damage(self, case):
        shape, pattern, lengths = case
        rng, p, lengths = self.rng, list(pattern), dict(lengths)
        for _ in range(rng.choice([1, 1, 2])):
            kind, at = rng.randint(0, 4), rng.randint(0, max(0, len(p) - 1))
            if kind == 0 and p:
                p[at] = rng.choice(" ()->.ab1_2h,")
            elif kind == 1 and p:
                del p[at]
            elif kind == 2:
                p.insert(at, rng.choice(" ()->.ab1_2h"))
            elif kind == 3:
                lengths[rng.choice(["a", "b", "h", "zz"])] = rng.choice([0, 1, 2, 3, -1])
            elif shape:
                shape = shape[:-1] if rng.random() < 0.5 else shape + [2]
        return shape, "".join(p), lengths


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    a.add_argument("--lib", default="build/libxtview.so.0")
    a.add_argument("--n", type=int, default=2000)
    a.add_argument("--seed", type=int, default=1)
    args = a.parse_args()
    xt, source, cases = Xt(args.lib), Random(args.seed), []
    for e in EXAMPLES:
        cases.append((list(e[0]), e[1], e[2] if len(e) > 2 else {}))
    for i in range(args.n):
        case = source.case()
        cases.append(source.damage(case) if i % 3 == 0 else case)
    failed = accepted = 0
    for i, (shape, pattern, lengths) in enumerate(cases):
        if re.search(r"\d{3}", pattern):  # a damaged length: too much to compute
            continue
        x = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
        accepted += by_einops(x, pattern, lengths) is not None
        why = differs(xt, x, pattern, lengths, "repeat" if i % 5 == 0 else "rearrange")
        if why:
            failed += 1
            print("FAIL", why)
    print("note: einops %s accepts %d of %d patterns" % (einops.__version__, accepted, len(cases)))
    print("%d passed, %d failed" % (len(cases) - failed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
