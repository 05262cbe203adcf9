"""cli_files.py: `xt run` on files, pipes and terminals, killed and starved.

    cli_files.py build/xt      ends with "N passed, N failed"
"""
import ctypes
import errno
import glob
import os
import pty
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time

XT = os.path.abspath(sys.argv[1])
SANITIZED = b"__asan_init" in open(XT, "rb").read()  # shadow memory is not the command's
results = {True: 0, False: 0}
GIB = 1 << 30


def check(name, ok, *why):
    results[bool(ok)] += 1
    if not ok:
        print("FAILED:", name, *why)


def npy(path, shape, data=None, descr="|u1", fortran=False, size=None):
    """A .npy file; without data its elements are a hole."""
    head = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head)
        if data is not None:
            f.write(data)
        else:
            f.truncate(f.tell() + size)


def elements(path_or_bytes):
    b = path_or_bytes if isinstance(path_or_bytes, bytes) else open(path_or_bytes, "rb").read()
    return b[10 + struct.unpack("<H", b[8:10])[0]:]


def run(*args, **kw):
    """(status, stdout, stderr) of the command."""
    p = subprocess.run([XT, "run", *args], capture_output=True, timeout=120, **kw)
    return p.returncode, p.stdout, p.stderr.decode(errors="surrogateescape")


def refused(name, words, *args, **kw):
    status, out, err = run(*args, **kw)
    check(name, status == 2 and not out and err.count("\n") == 1 and all(w in err for w in words.split("|")),
          status, err)


both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def same(a, b):
    return open(a, "rb").read() == open(b, "rb").read()


def peak_mb(*args):
    """Megabytes that a run took at most."""
    code = ("import resource, subprocess, sys\n"
            "s = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
            "print(s, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n")
    p = subprocess.run([sys.executable, "-c", code, XT, "run", *args], capture_output=True, text=True)
    status, kb = map(int, p.stdout.split())
    return 1e9 if status else kb / 1024


def on_terminal(*args, wait=60):
    """(status, what the terminal shows) of the command with stdout and stderr on one."""
    main, side = pty.openpty()
    p = subprocess.Popen([XT, *args], stdin=subprocess.DEVNULL, stdout=side, stderr=side)
    os.close(side)
    shown = b""
    while True:
        try:
            b = os.read(main, 65536)
        except OSError:
            break
        if not b:
            break
        shown += b
    os.close(main)
    return p.wait(wait), shown.decode(errors="replace")


def temps():
    return glob.glob(".xt-*.tmp")


def begun(chain, *args, path="out.npy"):
    """A run that writes, and takes long."""
    p = subprocess.Popen([XT, "run", chain, *args, "-o", path], stderr=subprocess.PIPE)
    for _ in range(2000):
        if temps() and os.path.getsize(temps()[0]) > 1 << 20:
            return p
        time.sleep(0.005)
    return p


SIX = bytes(range(1, 7))
for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:  # a shell without job control has ignored
    signal.signal(number, signal.SIG_DFL)
LONG = "x; x.expand(64,1024,1024,1024)"  # of one byte: 64 GiB


