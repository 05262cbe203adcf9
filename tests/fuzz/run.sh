#!/bin/sh
# run.sh TARGET..: fuzzes each for FUZZ_SECONDS (60), one a processor at a time, from seeds and from what
# earlier runs in B/corpus found; inputs in tests/fuzz/found, which once were faults, are run first. Prints
# how many inputs were tried. run.sh --one TARGET: one of them; B/TARGET.passed says that it passed.
# B: build directory of the targets. FUZZ_TIMEOUT: seconds by the clock that an input may take (10); more
# where the machine stops now and then.
B=${B:-build/fuzz} seconds=${FUZZ_SECONDS:-60}
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:handle_segv=1

lines() { # directory: a file for each problem line that is committed
    n=0
    cat tests/problems/good.txt tests/problems/huge.txt tests/golden/golden.txt | grep '^[a-z].*;' | cut -f1 |
        while IFS= read -r line; do
        n=$((n + 1))
        printf '%s' "$line" >"$1/$n"
    done
}

seeds() { # target, directory
    mkdir -p "$2"
    case $1 in
    line | source) lines "$2" ;;
    graph) head -c 4000 tests/problems/good.txt | split -b 200 - "$2/" ;;
    shard)
        n=0
        grep -oh '"mesh [^"]*"' tests/test_shard.c | tr -d '"' | while IFS= read -r line; do
            n=$((n + 1))
            printf '\000\001%s' "$line" >"$2/$n"
        done
        ;;
    npy)
        printf '\223NUMPY\001\000v\000%-117s\n' \
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" >"$2/f4"
        printf '\223NUMPY\002\000v\000\000\000%-117s\n' \
            "{'descr': '|V1', 'fortran_order': True, 'shape': (), }" >"$2/v1"
        ;;
    files)
        { printf '\000{"zarr_format": 2, "shape": [5, 4], "chunks": [2, 3], "dtype": "<f4", ' &&
            printf '"fill_value": 1.5, "order": "F", "compressor": null, "filters": null}'; } >"$2/v2"
        { printf '\001{"zarr_format": 3, "node_type": "array", "shape": [5, 4], "data_type": "float32", ' &&
            printf '"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}, ' &&
            printf '"fill_value": "NaN", "chunk_key_encoding": {"name": "default"}, ' &&
            printf '"codecs": [{"name": "bytes"}]}'; } >"$2/v3"
        printf '\002\223NUMPY\001\000v\000%-117s\n%-24s' \
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" >"$2/npy"
        { printf '\003\001\000\000\000\000\000\000\000\002' && head -c 1100 /dev/zero; } >"$2/journal"
        ;;
    entry)
        XT_CACHE_DIR=$(mktemp -d) && export XT_CACHE_DIR
        build/xt emit 'x: f32[64,64]; x.T' --arch sm_90 --dir "$XT_CACHE_DIR" >/dev/null 2>&1
        build/xt pack tests/fuzz/pack.txt --arch sm_90 -o "$2/pack" >/dev/null 2>&1
        cp "$XT_CACHE_DIR"/k1/[0-9a-f]* "$2/" 2>/dev/null
        rm -rf "$XT_CACHE_DIR"
        unset XT_CACHE_DIR
        ;;
    esac
}

one() { # target
    mkdir -p "$B/corpus/$1" "$B/faults"
    rm -f "$B/$1.passed"
    seeds "$1" "$B/seeds/$1"
    log=$B/$1.log
    if find tests/fuzz/found/"$1" -type f 2>/dev/null | xargs -r "$B/tests/fuzz/$1" >"$log" 2>&1 &&
        "$B/tests/fuzz/$1" -max_total_time="$seconds" -max_len=4096 -timeout="${FUZZ_TIMEOUT:-10}" \
            -rss_limit_mb=2048 -close_fd_mask=3 -print_final_stats=1 -artifact_prefix="$B/faults/$1-" \
            "$B/corpus/$1" "$B/seeds/$1" >>"$log" 2>&1; then
        : >"$B/$1.passed"
    else
        tail -n 30 "$log"
    fi
    faults=$(find "$B/faults" -name "$1-*" ! -name "*-slow-unit-*" | wc -l) # a busy machine makes slow units
    echo "$1: $(sed -n 's/^stat::number_of_executed_units: //p' "$log") inputs in $seconds s," \
        "$(find "$B/corpus/$1" -type f | wc -l) kept, $faults faults"
}

if [ "$1" = --one ]; then
    one "$2"
    exit 0
fi
passed=0 failed=0
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 sh "$0" --one
for t in "$@"; do
    if [ -e "$B/$t.passed" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
