#!/usr/bin/env python3
"""Compares `xt run` with NumPy, bytes against bytes, on random problem lines, and the copies that `xt
explain` says NumPy makes with those that it makes.

    numpy_check.py --xt build/xt [--n 300] [--seed 1] [--backend ref] [--line 'x: u8[2,3]; x.flip(0)']

The language is evaluated here a second time, by Python itself: a line's expression is Python, and the
methods of T are calls of NumPy. Prints "N passed, N failed", exits 1 when something failed; without NumPy it
prints a line that begins with "skipped" and exits 0. --make writes C rows of lines and bytes for
tests/test_eval.c.
"""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))

try:
    import numpy as np

    from numpy_chain import DTYPES, FUNCTIONS, RAW, Problem, T, lowest_highest, random_bytes, strided
except ImportError:
    print("skipped: no numpy")
    sys.exit(0)


def root(a):
    """The array that owns a's memory."""
    while getattr(a, "base", None) is not None:
        a = a.base
    return a


class Counted(T):
    """Counts results that are no views of what they were made of. odd: a copy that is in no order of rows, or
    nothing to copy, or scalars, which NumPy copies always."""

    copies, odd = 0, False

    def of(self, a):
        fresh = root(a) is not root(self.a)
        Counted.copies += fresh
        Counted.odd |= not a.ndim or not a.size or (fresh and not a.flags.c_contiguous)
        return Counted(a)


class Check(Problem):
    """A line whose result is compared with that of `xt run`."""

    # one method and several calls of NumPy, or a copy that NumPy makes although it need not
    UNCOUNTED = re.compile(r"flatten|ravel|tile|roll|stack|concat|pixel|space")

    def __init__(self, line, rng):
        super().__init__(line, rng)
        Counted.copies, Counted.odd = 0, any(not a.ndim or not a.size for a in self.inputs)
        a = self.evaluate()
        inputs = [root(x) for x in self.inputs]
        moved = any(root(a) is x for x in inputs) or not a.flags.c_contiguous or self.layout is not None
        self.copies = None if Counted.odd or self.UNCOUNTED.search(line) else Counted.copies + moved
        self.result = a.copy("C")

    def declare(self, *args):
        return Counted(super().declare(*args).a)

    def count(self, xt):
        """None, or what `xt explain` says falsely of NumPy's copies."""
        if self.copies is None:
            return None
        p = subprocess.run([xt, "explain", "--json", self.line], capture_output=True, text=True)
        told = json.loads(p.stdout)["copies_numpy"] if not p.returncode else 0
        return None if told == self.copies else "NumPy makes %d copies, told %d" % (self.copies, told)

    def save(self, path, a):
        np.save(path, a.view("V%d" % a.itemsize) if self.dtype in RAW else a)

    def run(self, xt, backend, folder, rng):
        """None, or what differs."""
        files, out = [], os.path.join(folder, "out.npy")
        for i, a in enumerate(self.inputs):
            files.append(os.path.join(folder, "in%d.npy" % i))
            self.save(files[-1], a)
        if os.path.exists(out):
            os.remove(out)
        want = self.result
        if self.layout:                                     # a destination with bytes around and between
            strides, offset = self.layout
            lo, hi = lowest_highest(want.shape, strides, offset)
            n = max(hi, offset) + 8
            flat = random_bytes(rng, self.dtype, n * want.itemsize).view(want.dtype)
            self.save(out, flat)
            if want.size:
                strided(flat, want.shape, strides, offset)[...] = want
            want = flat
        command = [xt, "run", self.line, *files, "-o", out, "--backend", backend]
        p = subprocess.run(command, capture_output=True, text=True)
        if p.returncode:
            return "exit %d: %s" % (p.returncode, p.stderr.strip())
        got = np.load(out)
        if got.shape != want.shape:
            return "shape %s, want %s" % (got.shape, want.shape)
        if got.tobytes() != want.tobytes():
            a, b = (np.frombuffer(v.tobytes(), np.uint8).reshape(-1, want.itemsize) for v in (got, want))
            bad = np.nonzero((a != b).any(axis=1))[0]
            return "%d of %d elements differ, first at %d" % (len(bad), want.size, bad[0])
        return None


