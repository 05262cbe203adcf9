#!/bin/sh
# mpi_check.sh: libxtview-mpi and xt-mpi by mpirun on 1 to 8 ranks of this machine, several on a core;
# libxtview itself knows no MPI. Skipped where there is none. B: build directory. MPIRUN.
set -u
B=${B:-build} MPIRUN=${MPIRUN:-mpirun} passed=0 failed=0
if ! command -v "$MPIRUN" >/dev/null || [ ! -e "$B/libxtview-mpi.so.0" ]; then
    echo 'skipped: no MPI'
    exit 0
fi
for made in tests/mpi/test_mpi tests/mpi/test_fault tests/mpi/shim.so examples/mpi/transpose xt-mpi xt; do
    [ -e "$B/$made" ] || make -s B="$B" "$B/$made" || exit 1
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 MPIR_CVAR_POLLS_BEFORE_YIELD=1
dir=$(mktemp -d) || exit 1
out=$dir/out
trap 'rm -rf "$dir"' EXIT
check() { # description, status
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "FAILED: $1"
    cat "$out"
}

for n in 1 2 3 4 5 8; do
    timeout -k 10 300 "$MPIRUN" -n $n "$B/tests/mpi/test_mpi" >"$out" 2>&1
    check "$n ranks" $?
    echo "note: $(grep 'ranks:' "$out")"
done
# More than 2^31 bytes from one rank to the other, in 4.4 GB.
if [ -z "${SAN:-}" ] && [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -gt 10000000 ]; then
    timeout -k 10 300 "$MPIRUN" -n 2 "$B/tests/mpi/test_mpi" huge >"$out" 2>&1
    check 'more than 2^31 bytes' $?
    echo "note: $(grep 'ranks:' "$out")"
else
    echo "note: 10 GB are not free: no message of more than 2^31 bytes"
fi

timeout -k 10 60 "$MPIRUN" -n 3 "$B/examples/mpi/transpose" >"$out" 2>&1 &&
    grep -qF '[200,1000] here became [334,600]' "$out"
check 'the example, 3 ranks' $?

# As if on several machines: messages by MPI; late ones; and what a rank tells the others when its run fails.
shim() { # MPI_SHIM, ranks, program
    LD_PRELOAD=$(realpath "$B/tests/mpi/shim.so") MPI_SHIM=$1 \
        timeout -k 10 120 "$MPIRUN" -n "$2" "$B/tests/mpi/$3" \
        >"$out" 2>&1
}
for n in 2 3 4 8; do
    shim apart $n test_mpi
    check "messages by MPI, $n ranks" $?
done
shim 'apart late' 4 test_fault && grep -q ' 0 runs failed, 0 wrong' "$out"
check 'late messages' $?
started=$(date +%s)
shim apart 4 test_fault && grep -q ' 0 runs failed, 0 wrong' "$out"
check 'without a fault' $?
most=$((10 + $(date +%s) - started))
# Nobody waits more than 10 s beyond what such a run takes.
in_time() { [ $(($(date +%s) - started)) -le $most ]; }
for fault in send=1 send=9; do
    started=$(date +%s)
    shim "apart $fault" 4 test_fault && grep -q ', 0 wrong' "$out" &&
        grep -q 'XT_ECOMM: MPI_I' "$out" && in_time
    check "a rank's run fails: $fault" $?
done
started=$(date +%s)
! shim 'apart kill=9' 4 test_fault && in_time
check 'a rank dies' $?

