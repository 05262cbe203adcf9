"""mutate.py: would the tests notice? Changes one operator, constant or statement of the library at a time,
builds, and runs the tests of that folder. A change that they let pass is a survivor: a test is missing, or
the change makes no difference, which tests/survivors.txt then says. `make mutation`.

  mutate.py FOLDER [N [SEED]]    N changes (100) of runtime/FOLDER, drawn by SEED (1): each has a place in a
                                 seed's order of its own, so that other code leaves the others drawn

B: build directory, of its own: its objects are overwritten. Ends with "N passed, N failed": changes that were
noticed or are explained, and those that are not. A change that gives the same machine code is not counted.
"""
import collections
import hashlib
import os
import re
import signal
import subprocess
import sys
import time

B = os.environ.get("B", "build/mutation")
SURVIVORS = "tests/survivors.txt"
TESTS = {
    "base": "base overlap lang api graph calls",
    "graph": "graph lang eval calls ends",
    "map": "fuse map sig widen index32 map_text eval inverse huge shard nasty",
    "cache": "cache memo pack_file",
    "plan": "plan cpu choice huge run",
}
SECONDS = 60  # a change may make a test endless: then it takes this much more, and four times what it took
TOO_LONG = 124
KERNELS = [] if sys.argv[1:2] == ["plan"] else ["ISAS=scalar"]  # to build sooner: these tests run few copies

# What stands, and what takes its place.
SWAPS = [
    (r"<=", "<"), (r">=", ">"), (r"(?<![<\-=])<(?![<=])", "<="), (r"(?<![>\-=])>(?![>=])", ">="),
    (r"==", "!="), (r"!=", "=="), (r"&&", "||"), (r"\|\|", "&&"), (r"(?<=[\w\])] )\+(?= )", "-"),
    (r"(?<=[\w\])] )-(?= )", "+"), (r"(?<=[\w\])] )\*(?= )", "+"), (r"(?<=[\w\])] )/(?= )", "*"),
    (r"(?<=[\w\])] )%(?= )", "/"), (r"\+=", "-="), (r"-=", "+="), (r"(?<![\w.])0(?![\w.])", "1"),
    (r"(?<![\w.])1(?![\w.])", "2"),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"!(?=[\w(])", ""), (r"\bcontinue;", ";"),
    (r"\bbreak;", ";"), (r"\+\+(?=\))", "+= 2"),
]


def code_only(text):
    """Comments, strings, characters and preprocessor lines as blanks of the same length."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'", blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#[^\n]*", blank, text, flags=re.M)


def changes(path):
    with open(path) as f:
        code = code_only(f.read())
    body = code.find("\n{")  # what stands before the first function is declarations
    return [(path, m.start(), m.end(), new) for old, new in SWAPS for m in re.finditer(old, code)
            if m.start() > body > 0]


def ends(p, seconds):
    """Its status; None: it goes on. A second in which the machine stands still counts once."""
    for _ in range(int(seconds)):
        try:
            return p.wait(timeout=1)
        except subprocess.TimeoutExpired:
            pass


def run(cmd, seconds=600):
    """Its status; TOO_LONG where it took so and was ended: Check ends its test, of a group of its own."""
    p = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    status = ends(p, seconds)
    if status is not None:
        return status
    p.terminate()
    if ends(p, 10) is None:
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
    return TOO_LONG


def make(*targets):
    return run(["make", "--no-print-directory", "-j2", f"B={B}", "PACK=no", "WARNINGS=-w", "CFLAGS=-O1"] +
               KERNELS + list(targets))


def object_of(path):
    with open(f"{B}/obj/{path[:-2]}.o", "rb") as f:
        return f.read()


def result_of(tests, limits):
    """Of the first test that fails."""
    for t in tests:
        status = run([f"{B}/tests/test_{t}"], limits[t])
        if status:
            return "endless" if status == TOO_LONG else "noticed"
    return "survived"


def describe(path, start, end, new, text):
    line = text.count("\n", 0, start) + 1
    left = text.rfind("\n", 0, start) + 1
    whole = text[left:text.find("\n", end)]
    return line, f"{path}: {whole.strip()} | {text[start:end]} -> {new or 'nothing'} at {start - left}"


def drawn_in_order(files, seed):
    """All changes, those of a line that stands there more than once told apart by their number."""
    seen, order = collections.Counter(), []
    for f in files:
        with open(f) as source:
            text = source.read()
        for c in changes(f):
            what = describe(*c, text)[1]
            seen[what] += 1
            order.append((hashlib.sha256(f"{seed} {what} {seen[what]}".encode()).digest(), c))
    return [c for _, c in sorted(order)]


def try_one(change, tests, limits, original):
    """'same', 'refused' (does not compile), 'noticed', 'endless' (noticed, too), or 'survived'."""
    path, start, end, new = change
    with open(path) as f:
        text = f.read()
    try:
        with open(path, "w") as f:
            f.write(text[:start] + new + text[end:])
        if make(f"{B}/obj/{path[:-2]}.o"):
            return "refused"
        if object_of(path) == original[path]:
            return "same"
        if make(*[f"{B}/tests/test_{t}" for t in tests]):
            return "refused"
        return result_of(tests, limits)
    finally:
        with open(path, "w") as f:
            f.write(text)


def main():
    folder, n, seed = sys.argv[1], int((sys.argv[2:] or [100])[0]), int((sys.argv[3:] or [1])[0])
    tests = TESTS[folder].split()
    files = [f"runtime/{folder}/{f}" for f in sorted(os.listdir(f"runtime/{folder}")) if f.endswith(".c")]
    os.environ["XT_CACHE_DIR"], os.environ["XT_PACK"] = os.path.abspath(f"{B}/cache"), ""
    if make(*[f"{B}/tests/test_{t}" for t in tests], "lib"):
        sys.exit("the unchanged library does not build")
    limits = {}
    for t in tests:
        begun = time.monotonic()
        if run([f"{B}/tests/test_{t}"]):
            sys.exit(f"test_{t} fails on the unchanged library")
        limits[t] = SECONDS + 4 * (time.monotonic() - begun)
    original = {f: object_of(f) for f in files}
    with open(SURVIVORS) as f:
        known = {line.split(" # ")[0].strip() for line in f if " # " in line}
    drawn = drawn_in_order(files, seed)
    counts = {"noticed": 0, "endless": 0, "explained": 0, "survived": 0, "same": 0, "refused": 0}
    for change in drawn[:n]:
        kind = try_one(change, tests, limits, original)
        with open(change[0]) as f:
            line, what = describe(*change, f.read())
        if kind == "survived":
            kind = "explained" if what in known else kind
            print(f"{kind} (line {line}): {what}", flush=True)
        counts[kind] += 1
    make(*[f"{B}/tests/test_{t}" for t in tests])
    print(f"{folder}: {len(drawn)} changes possible, {n} drawn: " +
          ", ".join(f"{v} {k}" for k, v in counts.items()))
    passed = sum(counts[k] for k in ("noticed", "endless", "explained"))
    print(f"{passed} passed, {counts['survived']} failed")
    sys.exit(1 if counts["survived"] else 0)


main()
