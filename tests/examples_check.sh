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
want append_to_cache '10 11 12 13   20 21 22 23   30 31 32 33    0  0  0  0    0  0  0  0    0  0  0  0
14 15 16 17   24 25 26 27   34 35 36 37    0  0  0  0    0  0  0  0    0  0  0  0' \
    "$B/examples/append_to_cache"
want join_qkv 'q of batch 0, head 1: 102 103  106 107  110 111
k of batch 0, head 1: 202 203  206 207  210 211
v of batch 0, head 1: 302 303  306 307  310 311' "$B/examples/join_qkv"
want thread_pool 'jobs of the pool: 1; the result starts with 0 1024 2048' "$B/examples/thread_pool"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf 'P6\n2 2\n255\nabcdefghijkl' >"$dir/photo.ppm"
want photo_planes 'P5
2 6
255
adgjbehkcfil' sh -c '"$1" "$2/photo.ppm" "$2/planes.pgm" && cat "$2/planes.pgm"' - \
    "$B/examples/photo_planes" "$dir"
want 'no photo' 'want: photo_planes PHOTO.ppm PLANES.pgm, a photo of bytes (P6)' \
    "$B/examples/photo_planes" "$0" "$dir/none.pgm"
head="{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }"
printf '\223NUMPY\1\0v\0%-117s\nabcdef' "$head" >"$dir/in.npy"
want file_tiles '6 bytes read, 6 written, within 1 MB: yes
adbecf' sh -c '"$1" "$2/in.npy" "$2/out.npy" 2>/dev/null && tail -c 6 "$2/out.npy" && echo' - \
    "$B/examples/file_tiles" "$dir"
want 'no file' 'none.npy: No such file or directory' "$B/examples/file_tiles" none.npy "$dir/out.npy"
want dlpack '  0   1   2   3    10  11  12  13    20  21  22  23
100 101 102 103   110 111 112 113   120 121 122 123
200 201 202 203   210 211 212 213   220 221 222 223' "$B/examples/dlpack"
if [ -x "$B/examples/unique_ptr" ]; then
    want unique_ptr 'column 16: reshape: [2,3] (6 elements) does not fit [5,5] (25 elements)' \
        sh -c '"$1" | sed "s/^1 4 2 5 3 6 and then: //"' - "$B/examples/unique_ptr"
else
    echo 'skipped: unique_ptr: no C++ compiler'
fi
case $B in /*) double=$B/tests/libcuda_double.so ;; *) double=$PWD/$B/tests/libcuda_double.so ;; esac
if XT_LIBCUDA=$double "$B/examples/cuda_stream" 2>&1 | grep -i nvrtc >"$dir/why"; then
    echo "skipped: cuda_stream: $(cat "$dir/why")"
else
    want cuda_stream 'the result starts with 0 48 96' env XT_LIBCUDA="$double" "$B/examples/cuda_stream"
fi
want 'bad chain' 'reshape: [4,6] (24 elements) does not fit [5,5] (25 elements)' \
    sh -c "$B/examples/explain 'x: f32[4,6]; x.reshape(5,5)' 2>&1 | sed 's/^column [0-9]*: //'"
want 'bad environment' \
    "xt_compile: ctx is NULL; this thread's last failure: XT_THREADS: 'abc' is not a number" \
    env XT_THREADS=abc "$B/examples/split_heads"
"$B/examples/explain" >/tmp/xt-explain.$$ 2>&1 && grep -q 'affine, 1 piece' /tmp/xt-explain.$$ \
    && passed=$((passed + 1)) || { failed=$((failed + 1)); cat /tmp/xt-explain.$$; }
rm -f /tmp/xt-explain.$$

# From Python, where it is and has the library.
if B=$B sh tests/python_check.sh --build >/dev/null 2>&1; then
    export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$B/python/lib"
    for module in numpy torch; do
        has="sys; assert sys.version_info >= (3, 11); import $module"
        python=$(sh tools/bootstrap.sh --python "$has" 2>/dev/null)
        case $module$python in
        numpy | torch) echo "skipped: no python3 of 3.11 or later with $module" ;;
        numpy*) want from_numpy 'patches (2, 4, 18)
kept [1.0, 2.0, 3.0, 0.0, 0.0]
reshape: [2,4,6,3] (144 elements) does not fit [2,4,6,4] (192 elements)
    x.reshape(2,4,6,4)
      ^' "$python" examples/from_numpy.py
            want from_files "chunks ['0', '1', '2', '3']
the same True
DIR/none.npy: No such file or directory" "$python" examples/from_files.py ;;
        torch*) want from_torch '(2, 3, 5, 4) (2, 6, 5, 4) torch.bfloat16' "$python" examples/from_torch.py ;;
        esac
    done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
