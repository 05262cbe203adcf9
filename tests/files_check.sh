#!/bin/sh
# files_check.sh: xt run --mem: faults by a shim, kills, caps of memory, zarr. XT_TEST_FULL=1: 200 kills.
# B: build directory. Where the shim cannot come first (sanitizers) it says so.
B=${B:-build}
mkdir -p "$B/tests/files"
${CC:-cc} -shared -fPIC -O1 -D_GNU_SOURCE tests/files/shim.c -o "$B/tests/files/shim.so" -ldl || exit 1
echo 'char *xt_many(void); static __thread char many[700000]; char *xt_many(void) { return many; }' |
    ${CC:-cc} -shared -fPIC -O1 -x c - -o "$B/tests/files/variables.so" || exit 1
if [ -n "${SAN:-}" ]; then
    echo 'skipped: files.py under sanitizers'
    exit 0
fi
exec "$(sh tools/bootstrap.sh --python)" tests/files.py "$B/xt" "$B/tests/files/shim.so" "$@"
