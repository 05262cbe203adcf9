#!/bin/sh
# mpi_check.sh: libxtview-mpi by mpirun on 1 to 8 ranks of this machine, several on a core; libxtview itself
# knows no MPI. Skipped where there is none. B: build directory. MPIRUN.
B=${B:-build} MPIRUN=${MPIRUN:-mpirun} passed=0 failed=0
if ! command -v "$MPIRUN" >/dev/null || [ ! -e "$B/libxtview-mpi.so.0" ]; then
    echo 'skipped: no MPI'
    exit 0
fi
[ -e "$B/tests/mpi/test_mpi" ] || make -s B="$B" "$B/tests/mpi/test_mpi" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
out=$(mktemp)
trap 'rm -f "$out"' EXIT
check() { # description, status
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "FAILED: $1"
    cat "$out"
}
for n in 1 2 3 4 5 8; do
    timeout 120 "$MPIRUN" -n $n "$B/tests/mpi/test_mpi" >"$out" 2>&1
    check "$n ranks" $?
    echo "note: $(grep 'ranks:' "$out")"
done
! ldd "$B/libxtview.so.0" | grep -qi 'mpi' >"$out"
check 'libxtview knows no MPI' $?
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
