#!/bin/sh
# some.sh: runs the test programs given as arguments, shows what each counted, and ends with "N passed, M
# failed": programs, not tests. All of a test, under a sanitizer, on a busy machine: it may take longer.
passed=0 failed=0
XT_CACHE_DIR=$(mktemp -d) && export XT_CACHE_DIR || exit 1
export XT_PACK= CK_TIMEOUT_MULTIPLIER="${CK_TIMEOUT_MULTIPLIER:-5}"
trap 'rm -rf "$XT_CACHE_DIR"' EXIT
trap 'exit 130' INT TERM
for t in "$@"; do
    echo "== $(basename "$t")"
    if "$t"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