def pipes():
    npy("a.npy", (2, 3), SIX)
    raw = open("a.npy", "rb").read()
    for name, kw in ("a pipe", {"input": raw}), ("a redirection", {"stdin": open("a.npy", "rb")}):
        status, out, err = run("x; x.T", "-", "-o", "-", **kw)
        check(f"{name} in, a pipe out", (status, elements(out)) == (0, bytes([1, 4, 2, 5, 3, 6])), err)
    status, out, _ = run("x; x", "-", "-o", "-", input=raw[:-1])
    check("a pipe that is cut short", status == 2, status)
    refused("and says so", "standard input|cut short", "x; x", "-", "-o", "o.npy", input=raw[:-1])
    check("no output then", not os.path.exists("o.npy") and not temps())
    refused("a pipe with more", "standard input|more follow", "x; x", "-", "-o", "o.npy", input=raw + b"x")
    refused("no array in a pipe", "standard input|.npy", "x; x", "-", "-o", "o.npy", input=b"1,2,3\n")
    refused("standard input twice", "twice", "x; y; concat(0, x, y)", "-", "-", "-o", "o.npy", input=raw)
    os.mkfifo("fifo")
    writer = subprocess.Popen(["sh", "-c", "cat a.npy > fifo"])
    status, out, err = run("x; x", "fifo", "-o", "-")
    check("a named pipe", status == 0 and elements(out) == SIX, err)
    writer.wait()
    reader = subprocess.Popen(["cat", "fifo"], stdout=subprocess.PIPE)
    status, _, err = run("x; x", "a.npy", "-o", "fifo")
    check("into a named pipe", status == 0 and elements(reader.communicate()[0]) == SIX, err)
    check("it stays one", stat.S_ISFIFO(os.stat("fifo").st_mode))
    status, _, err = run("x; x", "a.npy", "-o", "/dev/null")
    check("into a device", status == 0 and stat.S_ISCHR(os.stat("/dev/null").st_mode), err)
    status, out, err = run("x: u8[2,3]; x -> [2,3]:[4,1]+1", "a.npy", "-o", "-")
    check("a layout into a pipe", elements(out) == b"\0\1\2\3\0\4\5\6", err)
    p = subprocess.Popen([XT, "run", LONG, "one.npy", "-o", "-"], **both)
    p.stdout.read(1000)
    p.stdout.close()
    check("a reader that goes", p.wait(60) in (2, -signal.SIGPIPE))
    refused("a directory", "is a directory", "x; x", ".", "-o", "o.npy")
    refused("output is a directory", "is a directory", "x; x", "a.npy", "-o", ".")
    refused("a full device", "/dev/full|No space left", "x; x", "a.npy", "-o", "/dev/full")


