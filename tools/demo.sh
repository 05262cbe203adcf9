#!/bin/sh
# demo.sh: what `make run` shows. A chain on a .npy file: run, compared byte for byte with the reference
# evaluator, timed against the same steps one by one, explained; then what to try next. B: build directory.
set -eu
B=${B:-build}
dir=$B/demo
mkdir -p "$dir"
chain='x: u8[1080,1920,3]; x[::-1, 8:1912].permute(2,0,1).pad((0,0),(4,4),(8,8), value=16)'

python=$(sh tools/bootstrap.sh --python)
"$python" - "$dir/photo.npy" <<'END'
"""Writes a picture, u8[1080,1920,3], as .npy by hand: a sky, a sun and a sea."""
import struct, sys
rows = []
for y in range(1080):
    sea = y > 640
    row = bytearray()
    for x in range(1920):
        sun = (x - 1400) ** 2 + (y - 300) ** 2 < 90 * 90
        sky = (110 + y // 6, 170 + y // 12, 235)
        row += bytes((255, 220, 90) if sun else ((y // 9) % 40, 90 + (x * y) % 23, 160) if sea else sky)
    rows.append(bytes(row))
head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1080, 1920, 3), }"
head += b" " * (117 - len(head)) + b"\n"
with open(sys.argv[1], "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + b"".join(rows))
END

echo "A picture, upside down, cropped, pixels to planes, framed: one copy"
echo
"$B/xt" run "$chain" "$dir/photo.npy" -o "$dir/out.npy" --backend cpu
"$B/xt" run "$chain" "$dir/photo.npy" -o "$dir/reference.npy" --backend ref
cmp "$dir/out.npy" "$dir/reference.npy"
bytes=$(wc -c <"$dir/out.npy")
echo "$dir/photo.npy -> $dir/out.npy: $bytes bytes, every one equal to the reference evaluator's"
if "$B/xt" run "$chain" "$dir/photo.npy" -o "$dir/cuda.npy" --backend cuda 2>"$dir/cuda.txt"; then
    cmp "$dir/cuda.npy" "$dir/reference.npy"
    echo "the same on the GPU: equal"
else
    echo "no GPU run here: $(sed 's/^xt: //' "$dir/cuda.txt")"
fi
printf 'this picture | make run | %s\n' "$chain" >"$dir/workload.txt"
batch='x: u8[16,1080,1920,3]; x[:, ::-1, 8:1912].permute(0,3,1,2).pad((0,0),(0,0),(4,4),(8,8), value=16)'
heads='x: f16[4,2048,4096]; x.reshape(4,2048,32,128).permute(0,2,1,3)[:, :, ::-1].reshape(128,2048,128)'
printf '%s | make run | %s\n' 'batch of 16' "$batch" 'attention heads' "$heads" >>"$dir/workload.txt"
echo
"$B/xt" bench --quick "$dir/workload.txt" --html "$dir/bench.html"
echo
echo "$chain"
"$B/xt" explain "$chain" --svg "$dir/copy.svg" | sed '/^  chain/,$d'
cat <<END
In a browser: $dir/copy.svg, this picture; $dir/bench.html, the table.

Try next:
  $B/xt explain 'x: f32[4,6]; x.permute(1,0)[:, ::-1].reshape(8,3)'      which element comes from where
  $B/xt run 'x; x[::2, ::2]' $dir/photo.npy -o half.npy      your own chain on your own file
  $B/xt bench      53 copies of real programs, beside the libraries that are installed here
  pip install ./python      then: import xtview as xt; xt.copy(array, "x.permute(2,0,1)")
END
