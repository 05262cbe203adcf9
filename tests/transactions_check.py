"""transactions_check.py: are CUDA kernels worse than bench/results/transactions-ARCH.json says?

  transactions_check.py            a row whose kernel is still the table's is not counted again; of the others
                                   every 9th row of each list for sm_90, every 27th for sm_75 and sm_120
  transactions_check.py --all      every row whose kernel is another
  transactions_check.py --update   counts those and writes the tables anew; with --quick only rows that are
                                   counted without --all, with --again also rows whose kernel is the same
  --arch sm_90, --list hard.txt    of these alone

The blocks that a row's figures come from are drawn with a fixed seed, so that the same kernel gives the same
figures; other blocks are drawn when a launch is cut otherwise: hence two tolerances. Instructions, registers
and spills are compared where NVRTC is the table's version. Ends with "N passed, M failed", which tests/run.sh
reads.
"""
import json
import os
import subprocess
import sys
import tempfile

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


def key(row):
    return row["list"], row["name"]


def read_table(arch):
    with open(table_path(arch)) as f:
        table = json.load(f)
    return table["nvrtc"], {key(r): r for r in table["rows"]}


def count(arch, every=1, known=(), lists=LISTS):
    """The tool's answer. known: rows whose kernel need not be counted."""
    program = os.path.join(os.environ.get("B", "build"), "tests", "transactions")
    with tempfile.NamedTemporaryFile("w") as f:
        f.writelines(f"{r['list']} {r['name']} {r['kernel']}\n" for r in known if "kernel" in r)
        f.flush()
        options = ["--arch", arch, "--every", str(every), "--known", f.name, "--json", "-"]
        run = subprocess.run([program] + options + lists, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout)


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


def check(arch, every, nvrtc):
    """Counts of rows that are no worse, worse, better, and of others that nobody counted."""
    made_with, old = read_table(arch)
    good, bad, gain, left = 0, 0, 0, 0
    for row in count(arch, every, old.values() if made_with == nvrtc else ())["rows"]:
        before = old.get(key(row))
        if row.get("counted", True):
            why = worse(before, row, made_with == nvrtc)
        elif before and before.get("kernel") == row["kernel"] and before["chain"] == row["chain"]:
            why = []
        else:
            left += 1
            continue
        for text in why:
            print(f"{arch} {row['list']} {row['name']}: {text}")
        good, bad = good + (not why), bad + bool(why)
        gain += row.get("counted", True) and not why and better(before, row)
    return good, bad, gain, left


def update(arch, every, nvrtc):
    made_with, old = read_table(arch)
    known = old.values() if made_with == nvrtc and "--again" not in sys.argv else ()
    new = {key(r): r for r in count(arch, every, known)["rows"] if r.get("counted", True)}
    rows = [new.get(k, old.get(k)) for k in list(old) + [k for k in new if k not in old]]
    with open(table_path(arch), "w") as f:
        text = ",\n".join(json.dumps(r) for r in rows)
        f.write(f'{{"arch": "{arch}", "nvrtc": "{nvrtc}", "rows": [\n{text}\n]}}\n')


def main():
    for option, all_of in (("--arch", ARCHS), ("--list", LISTS)):
        if option in sys.argv:
            only = sys.argv[sys.argv.index(option) + 1]
            for name in [n for n in all_of if n.split("/")[-1] != only]:
                all_of.remove(name) if all_of is LISTS else all_of.pop(name)
    probe = count("sm_90", 10**6, lists=LISTS[:1])
    nvrtc = probe["nvrtc"]
    if not nvrtc:
        print("skipped: transactions: NVRTC not found")
        return 0
    total = [0, 0, 0, 0]
    for arch, every in ARCHS.items():
        if "--update" in sys.argv:
            update(arch, every if "--quick" in sys.argv else 1, nvrtc)
        else:
            found = check(arch, 1 if "--all" in sys.argv else every, nvrtc)
            total = [a + b for a, b in zip(total, found)]
    good, bad, gain, left = total
    if gain or left:
        print(f"note: {gain} rows are better than in the tables, {left} of other kernels were not counted")
    if "--update" not in sys.argv:
        print(f"{good} passed, {bad} failed")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