def no_room():
    """Told before the disk is full of it, where a file system can reserve room."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("probe", "wb") as f:
        refuses = libc.fallocate(f.fileno(), 1, ctypes.c_int64(0), ctypes.c_int64(1 << 53))
    os.remove("probe")
    if not refuses or ctypes.get_errno() not in (errno.ENOSPC, errno.EFBIG):
        print("skipped: a result that no disk has room for: the file system does not tell")
        return
    huge = f"x; x.expand(1,1,1,{1 << 53})"
    refused("more than the disk has", "big.npy: cannot be written", huge, "one.npy", "-o", "big.npy")
    check("nothing of it is left", not glob.glob("big.npy") and not glob.glob(".xt-*"))
    status, _, err = run("x; x.expand(1,1,1,40000001)", "one.npy", "-o", "big.npy")
    st = os.stat("big.npy")
    check("what is reserved is what is written", status == 0 and st.st_size == 128 + 40000001, err)
    check("and no more", st.st_blocks * 512 <= st.st_size + 8192, st.st_blocks)
    os.remove("big.npy")


def terminals():
    status, shown = on_terminal("run", "x; x", "a.npy", "-o", "-")
    check("no array on a terminal", status == 2 and "terminal" in shown and "NUMPY" not in shown, shown)
    status, shown = on_terminal("run", "x; x", "a.npy", "-o", "-", "-f")
    check("but with -f", status == 0 and "NUMPY" in shown, shown)
    status, shown = on_terminal("run", "x; x", "a.npy", "-o", "t.npy")
    check("a short run draws nothing", status == 0 and not shown, shown)
    wide = "x; x.expand(96,1024,1024,1024)"
    status, shown = on_terminal("run", wide, "one.npy", "-o", "/dev/null")
    lines = shown.split("\r")
    bar = r"\] +\d+ %  \d+\.\d of 103\.1 GB, .* GB/s  \d+:\d\d left"
    check("a long one a bar", status == 0 and re.search(bar, shown), shown[-300:])
    check("that fits a line", max(map(len, lines)) <= 79)
    check("and is cleared", lines[-1] == "" and lines[-2].strip() == "")
    p = subprocess.run([XT, "run", wide, "one.npy", "-o", "/dev/null"], capture_output=True)
    check("elsewhere there is none", p.returncode == 0 and not p.stderr, p.stderr)
    status, out, err = run("x; x.T", "a.npy", "-o", "o.npy", "-v")
    check("-v", status == 0 and re.match(r"xt: u8\[3,2\] by a \w+.*: .* GB/s", err) and not out, err)


def memory():
    npy("big.npy", (10, 1024, 1024, 1024), descr="<f4", size=40 * GIB)
    mb = peak_mb("x; x[0,0,0:4]", "big.npy", "-o", "o.npy")
    check("16 KB of 40 GiB take megabytes", mb < 64 or SANITIZED, mb)
    mb = peak_mb("x; x[9,1000:,1000,::-1]", "big.npy", "-o", "o.npy")
    check("also at its end", mb < 64 or SANITIZED, mb)
    mb = peak_mb("x; x.expand(2,1024,1024,1024)", "one.npy", "-o", "/dev/null")
    check("2 GiB of result take megabytes", mb < 96 or SANITIZED, mb)
    os.remove("big.npy")


def parts():
    """A result of many parts is the same as that of one."""
    data = bytes(i * 7 % 251 for i in range(251 * 16))
    npy("w.npy", (251, 16), data)
    chain = "x; x.expand(23,120,251,16).permute(1,3,0,2).pad((1,0),(0,1),(2,0),(0,3))"  # 24 MB
    status, _, err = run(chain, "w.npy", "-o", "many.npy")
    reference = run(chain, "w.npy", "-o", "one_part.npy", "--backend", "ref")
    check("parts", status == reference[0] == 0 and same("many.npy", "one_part.npy"), err, reference[2])
    layout = " -> [121,17,25,254]:[107984,6350,254,1]+77"
    for name, backend in ("many.npy", "cpu"), ("one_part.npy", "ref"):
        os.remove(name)
        status, _, err = run(chain + layout, "w.npy", "-o", name, "--backend", backend)
        check(f"with a layout, {backend}", status == 0, err)
    check("are the same", same("many.npy", "one_part.npy"))
    os.environ["XT_MEASURE"] = "1"
    status, _, err = run("x; x.T", "w.npy", "-o", "o.npy")
    del os.environ["XT_MEASURE"]
    check("measured", status == 0, err)


def destinations():
    npy("k.npy", (2, 2, 3, 1), bytes(range(1, 13)))
    chain = "k: u8[2,2,3,1]; k.permute(0,2,1,3) -> [2,3,2,1]:[10,2,1,1]+2"
    npy("cache.npy", (2, 5, 2, 1), b"\x63" * 20)
    status, _, err = run(chain, "k.npy", "-o", "cache.npy")
    want = bytes([99, 99, 1, 4, 2, 5, 3, 6, 99, 99, 99, 99, 7, 10, 8, 11, 9, 12, 99, 99])
    check("a file of 4 dims is a destination", status == 0 and elements("cache.npy") == want, err)
    check("and keeps its shape", b"(2, 5, 2, 1)" in open("cache.npy", "rb").read())
    npy("cache.npy", (2, 2, 2, 1), b"\x63" * 8)
    refused("too small", "u8[2,2,2,1]|18 elements", chain, "k.npy", "-o", "cache.npy")
    npy("cache.npy", (2, 5, 2, 1), b"\x63" * 20, fortran=True)
    refused("column-major", "column-major", chain, "k.npy", "-o", "cache.npy")
    npy("cache.npy", (20,), b"\x63" * 40, descr="<f2")
    refused("another type", "f16|u8", chain, "k.npy", "-o", "cache.npy")
    status, _, err = run("x: u8[3,2]:[1,3]+1; x", "k.npy", "-o", "o.npy")
    check("own strides: any file large enough", elements("o.npy") == bytes([2, 5, 3, 6, 4, 7]), err)
    npy("f.npy", (2, 3), SIX, fortran=True)
    status, _, err = run("x; x[:, ::-1]", "f.npy", "-o", "o.npy")
    check("column-major input", elements("o.npy") == bytes([5, 3, 1, 6, 4, 2]), err)
    refused("column-major input with strides", "column-major|x", "x: u8[3,2]:[1,3]; x", "f.npy", "-o",
            "o.npy")
    npy("h.npy", (3 << 20,), size=3 << 20)
    status, _, err = run("k: u8[2,2,3,1]; k -> [2,2,3,1]:[6,3,1,1]+1000000", "k.npy", "-o", "h.npy")
    check("holes stay holes", status == 0 and elements("h.npy")[1000000:1000012] == bytes(range(1, 13))
          and os.stat("h.npy").st_blocks < 1024, err, os.stat("h.npy").st_blocks)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def modes():
    for m in 0o600, 0o640, 0o666, 0o444:
        npy("m.npy", (1,), b"x")
        os.chmod("m.npy", m)
        status, _, err = run("x; x", "a.npy", "-o", "m.npy")
        check(f"mode {m:o} stays", (status, mode("m.npy"), elements("m.npy")) == (0, m, SIX), err)
    for mask in 0o022, 0o077, 0o002:
        if os.path.exists("n.npy"):
            os.remove("n.npy")
        run("x; x", "a.npy", "-o", "n.npy", umask=mask)
        check(f"a new file's mode is umask {mask:o}'s", mode("n.npy") == 0o666 & ~mask, oct(mode("n.npy")))
    os.chmod("m.npy", 0o666)
    p = begun(LONG, "one.npy", path="m.npy")
    check("meanwhile nobody else may read it", [mode(t) for t in temps()] == [0o600], temps())
    p.kill()
    p.wait()
    if os.geteuid() == 0:
        os.chown("m.npy", 12345, 54321)
        run("x; x", "a.npy", "-o", "m.npy")
        check("owner and group stay", (os.stat("m.npy").st_uid, os.stat("m.npy").st_gid) == (12345, 54321))
    os.symlink("m.npy", "link.npy")
    run("x; x.T", "a.npy", "-o", "link.npy")
    check("a link stays one", os.path.islink("link.npy") and elements("m.npy") == bytes([1, 4, 2, 5, 3, 6]))
    check("the next run has swept what kill -9 left", not temps(), temps())


def ends():
    for sig in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        npy("out.npy", (6,), SIX)
        p = begun(LONG, "one.npy")
        check(f"{sig.name}: has begun", len(temps()) == 1)
        p.send_signal(sig)
        check(f"{sig.name} ends it", p.wait(30) == -sig, p.returncode)
        check(f"{sig.name} leaves nothing, and the old file", not temps() and elements("out.npy") == SIX)
    no_hup = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"]
    p = subprocess.Popen([*no_hup, XT, "run", LONG, "one.npy", "-o", "out.npy"])
    while not temps():
        time.sleep(0.01)
    p.send_signal(signal.SIGHUP)
    time.sleep(0.1)
    check("nohup", p.poll() is None and len(temps()) == 1)
    other = temps()
    run("x; x", "a.npy", "-o", "b.npy")
    check("a run that lives is not swept", temps() == other)
    p.kill()
    p.wait()
    check("kill -9 leaves a file", temps() == other)
    for name in ".xt-0123456789abcdef.tmp", ".xt-0123456789abcdeF.tmp", ".xt-a.tmp", "xt-0.tmp":
        open(name, "w").close()
    os.symlink("a.npy", ".xt-00000000000000aa.tmp")
    os.mkdir(".xt-00000000000000bb.tmp")
    run("x; x", "a.npy", "-o", "b.npy")
    check("which the next run sweeps, and no other name",
          sorted(temps()) == [".xt-00000000000000aa.tmp", ".xt-00000000000000bb.tmp",
                              ".xt-0123456789abcdeF.tmp", ".xt-a.tmp"]
          and os.path.exists("xt-0.tmp"), temps())
    check("the old file is there", elements("out.npy") == SIX)
    for name in temps():
        os.rmdir(name) if os.path.isdir(name) else os.remove(name)
    refused("a file too large", "out.npy|File too large", LONG, "one.npy", "-o", "out.npy",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20)))
    check("leaves nothing", not temps() and elements("out.npy") == SIX)


def shrinks():
    """A file that is cut short while it is read."""
    npy("s.npy", (1 << 30,), size=1 << 30)
    p = subprocess.Popen([XT, "run", "x; x", "s.npy", "-o", "-"], **both)
    p.stdout.read(1000)
    os.truncate("s.npy", 4096)
    out, err = p.communicate(timeout=60)
    check("is a sentence", p.returncode == 2 and re.fullmatch(b"xt: s.npy: was cut short.*\n", err),
          p.returncode, err)
    npy("s.npy", (1 << 30,), size=1 << 30)
    p = begun("x; x.expand(64,1073741824)", "s.npy")
    os.truncate("s.npy", 4096)
    err = p.communicate(timeout=60)[1]
    check("and leaves nothing", (p.returncode, temps(), elements("out.npy")) == (2, [], SIX), err)
    os.remove("s.npy")


def shown_safely(name, err):
    text = err.encode(errors="surrogateescape").decode(errors="replace")
    bad = [c for c in text if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160 or c == "\ufffd"]
    check(name, text and not bad, repr(err))


def hostile():
    evil = b"\x1b[31m\x07\x7f\xc2\x9b2J\x9b\xff\n\t".decode(errors="surrogateescape")
    for where in f"absent{evil}.npy", f"{evil}/o.npy":
        shown_safely("a file name", run("x; x", where, "-o", "o.npy")[2])
        shown_safely("an output's name", run("x; x", "a.npy", "-o", f"nowhere/{where}")[2])
    for key in "descr", "fortran_order", "shape", "color":
        header = {"descr": "'<f4'", "fortran_order": "False", "shape": "(2,)"}
        header[key] = repr("x").replace("x", evil.replace("\n", ""))
        text = "{" + ", ".join(f"'{k}': {v}" for k, v in header.items()) + "}"
        b = text.encode(errors="surrogateescape")
        open("e.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(b)) + b + bytes(8))
        shown_safely(f"a header's {key}", run("x; x", "e.npy", "-o", "o.npy")[2])
    shown_safely("a chain", run(f"x; x.{evil}(1)", "a.npy", "-o", "o.npy")[2])
    open("w.txt", "w", errors="surrogateescape").write(evil.replace("\n", "") + " | w | x: u8[8]; x\n")
    one = {**os.environ, "XT_THREADS": "1"}
    p = subprocess.run([XT, "bench", "-q", "w.txt"], capture_output=True, env=one)
    shown_safely("a workload's name", p.stdout.decode(errors="surrogateescape"))
    p = subprocess.run([XT, evil], capture_output=True)
    shown_safely("a command", p.stderr.decode(errors="surrogateescape"))
    shown_safely("an option", run(f"--{evil}")[2])
    for size in 0, 1, 5, 7:
        open("e.npy", "wb").write(b"\x93NUMPY\1"[:size])
        refused(f"a file of {size} bytes", "e.npy|no .npy file", "x; x", "e.npy", "-o", "o.npy")
    for shape in "(04, 6)", "(2, 3", "2", "(-1,)", "(2.5,)", "(1e3,)":
        b = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
        open("e.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(b)) + b + bytes(24))
        refused(f"shape {shape}", "e.npy|shape", "x; x", "e.npy", "-o", "o.npy")


def unnamed():
    """Names that are none, and numbers that are some only at their beginning."""
    npy("a.npy", (2, 3), SIX)
    for option in "-o", "--output":
        refused(f"{option} ''", "run: --output is given nothing: as in --output OUT.npy", "x; x", "a.npy",
                option, "")
    refused("an input ''", "xt: '': No such file", "x; x", "", "-o", "o.npy")
    refused("an input '' in tiles", "input 0 has no name", "x; x", "", "-o", "o.npy", "--mem", "1M")
    emit = "emit", "x: f32[4]; x", "--arch"
    for said, args in [("--dir is given nothing", [*emit, "sm_90", "--dir", ""]),
                       ("--arch is given nothing", [*emit, "", "--dir", "d"]),
                       ("--svg is given nothing", ["explain", "x: f32[4]; x", "--svg", ""]),
                       ("--html is given nothing", ["bench", "--html", ""]),
                       ("--at: '16 bytes' is not 0 to 4096", ["bench", "--at", "16 bytes"]),
                       ("--at: '99999999999' is not 0 to 4096", ["bench", "--at", "99999999999"]),
                       ("40 architectures, at most 32",
                        ["pack", "l.txt", "-a", ",".join(["sm_90"] * 40), "-o", "p"])]:
        p = subprocess.run([XT, *args], capture_output=True, timeout=60)
        check(said, p.returncode == 2 and said in p.stderr.decode() and not p.stdout, args, p)


def has_terminals():
    try:
        for fd in pty.openpty():
            os.close(fd)
        return True
    except OSError as e:
        print(f"skipped: terminals: {e}")
        return False


def main():
    os.environ.setdefault("XT_CACHE_DIR", "")
    home, scratch = os.getcwd(), tempfile.mkdtemp(prefix="xt-cli-")
    os.chdir(scratch)
    try:
        npy("one.npy", (1, 1, 1, 1), b"\7")
        for part in (pipes, no_room, terminals, memory, parts, destinations, modes, ends, shrinks, hostile,
                     unnamed):
            if part != terminals or has_terminals():
                part()
            check(f"{part.__name__}: nothing is left", not temps(), temps())
    finally:
        os.chdir(home)
        shutil.rmtree(scratch)
    print(f"{results[True]} passed, {results[False]} failed")
    return results[False] != 0


if __name__ == "__main__":
    sys.exit(main())
