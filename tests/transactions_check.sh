#!/bin/sh
# transactions_check.sh: a sample of the tables bench/results/transactions-*.json is no worse now.
# B: build directory. A build with sanitizers is ten times slower and counts the same: skipped.
[ -z "${SAN:-}" ] || { echo "skipped: transactions under sanitizers"; exit 0; }
exec "$(sh tools/bootstrap.sh --python 2>/dev/null || echo python3)" tests/transactions_check.py "$@"
