#!/bin/sh
# examples_check.sh: the examples run, and print what their heads promise. B: build directory.
B=${B:-build}
passed=0 failed=0
want() { # name, expected output, command ..
    name=$1 expected=$2
    shift 2
    got=$("$@" 2>&1)
    if [ "$got" = "$expected" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf '%s: got\n%s\nwant\n%s\n' "$name" "$got" "$expected"
    fi
}
want split_heads 'head 1 of batch 0 starts with 4 5 6 7' "$B/examples/split_heads"
want append_to_cache ' 0  0  0  0    0  0  0  0    0  0  0  0    0  0  0  0    1  2  3  4    9 10 11 12
 0  0  0  0    0  0  0  0    0  0  0  0    0  0  0  0    5  6  7  8   13 14 15 16' \
    "$B/examples/append_to_cache"
want 'bad chain' 'reshape: op 1: [4,6] (24 elements) does not fit [5,5] (25 elements)' \
    sh -c "$B/examples/explain 'x: f32[4,6]; x.reshape(5,5)' 2>&1 | sed 's/^column [0-9]*: //'"
"$B/examples/explain" >/tmp/xt-explain.$$ 2>&1 && grep -q 'affine, 1 piece' /tmp/xt-explain.$$ \
    && passed=$((passed + 1)) || { failed=$((failed + 1)); cat /tmp/xt-explain.$$; }
rm -f /tmp/xt-explain.$$
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
