"""_files.py: run: a chain on files of any size."""

import re
import sys

from ._core import run_files

_UNIT = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def _bytes(size):
    """256 << 20, "256M", "256MiB" (2**20), "2GB" (10**9)."""
    if not isinstance(size, str):
        return int(size)
    m = re.fullmatch(r"([0-9.]+)\s*(?:([kmgt])(i?b)?|b)?", size.strip().lower())
    if not m:
        raise ValueError(f"mem: {size!r} is no size, as '256M' or '2GB'")
    power = _UNIT[m[2] or ""]
    return int(float(m[1]) * (1000 ** (power // 10) if m[3] == "b" else 1 << power))


def _bar():
    """tqdm's, where it is installed and someone looks."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None, None
    bar = tqdm(unit="B", unit_scale=True, disable=None)

    def tell(done, total):
        bar.total = total
        bar.update(done - bar.n)

    return tell, bar


def run(line, *paths, mem="256M", chunks=(), zarr_format=0, restart=False, progress=None):
    """Runs a chain on files, the last of which is the result: run("x; x.T", "in.npy", "out.zarr", mem="2GB").

    Files are .npy or directories of plain zarr chunks, of any size; at most `mem` of memory and page cache
    are used. chunks, zarr_format (2 or 3): of a zarr result. progress(done, total), in bytes, is called some
    times a second; None: a bar of tqdm, if it is installed; False: none. What was ended, by Ctrl-C, too, goes
    on with the next call of the same line and files; restart=True begins anew. OSError: a file cannot be read
    or written."""
    tell, bar = _bar() if progress is None and sys.stderr else (progress or None, None)
    try:
        run_files(line, paths, _bytes(mem), tuple(chunks), zarr_format, bool(restart), tell)
    finally:
        if bar is not None:
            bar.close()
