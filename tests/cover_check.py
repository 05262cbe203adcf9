"""cover_check.py: how much of the library the tests reach, by clang's source coverage: branches, and
conditions that alone decided (MC/DC). `make check-cover` builds and calls it.

  cover_check.py TEST..            runs the tests, compares with tests/coverage.json: a file in which more
                                   goes unreached than the table allows fails
  cover_check.py --update TEST..   writes the table anew
  cover_check.py --show FILE       the lines of a file on which something was not reached, of the last run

B: build directory with the instrumented library. What is not reached, and why: tests/coverage-exceptions.md.
A few branches depend on the machine and on timing (threads, locks): a file may vary by SLACK.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

B = os.environ.get("B", "build/cover")
LIB, DATA, TABLE = f"{B}/libxtview.so.0", f"{B}/all.profdata", "tests/coverage.json"
LAYERS = ["base", "graph", "map", "plan", "cache", "api"]
KINDS = ["lines", "branches", "mcdc"]
SLACK = 3


def run_tests(tests):
    """Runs each test alone, with a cache of its own; the profiles are merged into DATA."""
    failed = []
    with tempfile.TemporaryDirectory() as d:
        for t in tests:
            env = dict(os.environ, B=B, LLVM_PROFILE_FILE=f"{d}/{os.path.basename(t)}-%4m.profraw",
                       XT_PACK="", XT_CACHE_DIR=f"{d}/cache")
            if subprocess.run([t], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
                failed.append(os.path.basename(t))
        raw = [f"{d}/{f}" for f in sorted(os.listdir(d)) if f.endswith(".profraw")]
        subprocess.run(["llvm-profdata-19", "merge", "-sparse", "-o", DATA] + raw, check=True)
    return failed


def measure():
    """{"map/pull.c": {"lines": [not reached, all], ..}, ..}"""
    out = subprocess.run(["llvm-cov-19", "export", "-summary-only", LIB, f"-instr-profile={DATA}"] +
                         [f"runtime/{layer}" for layer in LAYERS], capture_output=True, text=True, check=True)
    files = {}
    for f in json.loads(out.stdout)["data"][0]["files"]:
        s = f["summary"]
        files[f["filename"].split("/runtime/")[-1]] = {
            k: [s[k]["count"] - s[k]["covered"], s[k]["count"]] for k in KINDS}
    return files


def totals(files):
    for layer in LAYERS + [""]:
        mine = [f for name, f in files.items() if name.startswith(layer)]
        row = [[sum(f[k][i] for f in mine) for i in (0, 1)] for k in KINDS]
        print(f"{layer or 'all':8}" + "".join(f"{k:>10} {100 - 100 * n / max(t, 1):6.2f} % ({n} of {t} not)"
                                              for k, (n, t) in zip(KINDS, row)))


def compare(files, table):
    worse = []
    for name, f in sorted(files.items()):
        for k in KINDS[1:]:
            allowed = table.get(name, {}).get(k, [0, 0])[0]
            if f[k][0] > allowed + SLACK:
                worse.append(f"{name}: {f[k][0]} {k} not reached, {allowed} in the table")
    return worse


def show(path):
    out = subprocess.run(["llvm-cov-19", "show", "-show-branches=count", "-show-mcdc", LIB,
                          f"-instr-profile={DATA}", path], capture_output=True, text=True, check=True).stdout
    source = ""
    for line in out.split("\n"):
        if re.match(r" *\d+\| ", line):
            source = line
            if re.match(r" *\d+\| +0\|", line):
                print(line)
        elif re.search(r"Branch .*(True|False): 0\b", line) or re.search(r"C\d+-Pair: not covered", line):
            if source:
                print(source)
                source = ""
            print(line)


def main(args):
    if args[:1] == ["--show"]:
        return show(args[1])
    update = args[:1] == ["--update"]
    failed = run_tests(args[update:])
    files = measure()
    totals(files)
    for t in failed:
        print(f"{t} failed")
    if update:
        with open(TABLE, "w") as f:
            f.write("{\n" + ",\n".join(f'"{n}": {json.dumps(files[n])}' for n in sorted(files)) + "\n}\n")
        return
    with open(TABLE) as f:
        worse = compare(files, json.load(f))
    for line in worse:
        print(line)
    print(f"{len(files) - len(worse)} passed, {len(worse) + len(failed)} failed")
    sys.exit(1 if worse or failed else 0)


main(sys.argv[1:])
