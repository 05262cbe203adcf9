#!/bin/sh
# tally.sh: runs the commands of its input, a line each, "NAME COMMAND ARGUMENT.." or a program alone, JOBS of
# them at a time (as many as there are processors), each with a kernel cache of its own and no pack. Prints
# what each counted by its last line of Check's form or of "N passed, N failed"; of what failed all that it
# said, of others what they skipped (V: and noted). Ends with the sum, "N passed, N failed"; its status is 0
# when something was run and nothing failed. A command that counts nothing, or has another status than 0,
# has failed; not one of status 0 that says "skipped: why".
set -u

one() { # a line's words: its row, and its counts for the sum
    name=${1##*/} log=$logs/${1##*/}
    [ $# -eq 1 ] || shift
    # Beside others a test takes longer.
    CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-3} XT_CACHE_DIR=$log.cache XT_PACK='' "$@" >"$log" 2>&1
    awk -v status=$? '
        /^[0-9]+%: Checks: [0-9]+, / {
            gsub(/[^0-9 ]/, "")
            good = $2 - $3 - $4
            bad = $3 + $4
            counted = 1
        }
        /^[0-9]+ passed, [0-9]+ failed$/ {
            good = $1
            bad = $3
            counted = 1
        }
        /^skipped:/ { skipped = 1 }
        END { print good + 0, bad || (!status && (counted || skipped)) ? bad + 0 : 1 }' "$log" >"$log.counts"
    read -r good bad <"$log.counts"
    if [ "$bad" -ne 0 ]; then
        cat "$log"
    else
        grep -E "^(skipped${V:+|note}):" "$log" | sort -u
    fi >"$log.row"
    printf '%-28s %5d passed %5d failed\n' "$name" "$good" "$bad" >>"$log.row"
    cat "$log.row"
    rm -rf "$log.cache"
}

if [ "${1-}" = --one ]; then
    shift
    one "$@"
    exit 0
fi
logs=$(mktemp -d) && export logs || exit 1
trap 'rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM
xargs -r -P "${JOBS:-$(nproc 2>/dev/null || echo 1)}" -L 1 sh "$0" --one
find "$logs" -name "*.counts" -exec cat {} + | awk '{ good += $1; bad += $2 }
    END { printf "%d passed, %d failed\n", good, bad; exit bad > 0 || NR == 0 }'
