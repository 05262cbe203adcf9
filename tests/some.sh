#!/bin/sh
# some.sh: runs the test programs given as arguments, shows what each counted, and ends with "N passed, M
# failed": programs, not tests.
passed=0 failed=0
XT_CACHE_DIR=$(mktemp -d) && export XT_CACHE_DIR || exit 1
export XT_PACK=
trap 'rm -rf "$XT_CACHE_DIR"' EXIT
trap 'exit 130' INT TERM
for t in "$@"; do
    echo "== $(basename "$t")"
    if "$t"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
