"""bench.py: what a call costs, and how long copies take, beside NumPy, PyTorch and einops where installed.

    python python/bench.py [--rows REGEX] [--sizes "1 MB,64 MB"] [--threads 1,2] [--json FILE]
                                                                        after: pip install ./python

First what a call costs: a copy of 16 elements, the median of 25 rounds. Then 12 copies of 4 KB to 64 MB, by
one thread and by two: medians of rounds in which all take turns. The results are compared before the clock
runs. The table ends with each row in which another library was faster."""

import argparse
import json
import os
import platform
import random
import re
import statistics
import sys
import time

import numpy as np

import xtview as xt

try:
    import torch
    import torch.nn.functional
except ImportError:
    torch = None
try:
    import einops
except ImportError:
    einops = None

ROUNDS, SECONDS = 15, 0.004  # of each contender, and at least of a round
PAUSE = 0.01  # seconds
NOISE = 0.05  # medians of equal code differ by as much
SIZES = {"4 KB": 1 << 12, "64 KB": 1 << 16, "1 MB": 1 << 20, "64 MB": 1 << 26}
MAKE = ("xtview", "numpy", "torch", "einops")  # the result's memory, too
FILL = ("xtview", "numpy", "torch")  # memory that is there: k(x, out=y), np.copyto, copy_


def side(n):
    return max(1, round(n ** 0.5))


