#!/usr/bin/env python3
"""Times chains of the problem language as other libraries run them on a GPU.

    gpu_peers.py SECONDS < LINES     a line: NAME|CHAIN|SMALL

For each library that is installed (torch, torch.compile, cupy, jax) and each line in turn, until the
seconds are over, a line of JSON: {"peer", "name", "us"}, or {"peer", "name", "failed"}: the library refuses
the chain, or the bytes of SMALL are not NumPy's; {"peer", "left_out"}; {"peer", "missing"}. A time is the
median of 7, each of as many runs as last 5 ms, on the host's clock, the device waited for.
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))
SAMPLES, SAMPLE_SECONDS = 7, 5e-3


def torch_eager():
    import peer_chain
    import torch

    class Eager(peer_chain.Torch):
        def array(self, a):
            return super().array(a).cuda()

        def prepare(self, problem):
            out = torch.empty_like(problem.evaluate(), memory_format=torch.contiguous_format)

            def run():
                out.copy_(problem.evaluate())
                return out

            return run

        def bytes(self, a):
            return a.cpu().numpy().tobytes()

        wait = staticmethod(torch.cuda.synchronize)

    if not torch.cuda.is_available():
        raise ImportError("torch finds no GPU")
    return Eager()


def torch_compiled():
    import torch

    library = torch_eager()
    tensor = library.tensor

    def prepare(problem):
        names = [n for n in problem.names if isinstance(problem.names[n], tensor)]

        def chain(*arrays):
            problem.names.update((n, tensor(a)) for n, a in zip(names, arrays))
            return problem.evaluate().contiguous()

        arrays = [problem.names[n].a for n in names]
        compiled = torch.compile(chain)
        return lambda: compiled(*arrays)

    library.prepare = prepare
    return library


def cupy():
    import cupy as cp
    from numpy_chain import FUNCTIONS, T

    class CupyTensor(T):
        lib = cp

    class Cupy:
        tensor, functions = CupyTensor, FUNCTIONS
        array = staticmethod(cp.asarray)
        wait = staticmethod(cp.cuda.Device().synchronize)

        def prepare(self, problem):
            out = cp.empty(problem.evaluate().shape, problem.evaluate().dtype)

            def run():
                out[...] = problem.evaluate()
                return out

            return run

        def bytes(self, a):
            return cp.asnumpy(a).tobytes()

    return Cupy()


def jax():
    import peer_chain

    library = peer_chain.Jax()
    if library.jax.default_backend() != "gpu":
        raise ImportError("jax finds no GPU")
    library.wait = lambda: None  # a run waits itself
    return library


def run_seconds(library, run, n):
    library.wait()
    start = time.perf_counter()
    for _ in range(n):
        run()
    library.wait()
    return time.perf_counter() - start


def median_us(library, run):
    n = 1
    while run_seconds(library, run, n) < SAMPLE_SECONDS:
        n *= 2
    times = sorted(run_seconds(library, run, n) for _ in range(SAMPLES))
    return times[SAMPLES // 2] / n * 1e6


def time_all(peer, library, lines, deadline):
    from peer_chain import prepared

    for i, line in enumerate(lines):
        if time.monotonic() > deadline:
            print(json.dumps({"peer": peer, "left_out": len(lines) - i}), flush=True)
            return
        name, chain, small = (line.split("|") + ["", ""])[:3]
        answer = {"peer": peer, "name": name}
        try:
            run = prepared(library, chain, small)
            us = run and round(median_us(library, run), 3)
            answer.update({"us": us} if run else {"failed": "other bytes than NumPy's"})
        except Exception as e:
            answer["failed"] = "%s: %.200s" % (type(e).__name__, e)
        run = None  # frees its arrays
        print(json.dumps(answer), flush=True)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lines, start, seconds = sys.stdin.read().split("\n")[:-1], time.monotonic(), float(sys.argv[1])
    peers = {"torch": torch_eager, "torch.compile": torch_compiled, "cupy": cupy, "jax": jax}
    for i, (peer, load) in enumerate(peers.items()):
        try:
            library = load()
        except Exception as e:
            print(json.dumps({"peer": peer, "missing": "%.200s" % e}), flush=True)
            continue
        time_all(peer, library, lines, start + seconds * (i + 1) / len(peers))


if __name__ == "__main__":
    main()
