"""cover_check.py: how much of the library the tests reach, by clang's source coverage: branches, and
conditions that alone decided (MC/DC). `make check-cover` builds and calls it.

  cover_check.py TEST..            runs the tests, compares with tests/coverage.json: a file in which more
                                   goes unreached than the table allows fails
  cover_check.py --update TEST..   writes the table anew
  cover_check.py --show FILE       the lines of a file on which something was not reached, of the last run
  cover_check.py --why             what was not reached in the last run, by reason; what has none

B: build directory with the instrumented library. What is not reached, and why: tests/coverage-exceptions.md;
tests/coverage-rules.txt gives places their reason, by file and words of a line. A place without one fails. A
few branches depend on the machine and on timing (threads, locks): a file may vary by SLACK.
"""
import collections
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile

B = os.environ.get("B", "build/cover")
LIB, DATA, TABLE = f"{B}/libxtview.so.0", f"{B}/all.profdata", "tests/coverage.json"
RULES = "tests/coverage-rules.txt"
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


def places():
    """Each side of a branch and each condition (MC/DC) that was not reached: (file, line, what, source)."""
    out = subprocess.run(["llvm-cov-19", "export", LIB, f"-instr-profile={DATA}"] +
                         [f"runtime/{layer}" for layer in LAYERS], capture_output=True, text=True, check=True)
    for f in json.loads(out.stdout)["data"][0]["files"]:
        name = f["filename"].split("/runtime/")[-1].removeprefix("runtime/")
        with open("runtime/" + name) as source:
            lines = [""] + source.read().split("\n")
        text = lambda first, last: " ".join(line.strip() for line in lines[first:last + 1])
        for line, _, end, _, true, false, *_ in f["branches"]:
            for count, side in (true, "true"), (false, "false"):
                if not count:
                    yield name, line, side, text(line, end)
        for line, _, end, *_, conditions in f.get("mcdc_records", []):
            for i, reached in enumerate(conditions):
                if not reached:
                    yield name, line, f"condition {i + 1}", text(line, end)


def reasons():
    """[(letter, files, words of the line)], in the order in which they are asked."""
    with open(RULES) as f:
        rows = [line.rstrip("\n").split(None, 2) for line in f if line.strip() and line[0] != "#"]
    return [(letter, files, re.compile(words)) for letter, files, words in rows]


def why(found, rules):
    """({letter: places}, places without a reason, rules that nothing needs)."""
    by, none, used = collections.Counter(), [], set()
    for p in found:
        rule = next((r for r in rules if fnmatch.fnmatch(p[0], r[1]) and r[2].search(p[3])), None)
        by.update([rule[0]] if rule else [])
        used.add(rule)
        if not rule:
            none.append(p)
    return by, none, [r for r in rules if r not in used]


def show_reasons():
    found = list(places())
    by, none, idle = why(found, reasons())
    print("reasons: " + ", ".join(f"{letter} {n}" for letter, n in sorted(by.items())), "none", len(none))
    for name, line, what, text in none:
        print(f"{name}:{line}: {what}: no reason: {text[:120]}")
    for letter, files, words in idle:
        print(f"note: rule {letter} {files} {words.pattern}: nothing needs it")
    return len(none)


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
    if args[:1] == ["--why"]:
        sys.exit(1 if show_reasons() else 0)
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
    none = show_reasons()
    print(f"{len(files) - len(worse)} passed, {len(worse) + len(failed) + none} failed")
    sys.exit(1 if worse or failed or none else 0)


main(sys.argv[1:])
