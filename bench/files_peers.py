"""files_peers.py: the transpose of a file of f32 by xt and by who else can, each in a process of its own,
under one cap of memory and page cache, and with one limit of time; what is not installed is named.

    python3 bench/files_peers.py XT ROWS COLUMNS [--mem MB] [--free] [--limit SECONDS] [--dir DIR]
        [--only WORD]

Writes ROWS*COLUMNS*4 bytes of input below DIR, and as much of each result in turn. The cap, and 16 MB more
for an interpreter, is a control group of version 1 (root): without one, or with --free, only xt keeps to it,
and the table says so. Seconds include fsync; memory is what was resident at most, pages of mapped files with
it."""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time

GROUP = "/sys/fs/cgroup/memory/xt-files-peers"

NUMPY = """
import mmap, sys, numpy as np
x = np.load("in.npy", mmap_mode="r")
y = np.lib.format.open_memmap("out.npy", "w+", x.dtype, x.shape[::-1])
for a in x, y:
    a._mmap.madvise(mmap.MADV_RANDOM)
"""
WAYS = {
    "numpy, .T": ("numpy", NUMPY + "y[...] = x.T; y.flush()"),
    "numpy, blocks of 2048": (
        "numpy",
        NUMPY
        + "n, m = x.shape; b = 2048\n"
        "for i in range(0, n, b):\n for k in range(0, m, b): y[k:k+b, i:i+b] = x[i:i+b, k:k+b].T\n"
        "y.flush()",
    ),
    "dask.store, blocks of 2048": (
        "dask",
        NUMPY
        + "import dask.array as da\n"
        "da.store(da.from_array(x, chunks=2048).T, y, lock=False); y.flush()",
    ),
    "rechunker, rows to columns (zarr, its own form)": (
        "rechunker",
        "import os, zarr, numpy as np; from rechunker import rechunk\n"
        "x = np.load('in.npy', mmap_mode='r'); n, m = x.shape\n"
        "s = zarr.open('in.zarr', mode='w', shape=x.shape, chunks=(64, m), dtype='f4', compressor=None)\n"
        "for i in range(0, n, 64): s[i:i+64] = x[i:i+64]\n"
        "import time; b = time.time()\n"
        "rechunk(s, (n, 64), MEM // 2, 'out.zarr', temp_store='tmp.zarr').execute()\n"
        "os.sync(); print('seconds', time.time() - b)",
    ),
}


def capped(mem):
    """Into the group, before exec."""
    try:
        os.makedirs(GROUP, exist_ok=True)
        open(GROUP + "/memory.limit_in_bytes", "w").write(str(mem + (16 << 20)))
    except OSError:
        return None
    return lambda: open(GROUP + "/cgroup.procs", "w").write(str(os.getpid()))


def timed(command, limit, group):
    begin = time.monotonic()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=group)
    pid = 0
    while not pid:
        pid, status, used = os.wait4(p.pid, os.WNOHANG)
        if not pid and time.monotonic() - begin > limit:
            p.kill()
            os.wait4(p.pid, 0)
            return f"not done in {limit} s"
        time.sleep(0.01)
    seconds = time.monotonic() - begin
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        return f"failed: {(p.stderr.read().strip() or str(p.returncode)).splitlines()[-1][:60]}"
    own = [float(line.split()[1]) for line in p.stdout if line.startswith("seconds")]
    return f"{own[0] if own else seconds:6.1f} s {used.ru_maxrss / 1024:7.0f} MB"


def make(rows, columns):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    with open("in.npy", "wb") as f:
        f.write(b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode())
        row = os.urandom(4 * columns)
        for _ in range(rows):
            f.write(row)
        os.fsync(f.fileno())


def clear():
    subprocess.run(["rm", "-rf", "out.npy", "out.zarr", "tmp.zarr", "in.zarr"])
    with open("in.npy", "rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("xt")
    p.add_argument("rows", type=int)
    p.add_argument("columns", type=int)
    p.add_argument("--mem", type=int, default=256, help="MB")
    p.add_argument("--free", action="store_true", help="no cap")
    p.add_argument("--limit", type=float, default=100, help="seconds, of each way")
    p.add_argument("--dir", default=".")
    p.add_argument("--only", default="", help="peers with this word in their name")
    a = p.parse_args()
    xt, mem = os.path.abspath(a.xt), a.mem << 20
    group = None if a.free else capped(mem)
    print(f"f32 [{a.rows}, {a.columns}] transposed, {a.mem} MB, limit {a.limit:g} s"
          + ("" if group else "; not capped"))
    with tempfile.TemporaryDirectory(dir=os.path.abspath(a.dir)) as d:
        os.chdir(d)
        make(a.rows, a.columns)
        clear()
        copy = ["dd", "if=in.npy", "of=out.npy", "bs=4M", "iflag=direct", "oflag=direct", "conv=fsync"]
        rows = [("dd, a copy of the file", copy)]
        rows += [("xt run --mem", [xt, "run", "x; x.T", "in.npy", "-o", "out.npy", "--mem", f"{a.mem}M"])]
        for name, (module, code) in WAYS.items():
            if a.only not in name:
                continue
            there = importlib.util.find_spec(module)
            rows += [(name, [sys.executable, "-c", code.replace("MEM", str(mem))] if there else None)]
        for name, command in rows:
            print(f"  {name:48} {timed(command, a.limit, group) if command else 'not installed'}", flush=True)
            clear()
        os.chdir("/")


main()
