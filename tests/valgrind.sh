#!/bin/sh
# valgrind.sh: runs the test programs given as arguments under memcheck, PROGRAM:CASE one case of a program,
# and ends with "N passed, M failed": programs. What valgrind knows no instruction of (AVX-512) it hides from
# them.
command -v valgrind >/dev/null || { echo "skipped: valgrind is not installed"; exit 0; }
passed=0 failed=0
for t in "$@"; do
    case $t in *:*) CK_RUN_CASE=${t#*:} && export CK_RUN_CASE ;; *) unset CK_RUN_CASE ;; esac
    if CK_FORK=no valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
        "${t%%:*}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
echo "valgrind: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
