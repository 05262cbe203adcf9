#!/bin/sh
# readme_check.sh: README.md is true. Commands after "$ " print what stands below them; commands and chains of
# the command section run; the C program compiles and runs; figures are those of bench/results; files and
# targets that are named exist. B: build directory.
B=${B:-build}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0
check() { # description, status
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $1"; fi
}

# "    $ command" and the indented lines below it; blank ones between them.
awk -v dir="$dir" '
    /^    \$ / {
        n++; on = 1; blank = 0
        print substr($0, 7) > (dir "/" n ".cmd")
        printf "" > (dir "/" n ".want")
        next
    }
    on && /^$/ { blank++; next }
    on && /^    / {
        for (; blank; blank--)
            print "" > (dir "/" n ".want")
        print substr($0, 5) > (dir "/" n ".want")
        next
    }
    { on = 0 }' README.md
# The instruction set and the estimate are the machine's own.
machines_own='s/cpu (scalar|avx2|avx512|neon)/cpu ISA/; s/(estimate +).* ns, (.*:).*/\1TIME, \2/'
for c in "$dir"/*.cmd; do
    want=${c%.cmd}.want
    sed "s|build/xt|$B/xt|" "$c" >"$c.sh"
    XT_ISA=avx2 XT_MACHINE=zen5 sh "$c.sh" >"$c.got" 2>&1
    sed -E "$machines_own" "$c.got" >"$c.g"
    sed -E "$machines_own" "$want" >"$c.w"
    diff -u "$c.w" "$c.g"
    check "$(cat "$c")" $?
done

# The command section's commands run, in a folder with the files that they name; those that need NVRTC say so.
root=$(pwd)
case $B in /*) ;; *) B=$root/$B ;; esac
mkdir "$dir/run" "$dir/run/bench" && cp -r bench/problems "$dir/run/bench"
echo 'small | README | x: u8[64,48]; x.T' >"$dir/run/chains.txt"
zeros() { "$B/xt" run "x: $1; x.expand($2)" "$dir/one.npy" -o "$dir/run/$3"; }
head="{'descr': '<f2', 'fortran_order': False, 'shape': ()}"
printf '\223NUMPY\001\000\066\000%-53s\n\000\000' "$head" >"$dir/one.npy"
zeros 'f16[]' 2,60,80,3 photos.npy && zeros 'f16[]' 16,64,32,128 new.npy &&
    zeros 'f16[]' 16,32,512,128 cache.npy
check 'files for the commands' $?
sed -n '/^## The command/,/^## When/p' README.md | grep -E '^    (XT_[A-Z]*=[^ ]* )?build/xt ' |
    sed -E "s/   +#.*//; s|build/xt|$B/xt|; s/^ *//" >"$dir/commands"
[ "$(wc -l <"$dir/commands")" -ge 10 ]
check 'README has commands' $?
while read -r line; do
    (cd "$dir/run" && XT_CACHE_DIR=$dir/cache sh -c "$line") >"$dir/out" 2>&1 </dev/null
    status=$?
    if [ $status -ne 0 ] && grep -qi 'nvrtc' "$dir/out"; then
        echo "skipped: $line: $(tail -n 1 "$dir/out")"
        continue
    fi
    check "$line: $(tail -n 1 "$dir/out")" $status
done <"$dir/commands"
for f in planes.npy picture.svg page.html; do
    [ -s "$dir/run/$f" ]
    check "the commands wrote $f" $?
done

# The figures are those of the results.
python3 - <<'END'
import json, math
def rows(name):
    return json.load(open(f"bench/results/{name}.json"))["rows"]
def mean(rows, key):
    x = [math.log(r[key]) for r in rows if r.get(key)]
    return math.exp(sum(x) / len(x))
zen, xeon = rows("cpu-epyc-zen5-1thread"), rows("cpu-xeon-emerald-1thread")
z57, x57 = rows("cpu-epyc-zen5-ttc57-1thread"), rows("cpu-xeon-emerald-ttc57-1thread")
keys = ["ratio_to_limit", "ratio_to_memcpy", "ratio_to_naive", "ratio_to_best_peer"]
for file in "README.md", "bench/README.md":
    text = open(file).read()
    table = text[text.index("| x step by step | x best other |"):].split("\n\n")[0].split("\n")[2:]
    for line in table:
        cells = [c.strip(" *") for c in line.strip("|").split("|")]
        name = cells[0].split(":")[0]
        if name.startswith("geometric mean"):
            want, other = [mean(zen, k) for k in keys], mean(xeon, keys[0])
        elif name.startswith("57 "):
            want, other = [mean(z57, k) for k in keys], mean(x57, keys[0])
        else:
            r = next(r for r in zen if r["name"] == name)
            want, other = [r[k] for k in keys], next(r for r in xeon if r["name"] == name)[keys[0]]
            assert abs(float(cells[1]) - r["bytes_written"] / 1e6) <= 0.5, line
            assert r["where"] == cells[0].split(": ", 1)[1], line
        got = [float(c.split()[0]) for c in cells[2:]]
        for g, w, digits in zip(got, [*want, other], (2, 2, 1, 1, 2)):
            assert abs(g - w) <= 0.51 * 10 ** -digits, (file, line, g, w)
assert min(r["ratio_to_best_peer"] for r in zen + z57 if r.get("ratio_to_best_peer")) > 1
END
check 'the figures are those of bench/results' $?
[ "$(wc -l <README.md)" -le 220 ]
check 'README has at most 220 lines' $?

# Its other lines are chains.
sed -n '/^## The command/,/^## When/p' README.md | sed -n 's/^    \([a-z]*: .*\)$/\1/p' |
    sed -E 's/   +[a-z].*$//' >"$dir/chains"
while read -r chain; do
    "$B/xt" explain "$chain" >"$dir/out" 2>&1
    check "$chain" $?
done <"$dir/chains"
[ -s "$dir/chains" ]
check 'README has chains' $?

# The program of section C.
sed -n '/^```c$/,/^```$/p' README.md | sed '/^```/d' >"$dir/readme.c"
flags=$(case "${SAN:-}" in '') ;; *) echo "-fsanitize=$SAN" ;; esac)
${CC:-cc} -std=c11 $flags -Iinclude "$dir/readme.c" "$B/libxtview.a" -ldl -lm -pthread -o "$dir/readme" &&
    "$dir/readme" >"$dir/out" && [ "$(cat "$dir/out")" = 7 ]
check 'the C program' $?

# The Python section, as doctest reads it.
if ! B=$B sh tests/python_check.sh --build >"$dir/out" 2>&1; then
    cat "$dir/out"
elif python=$(sh tools/bootstrap.sh --python 'sys; assert sys.version_info >= (3, 11); import numpy' 2>&1)
then
    sed -n '/^## Python/,/^## C$/p' README.md >"$dir/python.txt"
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$B/python/lib "$python" -m doctest "$dir/python.txt"
    check 'the Python section' $?
else
    echo "skipped: the Python section: $python"
fi

for f in $(grep -oE '\*\*[a-z/]+(\.h)?\*\*|\]\([a-zA-Z/.]+\)' README.md | sed -E 's/[]*()[]//g'); do
    [ -e "$f" ] || [ -e "include/xt/$(basename "$f")" ]
    check "README names $f" $?
done
for t in run test; do
    grep -q "^$t:" Makefile && grep -q "make $t" README.md
    check "make $t" $?
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