# xt-mpi on files of whole tensors and on a file a rank, against xt.
python3 - "$dir/x.npy" <<'PYTHON'
import struct, sys
head = "{'descr': '<i4', 'fortran_order': False, 'shape': (37, 53), }".ljust(117) + "\n"
with open(sys.argv[1], "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
    f.write(struct.pack(f"<{37 * 53}i", *(i * 2654435761 % 2**31 for i in range(37 * 53))))
PYTHON
"$B/xt" run 'x; x.T[::-1]' "$dir/x.npy" -o "$dir/want.npy"
run() { timeout -k 10 60 "$MPIRUN" -n "$1" "$B/xt-mpi" run "$2" "$3" -o "$4" >>"$out" 2>&1; }
files() { # ranks, layout of x, of the result
    chain="mesh r[$1]; x: i32[$2]; x.T[::-1] -> [$3]" back="mesh r[$1]; y: i32[$3]; y -> [53,37]"
    find "$dir" -name 'got*' -delete -o -name 'part*' -delete
    : >"$out"
    run "$1" "$chain" "$dir/x.npy" "$dir/got.npy" && cmp "$dir/got.npy" "$dir/want.npy" >>"$out" &&
        run "$1" "$chain" "$dir/x.npy" "$dir/part%r.npy" &&
        run "$1" "$back" "$dir/part%r.npy" "$dir/got2.npy" &&
        cmp "$dir/got2.npy" "$dir/want.npy" >>"$out"
    check "files on $1 ranks: [$2] -> [$3]" $?
}
files 1 '37 r,53' '53 r,37'
files 2 '37,53 r(1)' '53 r(7),37'
files 3 '37 r(balanced),53' '53,37 r'
files 4 '37 r(2),53' '53 r(balanced),37'
files 8 '37 r,53' '53,37 r(11)'

# Files that do not fit in --mem: their tiles are dealt among the ranks. What an ended run has done is kept,
# whoever did it and however many ranks go on.
big=$dir/big.npy chain='x: f32[1024 r,700]; x[::-1].T -> [700 r,1024]'
python3 - "$big" <<'PYTHON'
import random, struct, sys
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1024, 700), }".ljust(117) + "\n"
with open(sys.argv[1], "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
    f.write(random.Random(7).randbytes(4 * 1024 * 700))
PYTHON
"$B/xt" run 'x; x[::-1].T' "$big" -o "$dir/want.npy"
tiles() { # ranks, XT_SHIM
    LD_PRELOAD=${2:+$dir/disk.so} XT_SHIM=${2:-} timeout -k 10 60 "$MPIRUN" -n "$1" \
        "$B/xt-mpi" run "mesh r[$1]; $chain" "$big" -o "$dir/tiled.npy" --mem 1M -v >"$out" 2>&1
}
is_whole() { # the same elements; the header is a page
    "$B/xt" run 'x; x' "$dir/tiled.npy" -o "$dir/same.npy" && cmp "$dir/same.npy" "$dir/want.npy" >>"$out" &&
        [ "$(find "$dir" -name 'tiled*')" = "$dir/tiled.npy" ]
}
for n in 1 2 3 5; do
    rm -f "$dir/tiled.npy"
    tiles $n && grep -q ' tiles, 0 of them done before, ' "$out" && is_whole
    check "tiles by $n ranks" $?
done
rm -f "$dir/tiled.npy"
${CC:-cc} -shared -fPIC -O1 -D_GNU_SOURCE tests/files/shim.c -o "$dir/disk.so" -ldl || exit 1
! tiles 3 'fdatasync EIO 4' && [ -e "$dir/tiled.npy.xt-part" ] && [ ! -e "$dir/tiled.npy" ]
check 'a disk that fails while ranks make tiles' $?
! tiles 3 'fdatasync KILL 6' && [ -e "$dir/tiled.npy.xt-part" ] && [ ! -e "$dir/tiled.npy" ]
check 'ranks that are killed while they make tiles' $?
tiles 4 && grep -q ' tiles, [1-9][0-9]* of them done before, ' "$out" && is_whole
check 'a run of 3 ranks is taken up by 4' $?
refused() { # words, arguments of xt-mpi run
    words=$1
    shift
    timeout -k 10 60 "$MPIRUN" -n 2 "$B/xt-mpi" run "$@" >"$out" 2>&1
    status=$?
    [ $status -ne 0 ] && [ "$(grep -c '^xt-mpi: ' "$out")" -eq 1 ] && grep -qF "$words" "$out"
    check "refused: $words" $?
}
x='mesh r[2]; x: i32[37 r,53]' no=$dir/no.npy
refused "none.npy: No such file" "$x; x" "$dir/none.npy" -o "$no"
refused 'input x is i32[38,53]' 'mesh r[2]; x: i32[38 r,53]; x' "$dir/x.npy" -o "$no"
refused 'the mesh has 3 ranks, the communicator 2' 'mesh r[3]; x: i32[37 r,53]; x' "$dir/x.npy" -o "$no"
refused 'column 29: input y' "$x; y" "$dir/x.npy" -o "$no"
refused 'the chain has 1 input, and 2 files are given' "$x; x" "$dir/x.npy" "$dir/x.npy" -o "$no"
refused 'there is no such directory' "$x; x" "$dir/x.npy" -o "$dir/none/no.npy"
refused "'much' is no size" "$x; x" "$dir/x.npy" -o "$no" --mem much
[ -z "$(find "$dir" -name 'no.npy' -o -name '.xt-*')" ]
check 'nothing is left of a run that was refused' $?

# xtview.mpi, by the first Python that has NumPy and mpi4py of this MPI, and that `make python` built for.
for python in python3 /usr/bin/python3 none; do
    PYTHONPATH=$B/python/lib "$MPIRUN" -n 2 "$python" -c 'import mpi4py.MPI, numpy, sys, xtview.mpi
sys.exit(mpi4py.MPI.COMM_WORLD.size != 2)' >/dev/null 2>&1 && break
done
[ "$python" != none ] || echo "note: no mpi4py of this MPI, or no $B/python: xtview.mpi is not tested"
for n in 1 3 4; do
    [ "$python" != none ] || break
    PYTHONPATH=$B/python/lib timeout -k 10 60 "$MPIRUN" -n $n "$python" tests/mpi/check_mpi4py.py \
        "$B/libxtview-mpi.so.0" >"$out" 2>&1
    check "xtview.mpi on $n ranks" $?
done

! ldd "$B/libxtview.so.0" | grep -qi 'mpi' >"$out"
check 'libxtview knows no MPI' $?
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
