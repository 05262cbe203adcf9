#!/bin/sh
# gpu_check.sh: every part of `make gpu-check` runs to its end on the driver double, in small forms; its
# report says that no time is a GPU's, what was left out, and names the rows where xt loses.
# B: build directory.
B=${B:-build}
python=$(sh tools/bootstrap.sh --python 2>/dev/null || echo python3)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if ! [ -e "$B/tests/libcuda_double.so" ] || ! [ -e "$B/tests/gpu_check" ] ||
    ! XT_PACK= XT_CACHE_DIR= "$B/xt" emit 'x: u8[3]; x' --arch sm_90 --dir "$dir/out" >"$dir/log" 2>&1; then
    echo "skipped: gpu-check on the driver double: no double, or no NVRTC"
    exit 0
fi
B=$B "$python" tests/gpu_check.py --small --seconds 90 --out "$dir/made/for" \
    --double "$(cd "$B" && pwd)/tests/libcuda_double.so" >"$dir/log" 2>&1
echo "exit status $?" >>"$dir/log"
PYTHONPATH=tests "$python" - "$dir" <<'END' || cat "$dir/log"
import glob, json, sys
import gpu_check

passed = failed = 0
def check(what, true):
    global passed, failed
    passed, failed = passed + bool(true), failed + (not true)
    if not true:
        print("FAILED:", what)

log = open(sys.argv[1] + "/log").read()
check("it ends well", "exit status 0" in log)
files = glob.glob(sys.argv[1] + "/made/for/gpu-double-*.json")
check("one report, named after the device and the commit", len(files) == 1)
report = json.load(open(files[0])) if files else {"rows": [], "parts": []}
table = open(files[0][:-4] + "md").read() if files else ""
check("it says that the device is none", report.get("double") is True and "no time below is a GPU's" in table)
parts = [p["part"] for p in report["parts"]]
check("every part ran", parts == ["equal", "equal-structure", "equal-any", "sanitizer", "launch", "compile",
                                  "prepare", "times", "times", "prepare", "structure", "sweep", "unaligned",
                                  "serving", "peers"])
rows = report["rows"]
for part in ("equal", "equal-structure", "equal-any"):
    equal = [r for r in rows if r.get("part") == part and "passed" in r]
    least = 150 if part == "equal" else 50
    check(f"{part}: copies were compared",
          len(equal) == 1 and equal[0]["passed"] > least and equal[0]["failed"] == 0)
for part in ("launch", "compile", "times", "structure", "sweep", "unaligned"):
    check(part + " has times", any(r.get("us", 0) > 0 for r in rows if r.get("part") == part))
check("serving counted", any("structures" in r.get("text", "") for r in rows))
check("peers answered", any(r.get("part") == "peers" and "peer" in r for r in rows))
left = sum(r.get("left_out", 0) for r in rows)
check("what is left out is counted", left == sum(p["left_out"] for p in report["parts"]))
check("and said", left == 0 or "left out, the time was over" in table)

mine = [{"part": "times", "name": n, "us": us, "of_copy": 0.5}
        for n, us in (("a f32", 10.0), ("b", 20.0), ("c", 5.0))]
theirs = [{"part": "peers", "peer": p, "name": n, "us": us} for p, n, us in
          (("torch", "a f32", 9.0), ("jax", "a f32", 8.0), ("jax", "b", 21.0))]
lost, n = gpu_check.losses(mine + theirs)
check("rows where xt loses", [(r["name"], us, p) for r, us, p in lost] == [("a f32", 8.0, "jax")] and n == 2)
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
END
