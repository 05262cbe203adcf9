#!/usr/bin/env python3
"""What needs a GPU, in one program and under eight minutes: `make gpu-check`.

    gpu_check.py [--seconds 460] [--small] [--out DIR] [--double LIBRARY] [--parts equal,times,..]
                 [--commit NAME]

First that copies on the device are byte for byte the reference's, then times: each part has a share of the
seconds, hands on what it does not need, and says what it left out. Writes DIR/gpu-NAME-COMMIT.json and a
table, .md, for README: how far the copies are from a device-to-device copy of as many bytes, and every row
where xt loses to a library that was timed in the same run. --small: small forms; --double: on the driver
double: then its name is "double", and no time is a GPU's. Exit status 3: no GPU here.
"""
import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

B = os.environ.get("B", "build")
CHECK = os.path.join(B, "tests", "gpu_check")
TTC, WORKLOADS = "bench/problems/ttc57.txt", "bench/workloads.txt"
WIDTHS = ("f32", "f16", "u8", "f64")
LARGE = 16 << 20  # bytes; what is smaller is in the caches of those who use one set of buffers


def answers(command, seconds, stdin=None):
    """Lines of JSON of a program; what it said otherwise is shown."""
    rows = []
    try:
        run = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, text=True, timeout=seconds + 30)
        out, status = run.stdout, run.returncode
    except subprocess.TimeoutExpired as e:
        out, status = (e.stdout or b"").decode(errors="replace"), "timeout"
    for line in out.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            print(line)
    if status:
        rows.append({"part": "status", "name": " ".join(command), "failed": f"exit status {status}"})
    return rows


