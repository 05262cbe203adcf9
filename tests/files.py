"""files.py: xt run on files larger than the memory it may have: kills, faults, caps, zarr and its package.
Ends with "N passed, N failed"."""

import glob
import itertools
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

XT = os.path.abspath(sys.argv[1])
SHIM = os.path.abspath(sys.argv[2])
FULL = os.environ.get("XT_TEST_FULL") == "1"
passed = failed = 0
FAULTS = {"ENOSPC": 28, "EIO": 5}
JOURNAL_HEAD = 928


def check(what, good, why=""):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print(f"FAILED: {what} {why}")


def header(code, shape, fortran=False):
    text = f"{{'descr': '{code}', 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode()


def elements(path):
    data = open(path, "rb").read()
    return data[10 + data[8] + 256 * data[9] :]


def transposed(data, rows, columns, size):
    """By Python's slices, a column at a time."""
    if size == 4:
        view = memoryview(data).cast("I")
        return b"".join(bytes(view[c::columns]) for c in range(columns))
    return b"".join(
        data[i : i + size] for c in range(columns) for i in range(c * size, len(data), columns * size)
    )


def run(*args, env=None, **more):
    return subprocess.run(
        [XT, *args], capture_output=True, text=True, env={**os.environ, **(env or {})}, **more
    )


def refused(what, out, *words):
    """One sentence, status 2."""
    good = out.returncode == 2 and out.stderr.count("\n") == 1 and out.stderr.startswith("xt: ")
    check(what, good and all(w in out.stderr for w in words), f"{out.returncode} {out.stderr!r}")


def left():
    return sorted(f for f in os.listdir(".") if ".xt-" in f)


def put(path, rows, columns):
    data = random.Random(rows).randbytes(4 * rows * columns)
    with open(path, "wb") as f:
        f.write(header("<f4", (rows, columns)) + data)
    return data


def shimmed(call, error, at, *args):
    return run(*args, env={"LD_PRELOAD": SHIM, "XT_SHIM": f"{call} {error} {at}"})


def tiles_done(name="out.npy"):
    """In a run's journal; 0: there is none."""
    path = name + ".xt-part"
    return sum(b.bit_count() for b in open(path, "rb").read()[JOURNAL_HEAD:]) if os.path.exists(path) else 0


def stopped(line, name="out.npy"):
    """A run that is killed with tiles done, as it is about to make some more durable: how many are."""
    out = shimmed("fdatasync", "KILL", 8, *line)
    check("killed with tiles done", out.returncode == -signal.SIGKILL and tiles_done(name) > 0, out.stderr)
    return tiles_done(name)


