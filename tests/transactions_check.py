"""transactions_check.py: are CUDA kernels worse than bench/results/transactions-ARCH.json says?

  transactions_check.py            every 9th row of each list for sm_90, every 27th for the others
  transactions_check.py --all      every row
  transactions_check.py --update   writes the tables anew

The blocks that a row's figures come from are drawn with a fixed seed, so that the same kernel gives the same
figures; other blocks are drawn when a launch is cut otherwise: hence two tolerances. Instructions, registers
and spills are compared where NVRTC is the table's version. Ends with "N passed, M failed", which tests/run.sh
reads.
"""
import json
import os
import subprocess
import sys

ARCHS = {"sm_75": 27, "sm_90": 9, "sm_120": 27}
PROBLEMS = "bench/problems/"
LISTS = [PROBLEMS + "ttc57.txt" + dtype for dtype in (":f32", ":u8", ":f16", ":f64")]
LISTS += ["bench/workloads.txt", PROBLEMS + "hard.txt"]
LISTS += [LISTS[0] + "@structure", "bench/workloads.txt@structure", PROBLEMS + "hard.txt@structure"]

# column: may be worse by this much and ..
ANYWHERE = {"load_ratio": 0.01, "store_ratio": 0.01, "wavefront_ratio": 0.01}
SAME_NVRTC = {"instructions_per_16B": 0.5, "registers": 2, "spill_bytes": 0}
# .. by this part: where a launch has as many blocks as in the table the same ones are drawn
SAME_BLOCKS, OTHER_BLOCKS = 0.005, 0.06


def table_path(arch):
    return f"bench/results/transactions-{arch}.json"


def count(arch, every, path="-", lists=LISTS):
    program = os.path.join(os.environ.get("B", "build"), "tests", "transactions")
    run = subprocess.run([program, "--arch", arch, "--every", str(every), "--json", path] + lists,
                         stdout=subprocess.PIPE, text=True)
    return run.stdout


def part(column, old, new):
    if column in ("registers", "spill_bytes"):
        return 0
    return SAME_BLOCKS if old["blocks"] == new["blocks"] else OTHER_BLOCKS


def worse(old, new, same_nvrtc):
    """Sentences about the columns in which new is worse."""
    if "error" in new:
        return [new["error"]]
    if old is None or old["chain"] != new["chain"]:
        return ["not in the table: make transactions-update"]
    columns = dict(ANYWHERE, **(SAME_NVRTC if same_nvrtc else {}))
    return [f"{c} {new[c]:g}, was {old[c]:g}" for c, much in columns.items()
            if new[c] > old[c] * (1 + part(c, old, new)) + much]


def better(old, new):
    columns = dict(ANYWHERE, **SAME_NVRTC)
    return any(new[c] * (1 + part(c, old, new)) + much < old[c] for c, much in columns.items())


def check(arch, every):
    """Counts of rows that are no worse, worse, better."""
    with open(table_path(arch)) as f:
        table = json.load(f)
    old = {(r["list"], r["name"]): r for r in table["rows"]}
    now = json.loads(count(arch, every))
    good, bad, gain = 0, 0, 0
    for row in now["rows"]:
        before = old.get((row["list"], row["name"]))
        why = worse(before, row, table["nvrtc"] == now["nvrtc"])
        for text in why:
            print(f"{arch} {row['list']} {row['name']}: {text}")
        good, bad = good + (not why), bad + bool(why)
        gain += not why and better(before, row)
    return good, bad, gain


def able():
    """None, or why nothing can be counted here: asked of one row."""
    rows = json.loads(count("sm_90", 10**6, lists=LISTS[:1]))["rows"]
    return next((r["error"] for r in rows if "NVRTC not found" in r.get("error", "")), None)


def main():
    why = able()
    if why:
        print(f"skipped: transactions: {why}")
        return 0
    good, bad, gain = 0, 0, 0
    for arch, every in ARCHS.items():
        if "--update" in sys.argv:
            count(arch, 1, table_path(arch))
        else:
            g, b, more = check(arch, 1 if "--all" in sys.argv else every)
            good, bad, gain = good + g, bad + b, gain + more
    if gain:
        print(f"note: {gain} rows are better than in the tables: make transactions-update")
    if "--update" not in sys.argv:
        print(f"{good} passed, {bad} failed")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
