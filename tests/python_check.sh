#!/bin/sh
# python_check.sh [--build]: the package xtview, built with B/libxtview.a, passes its tests. Needs a Python of
# 3.11 or later with its headers and setuptools, and, but for --build, numpy, pytest and hypothesis; tests of
# other libraries run where these are installed. B: build directory. XT_TEST_PYTHON: random chains (2000).
B=${B:-build}
[ -z "${SAN:-}" ] || { echo "skipped: Python has no sanitizers, the library has"; exit 0; }
modules='setuptools, numpy, pytest, hypothesis'
[ "${1:-}" != --build ] || modules=setuptools
for python in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3 none; do
    "$python" -c "import sys, sysconfig, os, $modules
sys.exit(sys.version_info < (3, 11) or not os.path.exists(sysconfig.get_path('include') + '/Python.h'))" \
        >/dev/null 2>&1 && break
done
[ "$python" != none ] || {
    echo "skipped: no python3 of 3.11 or later with Python.h, $modules"
    [ "${1:-}" != --build ]
    exit
}

root=$(pwd)
case $B in /*) ;; *) B=$root/$B ;; esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
(cd python && XTVIEW_LIB=$B/libxtview.a "$python" setup.py -q build --build-base "$B/python" \
    --build-lib "$B/python/lib") >"$log" 2>&1 || { cat "$log"; echo "0 passed, 1 failed"; exit 1; }
[ "${1:-}" != --build ] || exit 0
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$B/python/lib "$python" -m pytest -q -c python/pyproject.toml \
    python/tests >"$log" 2>&1
failed=$?
cat "$log"
count() { grep -oE "[0-9]+ $1" "$log" | tail -n 1 | grep -oE '[0-9]+' || echo 0; }
bad=$(($(count failed) + $(count error)))
[ "$failed" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
echo "$(count passed) passed, $bad failed"
[ "$bad" -eq 0 ]