# ------------------------------------------------------------------------------------------- random lines
class Random:
    """A random chain as text; each step is evaluated at once, to know the shape that the next one may use."""

    LIMIT = 3000                                            # elements of any node

    def __init__(self, rng):
        self.rng, self.names, self.text, self.lets = rng, dict(FUNCTIONS), [], 0
        self.dtype = self.choice(list(DTYPES))
        for i in range(self.below(3) + 1):
            self.declare("xyz"[i])

    def below(self, n):
        return int(self.rng.integers(0, n))

    def choice(self, items):
        return items[self.below(len(items))]

    def shuffle(self, n):
        return [int(v) for v in self.rng.permutation(n)]

    def axis(self, n):
        return self.below(n) - self.choice([0, 0, n])

    def strides(self, shape):
        """Distinct addresses: a permuted dense layout with gaps and reversed axes."""
        st, span = [0] * len(shape), 1
        for a in self.shuffle(len(shape)):
            st[a] = span + self.choice([0, 0, 0, 1, 3])
            span += st[a] * max(0, shape[a] - 1)
            st[a] *= self.choice([1, 1, 1, -1])
        lo = -sum(min(0, s * max(0, n - 1)) for s, n in zip(st, shape))
        return st, lo + self.choice([0, 0, 1, 5])

    def declare(self, name):
        shape = [self.choice([1, 2, 3, 4, 5, 6, 8]) for _ in range(self.choice([1, 2, 2, 3, 3, 4]))]
        if self.below(40) == 0:
            shape[self.below(len(shape))] = 0
        if self.below(40) == 0:
            shape = []
        line = "%s: %s%s" % (name, self.dtype, str(shape).replace(" ", ""))
        if self.below(4) == 0 and shape:
            st, off = self.strides(shape)
            if self.below(4) == 0:
                st[self.below(len(st))] = 0                 # still inside: a stride of 0 shrinks the span
            line += ":%s+%d" % (str(st).replace(" ", ""), off)
        self.text.append(line)
        a = np.zeros(shape, DTYPES[self.dtype])
        self.names[name] = T(a)

    def value(self):
        if self.dtype in RAW:
            return self.choice(["0", "bits(0x%x)" % self.below(1 << 7)])
        if self.dtype == "bool":
            return self.choice(["0", "1", "True"])
        if self.dtype[0] in "fc":
            return self.choice(["0", "1", "-2", "0.5", "1e3", "inf"])
        return self.choice(["0", "1", "7", "100"] + (["-3"] if self.dtype[0] == "i" else []))

    def pairs(self, shape):
        return ",".join("(%d,%d)" % (self.choice([0, 0, 1, 2]), self.choice([0, 0, 1, 3])) for _ in shape)

    def item(self, n):
        kind = self.below(6)
        if kind == 0 and n:
            return str(self.below(n) - self.choice([0, n]))
        if kind == 1:
            return ":"
        bound = lambda: self.choice(["", "", str(self.below(n + 3) - self.choice([0, n + 1]))])
        return bound() + ":" + bound() + self.choice(["", "", ":2", ":-1", ":-2", ":3", ":"])

    def index(self, shape):
        items = [self.item(n) for n in shape[:self.below(len(shape)) + 1 if shape else 0]]
        if self.below(3) == 0:
            items.insert(self.below(len(items) + 1), "None")
        if self.below(4) == 0:
            items.insert(self.below(len(items) + 1), "...")
        return "[%s]" % ", ".join(items) if items else "[...]"

    def split(self, n):
        """A random shape of n elements."""
        out = []
        while n > 1 and len(out) < 3:
            f = self.choice([d for d in range(1, n + 1) if n % d == 0])
            out.insert(self.below(len(out) + 1), f)
            n //= f
        out.insert(self.below(len(out) + 1), n)
        if self.below(4) == 0:
            out.insert(self.below(len(out) + 1), 1)
        return out

    def reshape(self, shape):
        n = math.prod(shape)
        new = self.split(n) if n else shape[::-1]
        if n and self.below(3) == 0:
            new[self.below(len(new))] = -1
        return ".reshape(%s)" % ",".join(map(str, new))

    def any_shape(self, shape):
        """Text of the calls that every shape takes."""
        r = len(shape)
        grown = [self.choice([1, 3, 4]) if n == 1 else self.choice([n, -1]) for n in shape]
        reps = [self.choice([1, 2, 1, 3]) for _ in range(max(1, r + self.below(3) - 1))]
        return [self.reshape(shape), self.index(shape), self.index(shape), ".squeeze()", ".flatten()", ".T",
                ".unsqueeze(%d)" % self.below(r + 1), ".tile(%s)" % ",".join(map(str, reps)),
                ".expand(%s)" % ",".join(map(str, self.choice([[], [], [2]]) + grown)),
                self.choice([".contiguous()", ".clone()", ".copy()"])]

    def with_axis(self, shape, a, value):
        r = len(shape)
        p = self.shuffle(r)
        return [".permute(%s)" % ",".join(map(str, p)), ".permute([%s])" % ",".join(str(i - r) for i in p),
                ".transpose(%d,%d)" % (self.axis(r), self.axis(r)),
                ".swapaxes(%d,%d)" % (self.axis(r), self.axis(r)),
                ".moveaxis(%d,%d)" % (self.axis(r), self.axis(r)), ".flip(%d)" % a, ".flip()",
                ".repeat(%d, axis=%d)" % (self.choice([1, 2, 3]), a), ".repeat(axis=%d, repeats=2)" % a,
                ".roll(%d,%d)" % (self.below(15) - 7, a), ".roll(%d)" % (self.below(15) - 7),
                ".pad(%s, %s)" % (self.pairs(shape), value), ".pad([%s])" % ",".join([self.pairs([1])] * r),
                self.choice([".movedim(%d,%d)", ".swapdims(%d,%d)"]) % (self.axis(r), self.axis(r)),
                ".unflatten(%d, (%s))" % (a, ",".join(map(str, self.split(shape[a]) + [1]))), ".flipud()",
                ".narrow(%d,%d,%d)" % ((a,) + self.part(shape[a]))]

    def part(self, n):
        """Start and length inside n; the start from either end."""
        start = self.below(n + 1)
        return start - self.choice([0, n if start < n else 0]), self.below(n - start + 1)

    def with_three_axes(self, shape):
        names = ["pixel_shuffle", "pixel_unshuffle", "depth_to_space", "space_to_depth"]
        return [".%s(%d)" % (self.choice(names), self.choice([1, 2, 2, 3]))] * 3

    def with_two_axes(self, shape, value):
        p = self.shuffle(len(shape))
        small = lambda: self.below(7) - 3
        return [".diagonal(%d,%d,%d)" % (self.below(5) - 2, p[0], p[1]), ".mT", ".tril()",
                ".tril(%d, %s)" % (small(), value), ".triu(%d, %s)" % (small(), value),
                ".roll((%d,%d),(%d,%d))" % (small(), small(), p[0], p[1]), ".fliplr()",
                ".rot90(%d)" % small(), ".rot90(%d, (%d,%d))" % (small(), p[0], p[1])]

    def step(self, shape):
        r, value = len(shape), "value=" + self.value()
        ones = [i for i, n in enumerate(shape) if n == 1]
        a = self.axis(r) if r else 0
        n = shape[a] if r else 0
        rows = self.any_shape(shape)
        if r:
            rows += self.with_axis(shape, a, value)
        if ones:
            rows += [".squeeze(%d)" % self.choice(ones)]
        if n:
            size = self.below(n) + 1
            rows += [".unfold(%d,%d,%d)" % (a, size, self.choice([1, 1, 2, 3, size]))] * 2
            rows += [".select(%d,%d)" % (a, self.below(n) - self.choice([0, n]))]
        if r > 1:
            rows += self.with_two_axes(shape, value)
        if r > 2:
            rows += self.with_three_axes(shape)
        return self.choice(rows)

    def join(self, text, t):
        """concat or stack with an input, with itself, or with a slice of itself."""
        others = [(k, v) for k, v in self.names.items() if isinstance(v, T)] + [(text, t)]
        shape = t.a.shape
        if shape:
            others += [(text + ".flip(%d)" % self.axis(len(shape)), t)] * 2
            others += [(text + "[%d:]" % self.below(3), T(t.a[self.below(3):]))]
        picked = [(text, t)] + [self.choice(others) for _ in range(self.choice([0, 1, 1, 2]))]
        picked = [picked[i] for i in self.shuffle(len(picked))]
        axis = self.axis(len(shape)) if shape else 0
        if self.below(4) == 0:
            return "%s(%s)" % (self.choice(["hstack", "vstack", "dstack"]), ", ".join(k for k, _ in picked))
        return "%s(%d, %s)" % (self.choice(["concat", "stack"]), axis, ", ".join(k for k, _ in picked))

    def try_eval(self, text):
        """None when NumPy refuses, or the result has too many elements or axes."""
        try:
            r = eval(text, self.names)
        except (ValueError, IndexError):
            return None
        return r if r.a.size <= self.LIMIT and r.a.ndim <= 8 else None

    def chain(self):
        name = self.choice([k for k, v in self.names.items() if isinstance(v, T)])
        text, t = name, self.names[name]
        for _ in range(self.below(8) + 1):
            new = self.join(text, t) if self.below(6) == 0 else text + self.step(t.a.shape)
            r = self.try_eval(new) if len(new) < 1500 else None
            if r is None:
                continue
            text, t = new, r
            if self.below(8) == 0 and text not in self.names:
                name = "t%d" % self.lets
                self.lets += 1
                self.text.append("%s = %s" % (name, text))
                self.names[name] = t
                text = name
        return text, t

    def line(self):
        text, t = self.chain()
        if self.below(4) == 0 and t.a.ndim:
            st, off = self.strides(t.a.shape)
            text += " -> %s:%s+%d" % (str(list(t.a.shape)).replace(" ", ""), str(st).replace(" ", ""), off)
        return "; ".join(self.text + [text])


