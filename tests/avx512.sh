#!/bin/sh
# avx512.sh: the kernels of AVX-512 on a processor that lacks it: compiled against emulated/immintrin.h, by
# AVX2, and taken for the processor's own by the tests that are named, as kernels or run. It says nothing of
# their speed. `make test-avx512` builds those. Ends with "N passed, N failed"; on a processor without AVX2,
# or with AVX-512, with a line that begins with "skipped", and status 0.
# B: build directory. CC: compiler.
set -u
B=${B:-build}
CC=${CC:-cc}
O=$B/emulated

grep -qw avx2 /proc/cpuinfo || { echo 'skipped: AVX-512 emulated: the processor lacks AVX2, too' && exit 0; }
! grep -qw avx512_vbmi /proc/cpuinfo || { echo 'skipped: AVX-512 emulated: the processor has it' && exit 0; }

mkdir -p "$O"
flags='-std=c11 -D_GNU_SOURCE -O2 -fPIC -Wno-psabi -mavx2 -mbmi -mbmi2 -mprfchw -Iruntime -Iinclude -I.'
# shellcheck disable=SC2086 # words
{
    "$CC" $flags '-D__builtin_cpu_supports(x)=1' -c runtime/base/processor.c -o "$O/processor.o" || exit 1
    for c in "$B"/gen/kernels_avx512_*.c; do echo "$c"; done |
        xargs -P "$(nproc 2>/dev/null || echo 1)" -I{} sh -c '
            "$0" $1 -Itests/emulated -c {} -o "$2/$(basename {} .c).o"' "$CC" "$flags" "$O" || exit 1
}

for suite; do
    # What the archive has of the same names is not taken.
    # shellcheck disable=SC2046 # names
    "$CC" -o "$O/test_$suite" "$B/obj/tests/test_$suite.o" "$O"/*.o "$B"/obj/tests/support/*.o \
        $(ls "$B"/obj/tests/ptx/*.o | grep -v /test_) "$B/obj/bench/workloads.o" "$B/obj/bench/chains.o" \
        "$B/gen/bench_workloads_text.o" "$B/gen/bench_report_html.o" "$B/libxtview.a" \
        -lcheck -lsubunit -lm -lrt -lpthread -ldl || exit 1
done
for suite; do echo "test_$suite env XT_ISA=avx512 $O/test_$suite"; done | sh tests/tally.sh