class Transpose:
    """8 MB, rows of 4 KB, whose first two axes change places, in about 128 tiles."""

    forms = [
        ("out.npy", ["--passes", "1"]),
        ("out.npy", ["--passes", "2"]),
        ("out.zarr", ["--chunks", "4,32,1024"]),
    ]

    def __init__(self, form):
        a, b, row = 128, 16, 4096
        data = random.Random(5).randbytes(a * b * row)
        with open("in.npy", "wb") as f:
            f.write(header("<f4", (a, b, row // 4)) + data)
        self.want = b"".join(data[(i * b + k) * row :][:row] for k in range(b) for i in range(a))
        self.name, more = form
        self.line = ["run", "x; x.permute(1,0,2)", "in.npy", "-o", self.name]
        self.line += ["--mem", "4M", "--tile", "64K", "-v", *more]

    def end(self):
        """The run that goes on: with all that was done, and that alone."""
        kept = tiles_done(self.name)
        done = run(*self.line)
        check("a run after kills", done.returncode == 0 and not left(), done.stderr)
        check("goes on with what was done", f", {kept} of them done before" in done.stderr, done.stderr)

    def take(self):
        """Its elements; it is removed."""
        if self.name == "out.npy":
            have = elements(self.name)
            os.unlink(self.name)
            return have
        run("run", "x; x", self.name, "-o", "flat.npy", "--mem", "8M")
        have = elements("flat.npy")
        shutil.rmtree(self.name)
        os.unlink("flat.npy")
        return have


def kept():
    """Killed with tiles done: the next run ends it, and makes none of them again, which would mend bytes."""
    for form in Transpose.forms:
        t = Transpose(form)
        stopped(t.line, t.name)
        t.end()
        check(f"the bytes {form}", t.take() == t.want)
    t = Transpose(Transpose.forms[0])
    n = stopped(t.line)
    with open("out.npy.xt-data", "r+b") as f:
        f.seek(-len(t.want), os.SEEK_END)
        f.write(bytes(len(t.want)))
    t.end()
    have = t.take()
    spoilt = sum(have[i : i + 4096] != t.want[i : i + 4096] for i in range(0, len(have), 4096))
    check("tiles that were done are left alone", spoilt == 16 * n, f"{spoilt} rows, {n} tiles of 16")


def kills():
    """Killed at any moment, and run again until it ends by itself: the bytes are those of one left alone."""
    lottery, killed, times = random.Random(7), 0, 200 if FULL else 12
    for form in itertools.cycle(Transpose.forms):
        t = Transpose(form)
        begin = time.monotonic()
        done = run(*t.line)
        whole = time.monotonic() - begin
        check("a run that is left alone", done.returncode == 0 and t.take() == t.want, done.stderr)
        for _ in range(4):
            p = subprocess.Popen([XT, *t.line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(lottery.random() * whole)
            p.send_signal(signal.SIGKILL)
            killed += p.wait() != 0
            if os.path.exists(t.name):
                break
        if not os.path.exists(t.name):
            t.end()
        check(f"the bytes after {killed} kills", t.take() == t.want)
        for f in left():  # killed after the result was put in place
            check("the journal alone", f.endswith(".xt-part"), f)
            os.unlink(f)
        if killed >= times:
            break
    print(f"note: {killed} kills")


def faults():
    """A read or a write fails, or is short: a sentence and no damage, or right bytes; then a run ends it."""
    want = transposed(put("in.npy", 256, 512), 256, 512, 4)
    line = ["run", "x; x.T", "in.npy", "-o", "out.npy", "--mem", "2M", "--tile", "32K"]
    open("out.npy", "wb").write(b"what was there")
    for call, error, words in (
        ("pread", "EIO", ["Input/output error"]),
        ("pread", "END", ["shorter"]),
        ("pwrite", "ENOSPC", ["out.npy", "no room"]),
        ("pwrite", "EIO", ["out.npy"]),
        ("fallocate", "ENOSPC", ["out.npy", "no room"]),
        ("fdatasync", "EIO", ["cannot be written"]),
        ("mark", "ENOSPC", ["out.npy.xt-part", "no room"]),
    ):
        for at in (0, 3, 10):
            out = shimmed(call, error, at, *line)
            if out.returncode == 0 and at:
                check(f"{call} {error} {at}", elements("out.npy") == want)  # so many calls there were not
                open("out.npy", "wb").write(b"what was there")
                continue
            refused(f"{call} {error} {at}", out, *words)
            check("what was there", open("out.npy", "rb").read() == b"what was there")
    for more in ([], ["--restart"]):
        out = shimmed("mark", "ONE", 0, *line, *more)
        check("marks a byte at a time", out.returncode == 0 and elements("out.npy") == want, out.stderr)
    os.unlink("out.npy")
    refused("its folder", shimmed("fsync", "EIO", 0, *line), "out.npy", "whole and in its place", "Input")
    check("is whole", elements("out.npy") == want and not left(), left())
    check("a run after faults", run(*line).returncode == 0)
    check("its bytes", elements("out.npy") == want and not left(), left())
    for call, how in ("pread", "SHORT"), ("pwrite", "SHORT"), ("fallocate", "ENOSYS"):
        os.unlink("out.npy")
        out = shimmed(call, how, int(how == "SHORT"), *line)
        check(f"{call} {how}", out.returncode == 0 and elements("out.npy") == want, out.stderr)


def parts():
    """Of a result that is there already: what is around the part that is written."""
    old = header("<f4", (1000,)) + random.Random(1).randbytes(4000)
    new = put("in.npy", 1, 4)
    line = ["run", "x: f32[1,4]; x -> [1,4]:[4,1]+8", "in.npy", "-o", "out.npy"]
    for at in range(3):  # data, hole, and that there is no more data
        open("out.npy", "wb").write(old)
        refused(f"lseek EIO {at}", shimmed("lseek", "EIO", at, *line), "out.npy", "cannot be copied")
        check("what was there", open("out.npy", "rb").read() == old)
    start = len(old) - 4000 + 32
    check("a part", run(*line).returncode == 0)
    check("its bytes", open("out.npy", "rb").read() == old[:start] + new + old[start + 16 :])


def journals():
    data = put("in.npy", 512, 4096)
    line = ["run", "x; x[::-1]", "in.npy", "-o", "out.npy", "--mem", "2M", "--tile", "16K", "--passes", "1"]
    other = ["run", "x; x", *line[2:]]
    stopped(line)
    refused("another line", run(*other), "out.npy.xt-part", "another run", "--restart")
    refused(
        "other tiles go on with the old ones",
        run(*line, env={"XT_SHIM": "pread EIO 0", "LD_PRELOAD": SHIM}),
        "in.npy",
    )
    os.utime("in.npy", (1, 1))
    refused("a changed input", run(*line), "out.npy.xt-part", "changed", "--restart")
    check(
        "begun anew",
        run(*line, "--restart").returncode == 0
        and elements("out.npy")
        == b"".join(data[i : i + 16384] for i in range(len(data) - 16384, -1, -16384)),
    )
    check("nothing is left of it", not left(), left())
    open("out.npy.xt-part", "wb").write(b"?" * 4000)
    refused("a journal that is none", run(*line), "out.npy.xt-part", "remove it")
    os.unlink("out.npy.xt-part")
    stopped(line)
    os.unlink("out.npy.xt-data") if os.path.exists("out.npy.xt-data") else None
    check("what is done is gone: begun anew", run(*line).returncode == 0 and not left(), left())
    for passes in "1", "2":
        turned = ["run", "x; x.T", "in.npy", "-o", "out.npy", "--passes", passes]
        tell = run("explain", *turned[1:], "--mem", "24M", "--tile", "2M", "--json").stdout
        first = json.loads(tell)["passes"][0]
        check("tiles enough", first["tiles"] > 3, first)
        at = 3 * first["writes"] // (2 * first["tiles"])  # in the second tile
        shimmed("pwrite", "EIO", at, *turned, "--mem", "24M", "--tile", "2M")
        check("a run that failed left its journal", os.path.exists("out.npy.xt-part"), left())
        out = run(*turned, "--mem", "2M")
        check("taken up with less memory", out.returncode == 0 and not left(), out.stderr)
        check("its bytes", elements("out.npy") == transposed(data, 512, 4096, 4))
        shimmed("pwrite", "EIO", at, *turned, "--mem", "24M", "--tile", "2M")
        out = json.loads(run("explain", *turned[1:], "--mem", "2M", "--json").stdout)
        check("explained with less memory", out["memory_bytes"] < 2 << 20, out)
        os.unlink("out.npy.xt-part")
    with open("in.npy", "r+b") as f:
        f.truncate(4096)
    refused("a short input", run(*line), "in.npy", "announces")
    os.mkfifo("fifo.npy")
    fifo = run("run", "x; x", "fifo.npy", "-o", "o.npy", "--mem", "4M", timeout=60)
    refused("a FIFO", fifo, "fifo.npy", "no file")
    put("a.npy", 16, 16)
    os.mkfifo("o.npy.xt-part")
    fifo = run("run", "x; x", "a.npy", "-o", "o.npy", "--mem", "4M", timeout=60)
    refused("a FIFO as a journal", fifo, "o.npy.xt-part")
    os.unlink("o.npy.xt-part")
    if os.geteuid():
        os.mkdir("closed", 0o500)
        refused(
            "a directory that cannot be written",
            run("run", "x; x", "a.npy", "-o", "closed/o.npy", "--mem", "4M"),
        )
    refused("no directory", run("run", "x; x", "a.npy", "-o", "nowhere/o.npy", "--mem", "4M"), "nowhere")
    refused("too little memory", run("run", "x; x", "a.npy", "-o", "o.npy", "--mem", "20K"), "memory")
    for more in [], ["--passes", "2"]:
        out = run("run", "x; x.T", "a.npy", "-o", "o.npy", "--mem", "1000T", *more)
        data = open("a.npy", "rb").read()[-1024:]
        good = out.returncode == 0 and elements("o.npy") == transposed(data, 16, 16, 4)
        check("more memory than there is", good, out.stderr)
    os.unlink("o.npy")
    refused("no size", run("run", "x; x", "a.npy", "-o", "o.npy", "--mem", "much"), "--mem")
    refused("a name of neither", run("run", "x; x", "a.npy", "-o", "o.bin", "--mem", "4M"), ".npy", ".zarr")


def inputs():
    """What a run makes and clears away is no input of it, by whatever name."""
    put("a.npy", 16, 16)
    os.mkdir("d")
    for end in (".xt-data", ".xt-part", ".xt-tiles", ".xt-probe"):
        name = f"out.npy{end}"
        shutil.copy("a.npy", name)
        os.symlink(name, "other.npy")
        for path in (name, f"d/../{name}", "other.npy"):
            line = ["run", "x; x.T", path, "-o", "out.npy", "--mem", "4M"]
            refused(f"{path} as an input", run(*line), path, "is an input", f"out.npy{end}")
            check("is left alone", elements(name) == elements("a.npy") and not os.path.exists("out.npy"))
        os.unlink("other.npy")
        os.unlink(name)
    os.mkdir("out.npy.xt-data")
    shutil.copy("a.npy", "out.npy.xt-data/x.npy")
    out = run("run", "x; x", "out.npy.xt-data/x.npy", "-o", "out.npy", "--mem", "4M")
    refused("an input below", out, "is an input")
    check("is left alone", os.path.exists("out.npy.xt-data/x.npy"))
    write_zarr("out.zarr.xt-data", V2, {})
    for path in "out.zarr.xt-data", "out.zarr.xt-data/":
        refused(f"{path} as an input", run("run", "x; x", path, "-o", "out.zarr"), "is an input")
        check("is left alone", os.path.exists("out.zarr.xt-data/.zarray"))
    shutil.rmtree("out.npy.xt-data")
    os.symlink("a.npy", "out.npy.xt-data")  # a link is replaced, what it names stays
    out = run("run", "x; x", "a.npy", "-o", "out.npy", "--mem", "4M")
    check("a link to the input", out.returncode == 0 and elements("out.npy") == elements("a.npy"), out.stderr)


def variables():
    """Threads start where a program has many thread-local variables."""
    want = transposed(put("in.npy", 256, 512), 256, 512, 4)
    line = ["run", "x; x.T", "in.npy", "-o", "out.npy", "--mem", "2M", "--tile", "32K"]
    out = run(*line, env={"LD_PRELOAD": os.path.join(os.path.dirname(SHIM), "variables.so")})
    check("many thread-local variables", out.returncode == 0 and elements("out.npy") == want, out.stderr)


def links():
    """A link as the result stays, what it names is made; links and files of others in the places of what
    a run leaves beside it are not followed."""
    want = transposed(put("in.npy", 64, 64), 64, 64, 4)
    line = ["run", "x; x.T", "in.npy", "-o", "out.npy", "--mem", "2M"]
    os.mkdir("far")
    os.symlink("far/link", "out.npy")
    os.symlink("there.npy", "far/link")
    for when in "not there", "there":
        out = run(*line)
        good = out.returncode == 0 and os.path.islink("out.npy") and os.path.islink("far/link")
        check(f"a link whose file is {when}", good and elements("far/there.npy") == want, out.stderr)
    os.symlink("far/there.zarr", "out.zarr")
    out = run(*line[:4], "out.zarr/", *line[5:])
    check("a link to a directory", not out.returncode and os.listdir("far/there.zarr"), out.stderr)
    os.symlink("round.npy", "round.npy")
    refused("a link to itself", run(*line[:4], "round.npy", *line[5:]), "round.npy", "no file")
    os.unlink("out.npy")
    open("other", "w").write("what another one has")
    for put_there in os.symlink, os.link:
        put_there("other", "out.npy.xt-part")
        refused(f"another file as a journal, by {put_there.__name__}", run(*line), "out.npy.xt-part")
        refused("begun anew", run(*line, "--restart"), "out.npy.xt-part")
        os.unlink("out.npy.xt-part")
    turned = Transpose(Transpose.forms[1])
    for name in "out.npy.xt-data", "out.npy.xt-tiles":
        stopped(turned.line)
        os.unlink(name)
        os.symlink("other", name)
        check(f"a link as {name}", run(*turned.line).returncode == 0 and turned.take() == turned.want)
    check("what another one has", open("other").read() == "what another one has")
    check("nothing is left", not left(), left())


def owners():
    """What is made is as private as what it replaces, and gets its mode and owner; another user's file in its
    place is told of."""
    os.close(os.open("out.npy", os.O_CREAT, 0o600))
    if os.geteuid() == 0:
        os.chown("out.npy", 65534, 65534)
    was = os.stat("out.npy")
    turned = Transpose(Transpose.forms[1])
    stopped(turned.line)
    for f in "out.npy.xt-data", "out.npy.xt-tiles":
        check(f"{f} is as private as the result", os.stat(f).st_mode & 0o777 == 0o600)
    turned.end()
    now = os.stat("out.npy")
    good = (now.st_mode, now.st_uid, now.st_gid) == (was.st_mode, was.st_uid, was.st_gid)
    check("mode and owner stay", good and turned.take() == turned.want, now)
    if os.geteuid() == 0:
        os.chmod(".", 0o1777)  # nobody removes what is another one's
        open("out.npy.xt-data", "w").close()
        os.chmod("out.npy.xt-data", 0o666)
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        refused("a file of another one's", run(*turned.line, **nobody), "out.npy", "cannot be removed")
        check("is left alone", os.path.getsize("out.npy.xt-data") == 0)


def has_open(pid, end):
    """A file whose name ends so."""
    for f in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            if os.readlink(f).endswith(end):
                return True
        except OSError:  # it was closed
            pass
    return False


def late():
    """A run that opens the journal of another one, which then ends and removes it, keeps one of its own."""
    t = Transpose(Transpose.forms[0])
    stopped(t.line)
    env = {**os.environ, "LD_PRELOAD": SHIM, "XT_SHIM": "flock WAIT 0 fdatasync KILL 8"}
    p = subprocess.Popen([XT, *t.line], stderr=subprocess.DEVNULL, env=env)
    while not has_open(p.pid, ".xt-part"):
        time.sleep(0.001)
    t.end()
    check("the bytes of the first", t.take() == t.want)
    open("go", "w").close()
    check("killed with tiles done", p.wait() == -signal.SIGKILL and tiles_done() > 0, left())
    t.end()
    check("the bytes of the second", t.take() == t.want)


def resident(pid):
    """Bytes, 0: it has ended."""
    try:
        lines = open(f"/proc/{pid}/status").read().split("\n")
    except OSError:
        return 0
    return sum(1024 * int(l.split()[1]) for l in lines if l.startswith("VmRSS:"))


def watched(*args):
    """A run, looked at while it goes: status, samples, and the most of resident memory and of pages in the
    cache of all its files, each and both at one time."""
    slow = {**os.environ, "LD_PRELOAD": SHIM, "XT_SHIM": "pwrite SLOW 0"}
    p = subprocess.Popen([XT, *args], stderr=subprocess.DEVNULL, env=slow)
    samples, most = 0, [0, 0, 0]
    while p.poll() is None:
        now = resident(p.pid)
        pages = sum(cached(f) for f in ("in.npy", "out.npy.xt-data", "out.npy.xt-tiles"))
        samples += now > 0
        most = [max(a, b) for a, b in zip(most, (now, pages, now + pages))]
        time.sleep(0.002)
    return p.returncode, samples, most


def memory():
    """Resident memory and pages of its files in the cache stay under the cap while a run goes on."""
    rows, columns, cap = 4096, 8192, 32 << 20
    data = put("in.npy", rows, columns)
    for more in (["--passes", "1"], ["--passes", "2"]):
        subprocess.run(["sync"])
        with open("in.npy", "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        status, samples, most = watched("run", "x; x.T", "in.npy", "-o", "out.npy", "--mem", "32M", *more)
        said = f"{samples} looks, most resident {most[0]}, cached {most[1]}, both {most[2]}"
        check(f"memory {more}", status == 0 and samples > 5 and most[2] <= cap, said)
        check("the bytes", elements("out.npy") == transposed(data, rows, columns, 4))
        print(f"note: cap {cap} {' '.join(more)}: {said}")


def prices():
    """Of one pass and of two both are shown, and the cheaper is taken."""
    for line, mem in (
        ("x: f32[512,4096]; x.T", "2M"),
        ("x: f32[4096,8192]; x.T", "64M"),
        ("x: u8[64,4096,64]; x.permute(1,0,2)", "3M"),
        ("x: f32[4096,4096]; x", "8M"),
    ):
        tell = ["explain", line, "--mem", mem]
        ways = [], ["--passes", "1"], ["--passes", "2"]
        free, one, two = (json.loads(run(*tell, "--json", *way).stdout) for way in ways)
        taken, other = (one, two) if len(free["passes"]) == 1 else (two, one)
        good = free["seconds"] == taken["seconds"] <= other["seconds"]
        check("the cheaper is taken", good, f"{line} {free}")
        words = f"\notherwise   {free['other_seconds']:.3g} s "
        if free["other_requests"]:
            words += f"in {len(other['passes'])} pass"
            requests = sum(p["reads"] + p["writes"] for p in other["passes"])
            good = (free["other_seconds"], free["other_requests"]) == (other["seconds"], requests)
        else:
            words += "at least in 2 passes"
            good = taken["seconds"] <= free["other_seconds"] <= other["seconds"]
        out = run(*tell).stdout
        check("what the other takes", good and words in out, f"{free} {out}")


def peak_of(*args):
    """The status, and the kilobytes that were resident at most."""
    code = (
        "import resource, subprocess, sys\n"
        "s = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
        "print(s, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    p = subprocess.run([sys.executable, "-c", code, XT, *args], capture_output=True, text=True)
    return (*map(int, p.stdout.split()), p.stderr)


def predictions():
    """Of a disk that nobody has measured by a probe, and then by what a run took."""
    with open("in.npy", "wb") as f:
        f.write(header("<f4", (256, 1 << 18)))
        for _ in range(256):
            f.write(b"abcd" * (1 << 18))
    tell = ["explain", "x; x", "in.npy", "-o", "out.npy", "--mem"]
    status, peak, _ = peak_of(*tell, "32M")
    check("a cap that is less than a probe takes", status == 0 and peak << 10 <= 32 << 20, peak)
    check("is guessed for", "probe or a guess" in run(*tell, "32M").stdout)
    tell.append("96M")
    careful = json.loads(run(*tell, "--json", env={"XT_CACHE_DIR": ""}).stdout)["seconds"]
    open("out.npy.xt-probe", "w").write("of a run that was killed")
    check("a probe", "by a short probe" in run(*tell).stdout)
    check("where an earlier one was left", not left(), left())
    first = json.loads(run(*tell, "--json").stdout)
    out = run("run", *tell[1:], "-v")
    took = float(out.stderr.split("kernels: ")[1].split()[0])
    check("no guess", first["seconds"] != careful, careful)
    second = json.loads(run(*tell, "--json").stdout)
    check("runs are counted", (first["runs"], second["runs"]) == (0, 1))
    check("so is said", "as 1 run on this disk took" in run(*tell).stdout)
    want = min(max(took, first["seconds"] / 4), first["seconds"] * 4)
    check("the same run again", 0.8 < second["seconds"] / want < 1.25, f"{first} {took} {second}")


def cached(path):
    """Bytes of a file in the page cache, by mincore; 0: it is empty, or gone, perhaps just now."""
    import ctypes
    import mmap

    libc = ctypes.CDLL(None, use_errno=True)
    try:
        with open(path, "r+b") as f:
            m = mmap.mmap(f.fileno(), 0)
    except (FileNotFoundError, ValueError):
        return 0
    with m:
        size = len(m)
        pages = (size + 4095) // 4096
        vector = (ctypes.c_ubyte * pages)()
        at = (ctypes.c_char * size).from_buffer(m)
        libc.mincore(ctypes.c_void_p(ctypes.addressof(at)), ctypes.c_size_t(size), vector)
        del at
        return 4096 * sum(v & 1 for v in vector)


def forms():
    """Inputs and results of every form: bytes, or a sentence."""
    ints = lambda *v: struct.pack(f"<{len(v)}i", *v)

    def save(path, code, shape, data, fortran=False):
        with open(path, "wb") as f:
            f.write(header(code, shape, fortran) + data)

    save("a.npy", "<i4", (2, 3), ints(1, 2, 3, 4, 5, 6))
    save("f.npy", "<i4", (2, 3), ints(1, 4, 2, 5, 3, 6), fortran=True)
    save("none.npy", "<i4", (0, 3), b"")
    save("one.npy", "<i4", (), ints(9))
    save("big.npy", ">i4", (2, 3), ints(1, 2, 3, 4, 5, 6))
    save("bytes.npy", ">u1", (3,), b"abc")
    save("object.npy", "|O", (1,), b"12345678")
    save("text.npy", "<U4", (1,), b"1234567890123456")
    both = ints(1, 2, 3, 4, 5, 6) * 2
    for line, inputs, want in (
        ("x; x", "a", ints(1, 2, 3, 4, 5, 6)),
        ("x; x", "f", ints(1, 2, 3, 4, 5, 6)),
        ("x; x.T", "f", ints(1, 4, 2, 5, 3, 6)),
        ("x; y; concat(0,x,y)", "a f", both),
        ("x; y; concat(1,x,y[:,::-1])", "f a", ints(1, 2, 3, 3, 2, 1, 4, 5, 6, 6, 5, 4)),
        ("x; y; concat(0,x,y)", "none a", ints(1, 2, 3, 4, 5, 6)),
        ("x; x.pad((1,0),(0,1),value=7)", "a", ints(7, 7, 7, 7, 1, 2, 3, 7, 4, 5, 6, 7)),
        ("x; x", "none", b""),
        ("x; x.pad((1,0),(0,0))", "none", ints(0, 0, 0)),
        ("x; x[:0]", "a", b""),
        ("x; x", "one", ints(9)),
        ("x; x.reshape(1).expand(3)", "one", ints(9, 9, 9)),
        ("x; x[1,2]", "a", ints(6)),
        ("x; x", "bytes", b"abc"),
    ):
        out = run("run", line, *(f"{i}.npy" for i in inputs.split()), "-o", "o.npy", "--mem", "1M")
        good = not out.returncode and elements("o.npy") == want
        check(f"{line} of {inputs}", good, out.stderr or elements("o.npy"))
        out = run("run", line, *(f"{i}.npy" for i in inputs.split()), "-o", "o.zarr")
        if not out.returncode:
            out = run("run", "x; x", "o.zarr", "-o", "o.npy")
            shutil.rmtree("o.zarr")
        good = not out.returncode and elements("o.npy") == want
        check(f"{line} of {inputs} by zarr", good, out.stderr or elements("o.npy"))
    for line, inputs, words in (
        ("x; x", "big", ["big-endian", "newbyteorder"]),
        ("x; x", "object", ["'|O'", "not supported"]),
        ("x; x", "text", ["'<U4'", "not supported"]),
        ("x; x -> [2,3]:[4,1]", "a", ["layout", "whole", "--mem"]),
        ("x; x -> [2,3]:[3,1]+2", "a", ["layout", "--mem"]),
        ("x: i32[2,2]:[3,1]; x", "f", ["column-major"]),
        ("x; x", "a f", ["the chain has 1 input, and 2 files are given"]),
    ):
        out = run("run", line, *(f"{i}.npy" for i in inputs.split()), "-o", "o2.npy", "--mem", "1M")
        refused(f"{line} of {inputs}", out, *words)
        check("nothing is made", not os.path.exists("o2.npy") and not left(), left())


def write_zarr(path, meta, chunks):
    os.makedirs(path, exist_ok=True)
    with open(path + ("/.zarray" if meta["zarr_format"] == 2 else "/zarr.json"), "w") as f:
        json.dump(meta, f)
    for name, data in chunks.items():
        os.makedirs(os.path.dirname(f"{path}/{name}"), exist_ok=True)
        open(f"{path}/{name}", "wb").write(data)


V2 = {
    "zarr_format": 2,
    "shape": [3, 5],
    "chunks": [2, 3],
    "dtype": "<i4",
    "fill_value": 7,
    "order": "C",
    "compressor": None,
    "filters": None,
}
V3 = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [3, 5],
    "data_type": "int32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 7,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}


def zarrs():
    ints = lambda *v: struct.pack(f"<{len(v)}i", *v)
    first = ints(0, 1, 2, 5, 6, 7)
    want = ints(0, 1, 2, 7, 7, 5, 6, 7, 7, 7, 7, 7, 7, 7, 7)
    for meta, name in ((V2, "0.0"), (V3, "c/0/0")):
        shutil.rmtree("z", True)
        write_zarr("z", meta, {name: first})
        out = run("run", "x; x", "z", "-o", "o.npy", "--mem", "1M")
        check(
            f"missing chunks are fill_value, format {meta['zarr_format']}",
            not out.returncode and elements("o.npy") == want,
            out.stderr,
        )
    for meta, change, words in (
        (V2, {"compressor": {"id": "blosc"}}, ["blosc", "compressor=None"]),
        (V2, {"filters": [{"id": "delta"}]}, ["delta"]),
        (V2, {"dtype": ">i4"}, ["big-endian"]),
        (V2, {"dtype": [["a", "<i4"]]}, ["structured"]),
        (V2, {"chunks": [2]}, ["shape"]),
        (V2, {"chunks": [0, 3]}, ["positive"]),
        (V2, {"order": "K"}, ["order"]),
        (V2, {"fill_value": "x"}, ["fill_value"]),
        (V2, {"zarr_format": 4}, ["zarr_format"]),
        (V3, {"node_type": "group"}, ["group"]),
        (V3, {"codecs": []}, ["codecs"]),
        (V3, {"codecs": [*V3["codecs"], {"name": "zstd"}]}, ["zstd"]),
        (V3, {"codecs": [{"name": "sharding_indexed"}]}, ["sharding_indexed"]),
        (V3, {"codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]}, ["big-endian"]),
        (V3, {"data_type": "string"}, ["string"]),
        (V3, {"chunk_grid": {"name": "rectilinear"}}, ["grid"]),
        (V3, {"chunk_key_encoding": {"name": "suffix"}}, ["chunk_key_encoding"]),
        (V3, {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "-"}}}, ["'/'"]),
        (V3, {"extra": {"must_understand": True, "x": {"must_understand": False}}}, ["'extra'", "must"]),
        (V3, {"extra": [{"must_understand": False}]}, ["'extra'"]),
        (V3, {"skipped": {"must_understand": False}, "order": "F"}, ["'order'"]),
        (V3, {"": {"a": "must_understand", "b": False}}, ["''"]),
    ):
        shutil.rmtree("z", True)
        write_zarr("z", {**meta, **change, "zarr_format": change.get("zarr_format", meta["zarr_format"])}, {})
        if change.get("zarr_format"):
            os.rename("z/zarr.json", "z/.zarray")
        refused(f"zarr {change}", run("run", "x; x", "z", "-o", "o.npy"), "z", *words)
    may = {"x": {"must_understand": False}, "attributes": {"a": 1}, "dimension_names": ["a", None]}
    for meta, name in (
        ({**V2, "x": 1}, "0.0"),
        ({**V3, **may}, "c/0/0"),
        ({**V3, "chunk_key_encoding": "v2"}, "0.0"),
        ({**V3, "chunk_key_encoding": "default"}, "c/0/0"),
    ):
        shutil.rmtree("z", True)
        write_zarr("z", meta, {name: first})
        out = run("run", "x; x", "z", "-o", "o.npy", "--mem", "1M")
        check(f"zarr {meta}", not out.returncode and elements("o.npy") == want, out.stderr)
    shutil.rmtree("z", True)
    write_zarr("z", V2, {"0.0": first[:8]})
    refused("a short chunk", run("run", "x; x", "z", "-o", "o.npy"), "z", "short")
    for name in "z/0.0", "z/.zarray":
        shutil.rmtree("z", True)
        write_zarr("z", V2, {})
        if os.path.exists(name):
            os.unlink(name)
        os.mkfifo(name)
        words = ["FIFO"] if name == "z/0.0" else []
        refused(f"a FIFO as {name}", run("run", "x; x", "z", "-o", "o.npy", timeout=60), "z", *words)
    os.unlink(name)
    put("a.npy", 16, 16)
    os.mkdir("full.zarr")
    open("full.zarr/x", "w").close()
    refused("a result that is there", run("run", "x; x", "a.npy", "-o", "full.zarr"), "there already")
    for text in (
        '{',
        '[]',
        '{"zarr_format": 2,}',
        '{"zarr_format": 02}',
        '\0',
        '{"a": "\\x"}',
        '{"a":1,"a":1}',
        '"' * 3,
        "[" * 100000,
        '{"zarr_format": 2e0}',
    ):
        open("z/.zarray", "w").write(text)
        refused(f"json {text[:20]!r}", run("run", "x; x", "z", "-o", "o.npy"), ".zarray")


def many_keys():
    """What describes an array may have a hundred thousand attributes."""
    more = {f"a{i}": 0 for i in range(100000)}
    write_zarr("z", {**V2, "attributes": more}, {})
    begin = time.monotonic()
    out = run("run", "x; x", "z", "-o", "o.npy", "--mem", "1M")
    check("many attributes", out.returncode == 0 and time.monotonic() - begin < 10, out.stderr)
    text = json.dumps({**V2, "a": more})
    open("z/.zarray", "w").write(text[:-1] + ', "order": "F"}')
    refused("a key twice", run("run", "x; x", "z", "-o", "o.npy", "--mem", "1M"), ".zarray")
    begin, end = json.dumps(V2)[:-1], "0" + ",0" * 7000000  # 14 MB: seven million values
    for what, text, words in (
        ("attributes", f'{begin}, "a": [{end}]}}', None),
        ("attributes' keys", f'{begin}, "a": {{"k": {{"s": [{end}, "\\u00e9\\n"]}}}}}}', None),
        ("attributes that are none", f'{begin}, "a": [{end}, 01]}}', ".zarray"),
        ("codecs", begin.replace('"filters": null', f'"filters": [{end}]') + "}", ".zarray"),
        ("a shape", begin.replace('"shape": ', f'"shape": [{end}], "s": ') + "}", ".zarray"),
    ):
        open("z/.zarray", "w").write(text)
        status, peak, said = peak_of("run", "x; x", "z", "-o", "o.npy", "--mem", "1M")
        good = status == 2 and words in said and said.count("\n") == 1 if words else status == 0
        check(f"long {what}", good and peak < 64 << 10, f"{status} {peak} {said}")


def make_big_zarr(meta, rows):
    """Chunks of one row of 4 KiB of random bytes."""
    data = random.Random(rows).randbytes(4096 * rows)
    shutil.rmtree("z", True)
    form = {**meta, "shape": [rows, 1024]}
    if meta is V2:
        form["chunks"] = [1, 1024]
    else:
        form["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": [1, 1024]}}
    name = "{}.0" if meta is V2 else "c/{}/0"
    write_zarr("z", form, {name.format(i): data[4096 * i :][:4096] for i in range(rows)})
    return data, name


def changes():
    """A chunk is changed, put in place of another one, or removed while it is waited for: one sentence, and
    the next run has the bytes of what is there then."""
    rows = 512
    line = ["run", "x; x", "z", "-o", "o.npy", "--mem", "1M", "--tile", "8K"]

    def write(path):
        with open(path, "r+b") as f:
            f.write(b"!" * 4096)
        return b"!" * 4096

    def put_in_place(path):
        with open("new", "wb") as f:
            f.write(b"?" * 4096)
        os.utime("new", (1, 1))
        os.rename("new", path)
        return b"?" * 4096

    def remove(path):
        os.unlink(path)
        return struct.pack("<i", 7) * 1024

    def swap(path):
        os.rename(os.path.dirname(path), "gone")
        os.rename("spare", os.path.dirname(path))
        shutil.rmtree("gone")
        return b"#" * 4096

    data, name = make_big_zarr(V2, rows)
    for ahead in 3600, -3600:
        out = run(*line, env={"LD_PRELOAD": SHIM, "XT_SHIM_AHEAD": str(ahead)})
        good = not out.returncode and elements("o.npy") == data
        check(f"files of a clock {ahead} s ahead", good, out.stderr)
        os.unlink("o.npy")
    ways = [(write, 0), (write, 3600), (write, -3600), (put_in_place, 0), (remove, 0)]
    for meta, change, ahead in [(m, *way) for m in (V2, V3) for way in ways + [(swap, 0)] * (m is V3)]:
        data, name = make_big_zarr(meta, rows)
        os.makedirs("spare", exist_ok=True)
        open("spare/0", "wb").write(b"#" * 4096)
        path = "z/" + name.format(rows - 1)
        p = subprocess.Popen(
            [XT, *line],
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "LD_PRELOAD": SHIM,
                "XT_SHIM": "pread SLOW 0",
                "XT_SHIM_AHEAD": str(ahead),  # the clock of a file server
            },
        )
        while not os.path.exists("o.npy.xt-data"):
            time.sleep(0.001)
        time.sleep(0.05)
        last = change(path)
        error = p.communicate()[1]
        good = p.returncode == 2 and error == "xt: z: was changed while it was read\n"
        what = f"{change.__name__} of a chunk, format {meta['zarr_format']}, clock {ahead}"
        check(what, good and not os.path.exists("o.npy") and not left(), f"{p.returncode} {error!r}")
        again = run(*line)
        check(what + ", again", not again.returncode, again.stderr)
        check(what + ", its bytes", elements("o.npy") == data[:-4096] + last)
        os.unlink("o.npy")


def package():
    """Beside the zarr package, both ways."""
    try:
        import numpy as np
        import zarr
    except ImportError:
        print("skipped: no zarr package for this Python: what it reads and writes")
        return
    new = int(zarr.__version__.split(".")[0]) >= 3
    rng = np.random.default_rng(3)
    for k in range(40):
        kind = ["f4", "f8", "i2", "u1", "?", "c8", "f2", "i8"][k % 8]
        shape = tuple(int(n) for n in rng.integers(1, 40, rng.integers(1, 4)))
        chunks = tuple(int(rng.integers(1, n + 1)) for n in shape)
        a = (
            rng.integers(0, 2, shape).astype(kind)
            if kind == "?"
            else rng.integers(-99, 99, shape).astype(kind)
        )
        for path in ("p.zarr", "q.zarr", "n.npy"):
            shutil.rmtree(path, True) if os.path.isdir(path) else os.path.exists(path) and os.unlink(path)
        version = 3 if new and k % 2 else 2
        if new:
            z = zarr.create_array(
                "p.zarr",
                shape=shape,
                chunks=chunks,
                dtype=a.dtype,
                zarr_format=version,
                compressors=None,
                filters=None if version == 2 else (),
                fill_value=0,
            )
        else:
            z = zarr.open(
                "p.zarr",
                mode="w",
                shape=shape,
                chunks=chunks,
                dtype=a.dtype,
                compressor=None,
                fill_value=0,
                order="CF"[k % 3 == 0],
            )
        z[...] = a
        axes = [int(i) for i in rng.permutation(len(shape))]
        b = a.transpose(axes)[::-1]
        line = f"x; x.permute({','.join(map(str, axes))})[::-1]"
        cut = ",".join(str(int(rng.integers(1, n + 1))) for n in b.shape)
        out = run("run", line, "p.zarr", "-o", "n.npy", "--mem", "2M", "--tile", "1K")
        check(
            f"of zarr {version}: {line} {kind}",
            not out.returncode and np.array_equal(np.load("n.npy"), b),
            out.stderr,
        )
        out = run(
            "run",
            line,
            "p.zarr",
            "-o",
            "q.zarr",
            "--mem",
            "2M",
            "--tile",
            "1K",
            "--chunks",
            cut,
            "--zarr",
            str(version),
        )
        check(
            f"into zarr {version}: {line} {kind}",
            not out.returncode and np.array_equal(zarr.open("q.zarr", mode="r")[...], b),
            out.stderr,
        )


def main():
    names = sys.argv[3:] or [
        "forms", "zarrs", "many_keys", "changes", "package", "faults", "parts", "journals", "inputs",
        "variables", "links", "owners", "late", "memory", "prices", "predictions", "kept", "kills"
    ]
    with tempfile.TemporaryDirectory() as d:
        os.chdir(d)
        os.environ["XT_CACHE_DIR"] = d + "/cache"
        for name in names:
            os.mkdir(name)
            os.chdir(name)
            globals()[name]()
            os.chdir(d)
            shutil.rmtree(name)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
