"""bench.py: what a call costs, and how long copies take, beside the libraries that are installed.

    python bench.py [--quick]

First what a call costs: a copy of 16 elements, the least of 200 rounds. Then copies of 4 KB to 64 MB, with
one thread and with two: the least of 15 rounds in which all take turns.
"""

import argparse
import os
import sys
import time

import numpy as np

import xtview as xt

try:
    import torch
except ImportError:
    torch = None
try:
    import einops
except ImportError:
    einops = None


def least(f, *args, n=500, **kw):
    """Seconds of one call, the loop's included."""
    best = 1e9
    for _ in range(200):
        t = time.perf_counter()
        for _ in range(n):
            f(*args, **kw)
        best = min(best, (time.perf_counter() - t) / n)
    return best


def interleaved(fs, rounds=15):
    """Least seconds of each, measured in turns: what else the machine does then meets all of them."""
    best = [1e9 for _ in fs]
    for _ in range(rounds):
        for i, f in enumerate(fs):
            if f:
                n = max(1, int(0.002 / min(best[i], 1)))
                t = time.perf_counter()
                for _ in range(n):
                    f()
                best[i] = min(best[i], (time.perf_counter() - t) / n)
    return best


def processor():
    with open("/proc/cpuinfo") as f:
        names = [line.partition(":")[2].strip() for line in f if line.startswith("model name")]
    return f"{names[0] if names else 'unknown'}, {len(names)} cores"


def calls():
    x = np.arange(16, dtype="f4").reshape(4, 4)
    v, y = x.T, np.empty((4, 4), "f4")
    k = xt.compile("x: f32[4,4]; x.T")
    rows = [
        ("xt.copy(x, 'x.T')", lambda f=xt.copy: least(f, x, "x.T")),
        ("xt.copy(x, 'x.T', out=y)", lambda: least(xt.copy, x, "x.T", out=y)),
        ("k(x, out=y)", lambda: least(k, x, out=y)),
        ("k(x)", lambda: least(k, x)),
        ("xt.ascontiguousarray(x.T)", lambda: least(xt.ascontiguousarray, v)),
        ("xt.rearrange(x, 'a b -> b a')", lambda: least(xt.rearrange, x, "a b -> b a")),
        ("xt.view(x).T.copy()", lambda: least(lambda: xt.view(x).T.copy())),
        ("np.ascontiguousarray(x.T)", lambda: least(np.ascontiguousarray, v)),
        ("np.copyto(y, x.T)", lambda: least(np.copyto, y, v)),
        ("np.empty((4, 4), 'f4')", lambda: least(np.empty, (4, 4), x.dtype)),
    ]
    if einops:
        rows.append(("einops.rearrange(x, 'a b -> b a') + contiguous",
                     lambda: least(lambda: np.ascontiguousarray(einops.rearrange(x, "a b -> b a")))))
    if torch:
        t = torch.arange(16.0).reshape(4, 4)
        u = torch.empty(4, 4)
        rows += [
            ("torch: xt.copy(t, 'x.T')", lambda: least(xt.copy, t, "x.T")),
            ("torch: k(t, out=u)", lambda: least(k, t, out=u)),
            ("torch: t.T.contiguous()", lambda: least(t.T.contiguous)),
        ]
    print("| a call of 16 elements | us |\n|---|---|")
    for name, f in rows:
        print(f"| `{name}` | {1e6 * f():.2f} |", flush=True)


# Chain, the same in NumPy, the same in PyTorch; shapes by size of the array in bytes.
ROWS = [
    ("heads", "x.permute(0,2,1,3)", lambda x: x.transpose(0, 2, 1, 3), lambda x: x.permute(0, 2, 1, 3),
     "b s h d -> b h s d", lambda n: (max(1, n >> 20), 64, 16, 256) if n >= 1 << 20 else (1, n >> 8, 4, 16)),
    ("transpose", "x.T", lambda x: x.T, lambda x: x.T, "a b -> b a",
     lambda n: (int((n / 4) ** 0.5), int((n / 4) ** 0.5))),
    ("channels", "x.permute(0,3,1,2)", lambda x: x.transpose(0, 3, 1, 2), lambda x: x.permute(0, 3, 1, 2),
     "b h w c -> b c h w", lambda n: (max(1, n >> 20), 16, n // 16 // 16 // 4 // max(1, n >> 20), 16)),
    ("flip", "x[:, ::-1]", lambda x: x[:, ::-1], lambda x: x.flip(1), None, lambda n: (n >> 10, 256)),
]


def sizes(quick):
    print("\nMilliseconds; the first four make their result, the last three write into memory at hand.\n\n"
          "| copy | bytes | threads | xtview | np.ascontiguousarray | .contiguous() | einops, contiguous "
          "| k(x, out=y) | np.copyto | .copy_ |\n|---|---|---|---|---|---|---|---|---|---|")
    for threads in (1, 2):
        xt.set_threads(threads)
        if torch:
            torch.set_num_threads(threads)
        for row in ROWS:
            for bytes_ in (1 << 12, 1 << 20, 1 << 26)[: 2 if quick else 3]:
                one_size(threads, bytes_, *row)


def one_size(threads, bytes_, name, chain, by_numpy, by_torch, pattern, shape):
    x = np.random.default_rng(1).random(shape(bytes_), dtype="f4")
    y, k, v = np.ascontiguousarray(by_numpy(x)), xt.compile(chain, x), by_numpy(x)
    t, u = (torch.from_numpy(x), torch.from_numpy(y)) if torch else (None, None)
    fs = [lambda: xt.copy(x, chain), lambda: np.ascontiguousarray(by_numpy(x)),
          (lambda: by_torch(t).contiguous()) if torch else None,
          (lambda: np.ascontiguousarray(einops.rearrange(x, pattern))) if einops and pattern else None,
          lambda: k(x, out=y), lambda: np.copyto(y, v), (lambda: u.copy_(by_torch(t))) if torch else None]
    ms = [f"{1e3 * s:.4g}" if f else "-" for f, s in zip(fs, interleaved(fs))]
    print(f"| {name} {list(x.shape)} | {x.nbytes} | {threads} | {' | '.join(ms)} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--quick", action="store_true", help="without 64 MB")
    quick = p.parse_args().quick
    peers = [f"{m.__name__} {m.__version__}" for m in (np, torch, einops) if m]
    load = os.getloadavg()[0]
    print(f"{processor()}, load {load:.1f}; Python {sys.version.split()[0]}, {', '.join(peers)}")
    calls()
    sizes(quick)


main()