# Name, dtype, shape for n elements, chain, the same by NumPy, by PyTorch, by einops (pattern and lengths).
ROWS = [
    ("split heads", "f2", lambda n: (1, n // 1024, 16, 64), "x.permute(0,2,1,3)",
     lambda x: x.transpose(0, 2, 1, 3), lambda x: x.permute(0, 2, 1, 3), ("b s h d -> b h s d", {})),
    ("merge heads", "f2", lambda n: (1, 16, n // 1024, 64), "x.permute(0,2,1,3)",
     lambda x: x.transpose(0, 2, 1, 3), lambda x: x.permute(0, 2, 1, 3), ("b h s d -> b s h d", {})),
    ("transpose", "f4", lambda n: (side(n),) * 2, "x.T", lambda x: x.T, lambda x: x.T, ("a b -> b a", {})),
    ("transpose bytes", "u1", lambda n: (side(n),) * 2, "x.T", lambda x: x.T, lambda x: x.T,
     ("a b -> b a", {})),
    ("pixels to planes", "u1", lambda n: (side(n / 3), side(n / 3), 3), "x.permute(2,0,1)",
     lambda x: x.transpose(2, 0, 1), lambda x: x.permute(2, 0, 1), ("h w c -> c h w", {})),
    ("planes to pixels", "u1", lambda n: (3, side(n / 3), side(n / 3)), "x.permute(1,2,0)",
     lambda x: x.transpose(1, 2, 0), lambda x: x.permute(1, 2, 0), ("c h w -> h w c", {})),
    ("channels first", "f4", lambda n: (n // 16384 or 1, min(n // 64, 256), 64), "x.permute(0,2,1)",
     lambda x: x.transpose(0, 2, 1), lambda x: x.permute(0, 2, 1), ("b p c -> b c p", {})),
    ("mirror", "f4", lambda n: (n // 256, 256), "x[:, ::-1]",
     lambda x: x[:, ::-1], lambda x: x.flip(1), None),
    ("crop, every second", "f4", lambda n: (side(2 * n), side(2 * n)), "x[2:-2, ::2]",
     lambda x: x[2:-2, ::2], lambda x: x[2:-2, ::2], None),
    ("patches", "f4", lambda n: (3, *(16 * max(1, round(side(n / 3) / 16)),) * 2),
     'x.rearrange("c (h p) (w q) -> (h w) (p q c)", p=16, q=16)',
     lambda x: x.reshape(3, -1, 16, x.shape[2] // 16, 16).transpose(1, 3, 2, 4, 0).reshape(-1, 768),
     lambda x: x.reshape(3, -1, 16, x.shape[2] // 16, 16).permute(1, 3, 2, 4, 0).reshape(-1, 768),
     ("c (h p) (w q) -> (h w) (p q c)", {"p": 16, "q": 16})),
    ("border of zeros", "f4", lambda n: (16, side(n / 16), side(n / 16)), "x.pad((0,0),(1,1),(1,1))",
     lambda x: np.pad(x, ((0, 0), (1, 1), (1, 1))),
     lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1)), None),
    ("repeat heads", "f2", lambda n: (n // 4 // 512, 8, 64), "x.unsqueeze(2).expand(-1,-1,4,-1)",
     lambda x: np.broadcast_to(x[:, :, None], (*x.shape[:2], 4, 64)),
     lambda x: x.unsqueeze(2).expand(-1, -1, 4, -1), ("s h d -> s h g d", {"g": 4})),
]


def seconds(f, calls):
    """Of one call."""
    t = time.perf_counter()
    for _ in range(calls):
        f()
    return (time.perf_counter() - t) / calls


def medians(fs, rounds=ROUNDS):
    """Median seconds of one call of each (None stays None), measured in turns, in another order each round:
    what else the machine does then meets all of them. A round of each is at least SECONDS long, behind PAUSE,
    in which the threads of the one before go to sleep (OpenMP's wait awake for milliseconds, on a processor
    that this one's threads need), and calls that are not timed: its data fill the caches."""
    times = {k: [] for k, f in fs.items() if f}
    for k in times:
        fs[k]()  # what it compiles or finds out, it does now
    n = {k: max(1, int(SECONDS / seconds(fs[k], 3))) for k in times}
    for _ in range(rounds):
        for k in random.sample(list(times), len(times)):
            time.sleep(PAUSE)
            seconds(fs[k], 1 + n[k] // 8)
            times[k].append(seconds(fs[k], n[k]))
    return {k: statistics.median(times[k]) if f else None for k, f in fs.items()}


def call_rows():
    x = np.arange(16, dtype="f4").reshape(4, 4)
    v, y = x.T, np.empty((4, 4), "f4")
    k = xt.compile("x: f32[4,4]; x.T")
    rows = {
        "xt.copy(x, 'x.T')": lambda: xt.copy(x, "x.T"),
        "xt.copy(x, 'x.T', out=y)": lambda: xt.copy(x, "x.T", out=y),
        "k(x, out=y)": lambda: k(x, out=y),
        "k(x)": lambda: k(x),
        "xt.ascontiguousarray(x.T)": lambda: xt.ascontiguousarray(v),
        "xt.rearrange(x, 'a b -> b a')": lambda: xt.rearrange(x, "a b -> b a"),
        "xt.view(x).T.copy()": lambda: xt.view(x).T.copy(),
        "np.ascontiguousarray(x.T)": lambda: np.ascontiguousarray(v),
        "np.copyto(y, x.T)": lambda: np.copyto(y, v),
        "np.empty((4, 4), 'f4')": lambda: np.empty((4, 4), "f4"),
        "nothing: a call of a lambda": lambda: None,
    }
    if einops:
        rows["einops.rearrange(x, 'a b -> b a'), contiguous"] = lambda: np.ascontiguousarray(
            einops.rearrange(x, "a b -> b a"))
    if torch:
        t = torch.arange(16.0).reshape(4, 4)
        u, w = torch.empty(4, 4), t.T
        rows |= {
            "torch: xt.copy(t, 'x.T')": lambda: xt.copy(t, "x.T"),
            "torch: k(t, out=u)": lambda: k(t, out=u),
            "torch: t.T.contiguous()": lambda: w.contiguous(),
        }
    return rows


def calls():
    print("| a call of 16 elements | us |\n|---|---|")
    us = {name: 1e6 * s for name, s in medians(call_rows(), 25).items()}
    for name, t in us.items():
        print(f"| `{name}` | {t:.2f} |")
    return us


def contenders(x, chain, by_numpy, by_torch, pattern):
    """Functions by (whether they make the result's memory, who). All give the same bytes."""
    y = np.ascontiguousarray(by_numpy(x))
    k = xt.compile(chain, x)
    t, u = (torch.from_numpy(x), torch.from_numpy(y.copy())) if torch else (None, None)
    repeat = pattern and pattern[1].get("g")
    by_einops = (einops.repeat if repeat else einops.rearrange) if einops and pattern else None
    fs = {
        ("make", "xtview"): lambda: xt.copy(x, chain),
        ("make", "numpy"): lambda: np.ascontiguousarray(by_numpy(x)),
        ("make", "torch"): (lambda: by_torch(t).contiguous()) if torch else None,
        ("make", "einops"): (lambda: np.ascontiguousarray(by_einops(x, pattern[0], **pattern[1])))
        if by_einops else None,
        ("fill", "xtview"): lambda: k(x, out=y),
        ("fill", "numpy"): lambda: np.copyto(y, by_numpy(x)),
        ("fill", "torch"): (lambda: u.copy_(by_torch(t))) if torch else None,
    }
    want = y.tobytes()
    for (kind, who), f in fs.items():
        y[...] = 0
        made = f() if f else None
        if f and np.asarray(y if made is None else made).tobytes() != want:
            sys.exit(f"{kind} {who}: another result for {chain} of {x.shape}")
    return fs


def text(seconds):
    if seconds is None:
        return "-"
    return f"{1e6 * seconds:.3g} us" if seconds < 0.9995e-3 else f"{1e3 * seconds:.3g} ms"


def measure(row, size, threads):
    name, dtype, shape, chain, by_numpy, by_torch, pattern = row
    itemsize = np.dtype(dtype).itemsize
    shape = shape(SIZES[size] // itemsize)
    raw = np.random.default_rng(1).integers(0, 64, int(np.prod(shape)) * itemsize, dtype="u1")
    x = raw.view(dtype).reshape(shape)
    times = medians(contenders(x, chain, by_numpy, by_torch, pattern), 9 if size == "64 MB" else ROUNDS)
    made = {w: times["make", w] for w in MAKE}
    filled = {w: times["fill", w] for w in FILL}
    cells = [text(t) for t in (*made.values(), *filled.values())]
    print(f"| {name} | {size} | {threads} | {' | '.join(cells)} |", flush=True)
    return {"name": name, "dtype": dtype, "shape": list(x.shape), "chain": chain, "size": size,
            "threads": threads, "make_seconds": made, "fill_seconds": filled}


def behind(rows):
    """Sentences: where another library was faster by more than noise."""
    for r in rows:
        for kind in "make", "fill":
            own, *others = r[f"{kind}_seconds"].items()
            for who, t in others:
                if t and t < own[1] * (1 - NOISE):
                    yield (f"{r['name']}, {r['size']}, {r['threads']} thread(s), {kind}: {who} takes "
                           f"{t / own[1]:.2f} of xtview's time")


def sizes(names, sizes, threads):
    print("\n| copy | size | threads | xt.copy | np.ascontiguousarray | torch .contiguous() "
          "| einops, contiguous | k(x, out=y) | np.copyto | torch .copy_ |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    rows = []
    for n in threads:
        xt.set_threads(n)
        if torch:
            torch.set_num_threads(n)
        rows += [measure(row, size, n) for row in ROWS if re.search(names, row[0]) for size in sizes]
    return rows


def machine():
    with open("/proc/cpuinfo") as f:
        names = [line.partition(":")[2].strip() for line in f if line.startswith("model name")]
    libraries = {m.__name__: m.__version__ for m in (np, torch, einops) if m}
    return {"cpu": names[0] if names else platform.processor(), "processors": os.cpu_count(),
            "python": platform.python_version(), "xt": xt.__version__, **libraries}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", default="", metavar="REGEX", help="copies whose names it finds")
    p.add_argument("--sizes", default=",".join(SIZES), help="some of %(default)s")
    p.add_argument("--threads", default="1,2", help="1,2: with one, then with two")
    p.add_argument("--json", help="writes all figures to this file, too")
    args = p.parse_args()
    about = machine()
    print(", ".join(f"{k} {v}" for k, v in about.items()) + f"; load {os.getloadavg()[0]:.1f}\n")
    call_us = calls()
    rows = sizes(args.rows, args.sizes.split(","), [int(n) for n in args.threads.split(",")])
    print("\nThe first four make the memory of their result, the last three write to memory that is there.")
    print("\n".join(behind(rows)) or "No other library was faster on any row.")
    if args.json:
        with open(args.json, "w") as f:
            head = f'{{"machine": {json.dumps(about)},\n "call_us": {json.dumps(call_us)},\n "rows": [\n  '
            f.write(head + ",\n  ".join(json.dumps(r) for r in rows) + "\n]}\n")


if __name__ == "__main__":
    main()
