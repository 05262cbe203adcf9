#!/usr/bin/env python3
"""Times chains of the problem language as other libraries run them.

    peer_chain.py LIBRARY THREADS     LIBRARY: numpy, torch or jax

Answers every line of standard input, "CHAIN|SMALL", with one: 1 when the library runs CHAIN and the bytes
of SMALL, the same chain in another size, or else of CHAIN itself, are NumPy's; else 0. "|": the seconds of
one run of the last chain, of so many in a row that they last 2 ms, and the best of three if they repeat.
What the library has as a view stays a view. NumPy and PyTorch copy the result once into memory that is there
already; JAX compiles the chain and allocates its result. Threads are limited by processors.
"""
import math
import os
import sys
import time


def limit_threads(n):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-n:])
    os.environ["OMP_NUM_THREADS"] = str(n)
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # PyTorch: huge pages, as the others have
    os.environ["JAX_PLATFORMS"] = "cpu"


if __name__ == "__main__":
    limit_threads(max(1, int(sys.argv[2])))

import numpy as np

from numpy_chain import FUNCTIONS, Problem, T, one_list

SAMPLE_SECONDS, BEST_OF = 2e-3, 3


class NumPy:
    """A library: arrays in, how to run a problem once, bytes out."""

    tensor = T
    functions = FUNCTIONS

    def array(self, a):
        return a

    def prepare(self, problem):
        """What runs the chain once and returns the library's array."""
        result = problem.evaluate()
        out = np.ones(result.shape, result.dtype)

        def run():
            np.copyto(out, problem.evaluate())
            return out

        return run

    def bytes(self, a):
        return np.ascontiguousarray(a).tobytes()


class TorchTensor:
    """PyTorch's own methods have the language's names, but for these."""

    def __init__(self, a):
        self.a = a

    def __getattr__(self, name):
        value = getattr(self.a, name)
        return (lambda *args: TorchTensor(value(*args))) if callable(value) else TorchTensor(value)

    def __getitem__(self, items):
        """PyTorch has no negative steps: the elements forwards, then flipped."""
        items = list(items) if isinstance(items, tuple) else [items]
        axes, axis = [], 0
        names = sum(i is not None and i is not Ellipsis for i in items)
        kept = 0  # axes of the result so far
        for i, item in enumerate(items):
            if item is Ellipsis:
                kept += self.a.ndim - names
                axis += self.a.ndim - names
                continue
            if isinstance(item, slice) and item.step is not None and item.step < 0:
                r = range(*item.indices(self.a.shape[axis]))
                items[i] = slice(r[-1], r[0] + 1, -item.step) if r else slice(0, 0)
                axes.append(kept)
            kept += not isinstance(item, int)
            axis += item is not None
        a = self.a[tuple(items)]
        return TorchTensor(a.flip(axes) if axes else a)

    def flip(self, *axes):
        return TorchTensor(self.a.flip(one_list(axes) if axes else list(range(self.a.ndim))))

    def repeat(self, repeats, axis):
        return TorchTensor(self.a.repeat_interleave(repeats, axis))

    def pad(self, *pairs, value=0):
        if len(pairs) == 1:
            pairs = [(pairs[0], pairs[0])] * self.a.ndim if isinstance(pairs[0], int) else pairs[0]
            pairs = pairs if isinstance(pairs[0], (list, tuple)) else [pairs]
        flat = [n for pair in reversed(list(pairs)) for n in pair]
        return TorchTensor(Torch.lib.nn.functional.pad(self.a, flat, value=value))


class Torch:
    lib = None
    tensor = TorchTensor

    def __init__(self):
        import torch

        Torch.lib = torch
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        self.functions = {
            "concat": lambda axis, *xs: TorchTensor(torch.cat([x.a for x in xs], axis)),
            "stack": lambda axis, *xs: TorchTensor(torch.stack([x.a for x in xs], axis)),
            "bits": int, "inf": math.inf, "nan": math.nan,
        }

    def array(self, a):
        """PyTorch has no wide unsigned integers: the signed ones of the same bits."""
        wide = a.dtype.kind == "u" and a.itemsize > 1
        return self.lib.from_numpy(a.view("i%d" % a.itemsize) if wide else a)

    def prepare(self, problem):
        result = problem.evaluate()
        out = self.lib.ones(result.shape, dtype=result.dtype)

        def run():
            out.copy_(problem.evaluate())
            return out

        return run

    def bytes(self, a):
        return a.numpy().tobytes()


class Jax:
    def __init__(self):
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        self.jax, self.functions = jax, FUNCTIONS

        class JaxTensor(T):
            lib = jnp

            def unfold(self, axis, size, step):
                starts = np.arange(0, self.a.shape[axis] - size + 1, step)
                windows = jnp.take(self.a, starts[:, None] + np.arange(size), axis)
                return self.of(jnp.moveaxis(windows, axis % self.a.ndim + 1, -1))

        self.tensor = JaxTensor

    def array(self, a):
        return self.jax.numpy.asarray(a)

    def prepare(self, problem):
        names = [n for n in problem.names if isinstance(problem.names[n], self.tensor)]

        def chain(*arrays):
            problem.names.update((n, self.tensor(a)) for n, a in zip(names, arrays))
            return problem.evaluate()

        arrays = [problem.names[n].a for n in names]
        compiled = self.jax.jit(chain).lower(*arrays).compile()
        return lambda: compiled(*arrays).block_until_ready()

    def bytes(self, a):
        return np.asarray(a).tobytes()


def load(library, line):
    """A problem of NumPy's arrays, and what its names are with the library's."""
    problem = Problem(line, np.random.default_rng(1))
    names = dict(problem.names)
    for name, value in names.items():
        if isinstance(value, T):
            names[name] = library.tensor(library.array(value.a))
    return problem, {**names, **library.functions}


def is_right(library, line):
    problem, names = load(library, line)
    want = NumPy.bytes(None, problem.evaluate())
    problem.names = names
    return library.bytes(library.prepare(problem)()) == want


def prepared(library, line, small):
    """What runs the chain once; None when the library's bytes are not NumPy's."""
    if not isinstance(library, NumPy) and not is_right(library, small or line):
        return None
    problem, names = load(library, line)
    problem.names = names
    return library.prepare(problem)


def time_runs(run, repeat):
    start = time.perf_counter()
    for _ in range(repeat):
        run()
    return time.perf_counter() - start


def sample_seconds(run, repeat):
    """Seconds of one run, and how many were needed; the same rule as in contest.c."""
    best = time_runs(run, repeat)
    while best < SAMPLE_SECONDS:
        repeat *= 2
        best = time_runs(run, repeat)
    for _ in range(BEST_OF - 1 if repeat > 1 else 0):
        best = min(best, time_runs(run, repeat))
    return best / repeat, repeat


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    library = {"numpy": NumPy, "torch": Torch, "jax": Jax}[sys.argv[1]]()
    run, repeat = None, 1
    for line in sys.stdin:
        chain, _, small = line.strip().partition("|")
        if not chain:
            seconds, repeat = sample_seconds(run, repeat)
            print("%.9g" % seconds, flush=True)
            continue
        run, repeat = None, 1  # frees the last chain first
        try:
            run = prepared(library, chain, small)
        except Exception as e:
            print("%s: %s: %s" % (sys.argv[1], e, chain), file=sys.stderr)
        print(int(run is not None), flush=True)


if __name__ == "__main__":
    main()