class Run:
    def __init__(self, opt):
        self.opt, self.start, self.shares = opt, time.monotonic(), 0
        self.rows, self.parts = [], []

    def seconds(self, share):
        """The part's share, of all 100, and what others left."""
        self.shares += share
        return max(1, self.opt.seconds * self.shares / 100 - (time.monotonic() - self.start))

    def keep(self, part, begun, rows):
        rows = [dict(r, part=part) for r in rows]
        self.rows += rows
        done = {"part": part, "seconds": round(time.monotonic() - begun, 1),
                "left_out": sum(r.get("left_out", 0) for r in rows),
                "failed": sum("failed" in r and r["failed"] != 0 for r in rows)}
        self.parts.append(done)
        print(f"{part:10} {done['seconds']:6.1f} s, {len(rows):4} rows, {done['left_out']} left out, "
              f"{done['failed']} failed", flush=True)

    def command(self, seconds, *args):
        options = ["--small", "--samples", "3", "--random", "100"] if self.opt.small else []
        return [CHECK, *options, "--seconds", "%.1f" % seconds, *args]

    def check(self, share, part, *args, wrap=()):
        begun, seconds = time.monotonic(), self.seconds(share)
        if self.wanted(part):
            self.keep(part, begun, answers([*wrap, *self.command(seconds, *args)], seconds))

    def divided(self, share, part, *args):
        """The same, by as many processes as there are processors: what takes the time is compiles."""
        begun, seconds, n = time.monotonic(), self.seconds(share), min(16, os.cpu_count() or 1)
        if not self.wanted(part):
            return
        commands = [self.command(seconds, "--share", f"{i}/{n}", *args) for i in range(n)]
        with ThreadPoolExecutor(n) as pool:
            rows = sum(pool.map(lambda c: answers(c, seconds), commands), [])
        sums = {}
        for r in [r for r in rows if "passed" in r]:
            sums = {k: v if k == "part" else v + sums.get(k, 0) for k, v in r.items()}
        rows = [r for r in rows if "passed" not in r] + [sums] * bool(sums)
        self.keep(part, begun, rows)
        if sums:
            print(" ", *(f"{k} {v}" for k, v in sums.items() if k != "part"))

    def wanted(self, part):
        return not self.opt.parts or part in self.opt.parts.split(",")

    def sanitizer(self, share):
        tool, begun = shutil.which("compute-sanitizer"), time.monotonic()
        if not tool and self.wanted("sanitizer"):
            self.seconds(share)
            self.keep("sanitizer", begun, [{"part": "sanitizer", "missing": "compute-sanitizer"}])
        else:
            self.check(share, "sanitizer", "--random", "50", "equal", wrap=(tool, "--error-exitcode", "9"))

    def serving(self, share):
        begun, seconds, lines = time.monotonic(), self.seconds(share), []
        if not self.wanted("serving"):
            return
        program = os.path.join(B, "bench", "serving")
        try:
            lengths = ["--lengths", "40"] if self.opt.small else []
            run = subprocess.run([program, self.opt.double or "/nonexistent", *lengths],
                                 stdout=subprocess.PIPE, text=True, timeout=seconds + 60)
            lines = run.stdout.splitlines()
        except (OSError, subprocess.TimeoutExpired) as e:
            lines = [str(e)]
        self.keep("serving", begun, [{"part": "serving", "text": line} for line in lines])

    def peers(self, share):
        begun, seconds = time.monotonic(), self.seconds(share)
        if not self.wanted("peers"):
            return
        least = 0 if self.opt.small else LARGE
        mine = [r for r in self.rows if r.get("part") == "times" and r.get("bytes", -1) >= least]
        random.Random(1).shuffle(mine)  # what is timed until the time is over is a sample
        small = {line.split(" | ")[0]: line.strip().split(" | ")[-1] for path in (TTC, WORKLOADS)
                 for line in open(path) if line.count(" | ") == 3}
        text = ""
        for r in mine:  # "ttc21 f64": the small form is compared in that dtype
            name, _, dtype = r["name"].partition(" ")
            form = small.get(name, "")
            text += f"{r['name']}|{r['chain']}|{form.replace('f32[', dtype + '[') if dtype else form}\n"
        rows = answers([sys.executable, "tests/gpu_peers.py", "%.1f" % seconds], seconds, text)
        self.keep("peers", begun, rows)


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def put_group(out, what, rows):
    shares = [r["of_copy"] for r in rows if r.get("of_copy", 0) > 0]
    if shares:
        least = min(rows, key=lambda r: r["of_copy"])
        out.append(f"| {what} | {len(shares)} | {geomean(shares):.2f} | "
                   f"{least['of_copy']:.2f} ({least['name']}) |")


def losses(rows):
    """(row, peer, its microseconds) wherever a library is faster."""
    peers = {}
    for r in rows:
        if r.get("part") == "peers" and "us" in r:
            peers.setdefault(r["name"], []).append((r["us"], r["peer"]))
    timed = [r for r in rows if r.get("part") == "times" and "us" in r and r["name"] in peers]
    return [(r, *min(peers[r["name"]])) for r in timed if min(peers[r["name"]])[0] < r["us"]], len(timed)