def check(args):
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(1 if args.line else args.n):
            rng = np.random.default_rng([args.seed, i])
            line = args.line or Random(rng).line()
            c = Check(line, rng)
            why = c.run(args.xt, args.backend, folder, rng) or c.count(args.xt)
            if why:
                failed += 1
                print("FAIL --seed %d, number %d: %s\n  %s" % (args.seed, i, line, why))
    print("%d passed, %d failed" % ((1 if args.line else args.n) - failed, failed))
    return failed > 0


def make(lines):
    """Rows {line, bytes of the result} for inputs that hold 0, 1, 2 .. in u8."""
    for line in lines:
        p = Check.__new__(Check)
        first = [0]

        def declare(dtype, shape, strides, offset, rng):
            assert dtype == "u8", line
            lo, hi = lowest_highest(shape, strides, offset) if strides else (0, math.prod(shape) - 1)
            flat = np.arange(first[0], first[0] + hi + 1, dtype="u1")
            first[0] += 100
            return T(strided(flat, shape, strides, offset) if strides else flat.reshape(shape))
        p.declare = declare
        Check.__init__(p, line, None)
        print('    {"%s",\n     "%s", %d},' % (line, p.result.tobytes().hex(), p.result.size))


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    a.add_argument("--xt", default="build/xt")
    a.add_argument("--n", type=int, default=300)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--backend", default="ref")
    a.add_argument("--line")
    a.add_argument("--make", action="store_true", help="lines from standard input")
    args = a.parse_args()
    if args.make:
        make([s.strip() for s in sys.stdin if s.strip()])
        return 0
    return check(args)


if __name__ == "__main__":
    sys.exit(main())
