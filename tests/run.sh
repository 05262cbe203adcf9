#!/bin/sh
# run.sh: runs the test programs given as arguments, and the scripts, as many at a time as there are
# processors (JOBS), and ends with one line that counts it all: "N passed, N failed".
# B: build directory. V: set, to see the notes of tests that pass too (sectors moved, times).
set -u
export B="${B:-build}"
long='/test_(cuda|kernels|workloads|files)$' # begin first, so that none of them is alone at the end

python() { sh tools/bootstrap.sh --python "$1" 2>/dev/null || echo python3; } # one that has this package
{
    printf '%s\n' "$@" | grep -E "$long"
    for script in tests/*_check.sh; do echo "${script##*/} sh $script"; done
    echo "numpy_check.py $(python numpy) tests/numpy_check.py --xt $B/xt --n ${XT_TEST_NUMPY:-300} --seed 1"
    # A Python without sanitizers cannot load the library.
    [ -n "${SAN:-}" ] || echo "einops_check.py $(python einops) tests/einops_check.py --lib $B/libxtview.so.0"
    printf '%s\n' "$@" | grep -vE "$long"
} | sh tests/tally.sh
