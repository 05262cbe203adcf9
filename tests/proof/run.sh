#!/bin/sh
# run.sh: proves with frama-c, for all integers, that the checked arithmetic does what it promises and that no
# step of it overflows, divides by 0 or leaves its arrays. A file here has the contracts; what they are about
# stands after its name. Ends with "N passed, N failed", a goal each.
# A goal that holds whatever the code does would prove nothing: the smoke tests look for premises that
# contradict each other.
set -u
cd "$(dirname "$0")/../.." || exit 1
home=$(mktemp -d) || exit 1
trap 'rm -rf "$home"' EXIT
HOME=$home why3 config detect >/dev/null 2>&1
passed=0 failed=0

prove() { # file of contracts, functions or nothing for all
    HOME=$home frama-c -machdep gcc_x86_64 -cpp-extra-args='-Iruntime -Iinclude -Itests/proof -D_GNU_SOURCE' \
        -wp -wp-rte -wp-smoke-tests -wp-smoke-timeout 2 -wp-prover cvc4,z3 \
        -wp-timeout "${PROOF_SECONDS:-60}" -wp-par 2 \
        ${2:+-wp-fct "$2"} "tests/proof/$1" >"$home/log" 2>&1
    line=$(grep -o 'Proved goals: *[0-9]* / [0-9]*' "$home/log")
    set -- "$1" $(echo "$line" | grep -o '[0-9]*') 0 1
    passed=$((passed + $2)) failed=$((failed + $3 - $2))
    printf '%-12s %s\n' "$1" "${line:-no goals}"
    [ "$2" -eq "$3" ] || grep -vE ': (Valid|Passed)' "$home/log"
}

prove num.c
prove span.c xti_span,xti_dense_strides

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
