#!/bin/sh
# run.sh: runs the test programs given as arguments, then the scripts, and ends with one line that counts it
# all: "N passed, N failed". Each program ends with Check's line, each script so too.
# B: build directory. V: set, to see the notes of tests that pass too (sectors moved, times).
set -u
B=${B:-build}
passed=0 failed=0
# A cache of its own: tests neither read nor fill the user's.
XT_CACHE_DIR=$(mktemp -d) && export XT_CACHE_DIR || exit 1
export XT_PACK= # and no pack
log=$(mktemp)
trap 'rm -rf "$XT_CACHE_DIR" "$log"' EXIT
trap 'exit 130' INT TERM

count() { # name, exit status: adds the last counting line of $log
    line=$(grep -E '^[0-9]+%: Checks: [0-9]+, |^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
    set -- "$1" "$2" $(printf '%s\n' "$line" | grep -oE '[0-9]+')
    case "$line" in
    *Checks*) good=$(($4 - $5 - $6)) bad=$(($5 + $6)) ;;
    *passed*) good=$3 bad=$4 ;;
    *) good=0 bad=1 && [ "$2" -eq 0 ] && grep -q '^skipped:' "$log" && bad=0 ;;
    esac
    if [ "$2" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + good)) failed=$((failed + bad))
    if [ "$bad" -ne 0 ]; then cat "$log"; else grep -E "^(skipped${V:+|note}):" "$log" | sort -u; fi
    printf '%-28s %5d passed %5d failed\n' "$1" "$good" "$bad"
}

for t in "$@"; do
    "$t" >"$log" 2>&1
    count "$(basename "$t")" $?
done
for s in tests/*_check.sh; do
    [ -e "$s" ] || continue
    B=$B sh "$s" >"$log" 2>&1
    count "$(basename "$s")" $?
done
python=$(sh tools/bootstrap.sh --python numpy 2>/dev/null || echo python3)
"$python" tests/numpy_check.py --xt "$B/xt" --n "${XT_TEST_NUMPY:-300}" --seed 1 >"$log" 2>&1
count numpy_check.py $?
if [ -z "${SAN:-}" ]; then # a Python without sanitizers cannot load the library
    python=$(sh tools/bootstrap.sh --python einops 2>/dev/null || echo python3)
    "$python" tests/einops_check.py --lib "$B/libxtview.so.0" >"$log" 2>&1
    count einops_check.py $?
fi

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
