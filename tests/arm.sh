#!/bin/sh
# arm.sh: the library for aarch64 on another machine: cross-compiled, run by qemu. For the NEON kernels, and
# for code that counts on x86: signed chars, its intrinsics. Test programs run side by side and without a
# process a test, which qemu would have to translate anew. Ends with "N passed, N failed"; where a tool is
# missing with a line that begins with "skipped", and status 0.
# B: build directory. MAKE: make with its options.
set -u
B=${B:-build}/aarch64
cross=aarch64-linux-gnu- qemu=qemu-aarch64
# The longest first. Not: what needs a GPU or NVRTC, times things, or relies on a process a test.
suites='kernels cpu lang run map eval plan sig api fuse npy graph workloads abi'

missing=''
command -v ${cross}gcc >/dev/null || missing="$missing ${cross}gcc"
command -v $qemu >/dev/null || missing="$missing $qemu"
CC=${cross}gcc sh tools/bootstrap.sh --check-libs >/dev/null 2>&1 || missing="$missing check:arm64"
if [ -n "$missing" ]; then
    echo "skipped: tests for aarch64: missing:$missing. On Debian, type as root:" \
        'dpkg --add-architecture arm64; apt-get update;' \
        'apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user check:arm64'
    exit 0
fi

programs=$(printf "$B/tests/test_%s " $suites)
# shellcheck disable=SC2086 # words
${MAKE:-make} B="$B" CC=${cross}gcc AR=${cross}ar lib "$B/xt" $programs || exit 1

mkdir -p "$B/qemu" # where the scripts look for xt
printf '#!/bin/sh\nexec %s %s/xt "$@"\n' $qemu "$(cd "$B" && pwd)" >"$B/qemu/xt"
chmod +x "$B/qemu/xt"
export CK_FORK=no
python=$(sh tools/bootstrap.sh --python numpy 2>/dev/null || echo python3)
{
    echo "cli_check.sh env B=$B/qemu sh tests/cli_check.sh" # as long as the longest of them
    for suite in $suites; do echo "test_$suite $qemu $B/tests/test_$suite"; done
    echo "numpy_check.py $python tests/numpy_check.py --xt $B/qemu/xt --n 100 --seed 1"
} | sh tests/tally.sh
