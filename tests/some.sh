#!/bin/sh
# some.sh: runs the test programs given as arguments, JOBS of them at a time, shows what each counted, and
# ends with "N passed, M failed": programs, not tests. All of a test, under a sanitizer, on a busy machine: it
# may take longer.
XT_CACHE_DIR=$(mktemp -d) && export XT_CACHE_DIR || exit 1
export XT_PACK= CK_TIMEOUT_MULTIPLIER="${CK_TIMEOUT_MULTIPLIER:-5}"
logs=$(mktemp -d) && export logs || exit 1
trap 'rm -rf "$XT_CACHE_DIR" "$logs"' EXIT
trap 'exit 130' INT TERM
printf '%s\n' "$@" | xargs -P "${JOBS:-1}" -I TEST sh -c '
    log=$logs/$(basename TEST)
    if TEST >"$log.log" 2>&1; then touch "$log.passed"; fi
    echo "== $(basename TEST)" && cat "$log.log"'
passed=$(find "$logs" -name '*.passed' | wc -l)
failed=$(($# - passed))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