def table(head, rows, parts):
    out = [f"Device: {head['device']}, sm_{head['sm']}, {head['processors']} processors, "
           f"driver {head['driver']}; commit {head['commit']}, {head['date']}."]
    if head["double"]:
        out.append("\n**On the driver double, in an interpreter: no time below is a GPU's.**")
    out += ["", "| chains | rows | of a device-to-device copy, geometric mean | least |", "|---|---|---|---|"]
    times = [r for r in rows if r.get("part") == "times" and "us" in r]
    for width in WIDTHS:
        put_group(out, f"57 transpositions, {width}", [r for r in times if r["name"].endswith(" " + width)])
    put_group(out, "workloads", [r for r in times if " " not in r["name"]])
    put_group(out, "workloads of 64 MB and more",
              [r for r in times if " " not in r["name"] and r["bytes"] >= 64 << 20])
    structure = [r for r in rows if r.get("part") == "structure" and "us" in r]
    put_group(out, "57 and workloads, code of structures", structure)
    put_group(out, "unaligned", [r for r in rows if r.get("part") == "unaligned" and "us" in r])
    put_group(out, "4 KB to 8 GB", [r for r in rows if r.get("part") == "sweep" and "us" in r])
    lost, n = losses(rows)
    out += ["", f"Rows where a library of the same run is faster: {len(lost)} of {n}."]
    if lost:
        out += ["", "| chain | xt, us | library | its us |", "|---|---|---|---|"]
        out += [f"| {r['name']} | {r['us']:.1f} | {peer} | {us:.1f} |" for r, us, peer in lost]
    out += [f"- {r['peer']}: {r['missing']}" for r in rows if r.get("part") == "peers" and "missing" in r]
    out += ["", "| on the host | us, median | p99 | max |", "|---|---|---|---|"]
    out += [f"| {r['name']} | {r['us']:.2f} | {r['p99']:.2f} | {r['max']:.2f} |"
            for r in rows if r.get("part") in ("launch", "compile") and "us" in r]
    out += ["", *("    " + r["text"] for r in rows if r.get("part") == "serving"), ""]
    out += [f"{p['part']}: {p['left_out']} rows left out, the time was over." for p in parts if p["left_out"]]
    return "\n".join(out) + "\n"


def commit():
    run = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], stdout=subprocess.PIPE, text=True)
    return run.stdout.strip() or "unknown"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=float, default=460)
    p.add_argument("--small", action="store_true")
    p.add_argument("--out", default="bench/results")
    p.add_argument("--double", default="")
    p.add_argument("--parts", default="")
    p.add_argument("--commit", default="")
    opt = p.parse_args()
    if opt.double:
        os.environ["XT_LIBCUDA"] = opt.double
    head = answers([CHECK, "device"], 60)
    if not head or "device" not in head[0]:
        print("nothing was checked")
        return 3
    head = {k: v for k, v in head[0].items() if k != "part"}
    head.update(commit=opt.commit or commit(), date=time.strftime("%Y-%m-%d"))
    head["double"] = head["device"] == "double"
    print(f"{head['device']}, sm_{head['sm']}: {opt.seconds:.0f} s")
    os.makedirs(opt.out, exist_ok=True)
    run, cache = Run(opt), tempfile.TemporaryDirectory()
    os.environ["XT_CACHE_DIR"] = cache.name
    lists = [f"{TTC}:{w}" for w in WIDTHS]
    run.divided(26, "equal", "equal")
    run.divided(7, "equal-structure", "--tier", "structure", "equal")
    run.divided(3, "equal-any", "--tier", "any", "equal")
    run.sanitizer(6)
    run.check(1, "launch", "launch")
    run.check(2, "compile", "compile")
    run.divided(6, "prepare", "prepare", *lists, WORKLOADS)
    run.check(3, "times", "times", *lists)
    run.check(1, "times", "times", WORKLOADS)
    run.divided(3, "prepare", "--tier", "structure", "prepare", lists[0], WORKLOADS)
    run.check(2, "structure", "--tier", "structure", "times", lists[0], WORKLOADS)
    run.check(6, "sweep", "sweep")
    run.check(2, "unaligned", "unaligned", WORKLOADS, lists[1])
    run.serving(3)
    run.peers(29)
    name = "".join(c if c.isalnum() else "-" for c in head["device"].lower())
    path = os.path.join(opt.out, f"gpu-{name}-{head['commit']}")
    text = table(head, run.rows, run.parts)
    with open(path + ".json", "w") as f:
        seconds = round(time.monotonic() - run.start, 1)
        json.dump(dict(head, seconds=seconds, parts=run.parts, rows=run.rows), f, indent=0)
    with open(path + ".md", "w") as f:
        f.write(text)
    failed = [r for r in run.rows if r.get("failed") and r.get("part") != "peers"]
    for r in failed:
        print("FAILED:", r.get("part"), r.get("name", ""), r["failed"])
    print(text + path + ".json")
    return failed != []


if __name__ == "__main__":
    sys.exit(main())
