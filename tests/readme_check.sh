#!/bin/sh
# readme_check.sh: README.md is true. Commands after "$ " print what stands below them; chains of the language
# section parse; the C program compiles and runs; files and targets that are named exist. B: build directory.
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

# The language section's lines are chains.
sed -n '/^## The language/,/^## The API/p' README.md | sed -n 's/^    \([a-z]*: .*\)$/\1/p' |
    sed -E 's/   +[a-z].*$//' >"$dir/chains"
while read -r chain; do
    "$B/xt" explain "$chain" >"$dir/out" 2>&1
    check "$chain" $?
done <"$dir/chains"
[ -s "$dir/chains" ]
check 'README has chains' $?

# The API section's program.
{
    echo '#include <stdio.h>'
    sed -n '/^```c$/,/^```$/p' README.md | sed '/^```/d' | sed -n '/#include/p'
    echo 'int main(void) { static float src[120], dst[120]; src[7] = 7;'
    sed -n '/^```c$/,/^```$/p' README.md | sed '/^```/d; /#include/d'
    echo 'puts(dst[23] == 7 ? "right" : "wrong"); return dst[23] != 7; }'
} >"$dir/readme.c"
flags=$(case "${SAN:-}" in '') ;; *) echo "-fsanitize=$SAN" ;; esac)
${CC:-cc} -std=c11 $flags -Iinclude "$dir/readme.c" "$B/libxtview.a" -ldl -lm -pthread -o "$dir/readme" &&
    ASAN_OPTIONS=detect_leaks=0 "$dir/readme" >"$dir/out"
check 'the API program' $?

# The Python section, as doctest reads it.
if B=$B sh tests/python_check.sh --build >"$dir/out" 2>&1; then
    sed -n '/^## Python/,/^## The API/p' README.md >"$dir/python.txt"
    python=$(sh tools/bootstrap.sh --python 'sys; assert sys.version_info >= (3, 11); import numpy')
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$B/python/lib "$python" -m doctest "$dir/python.txt"
    check 'the Python section' $?
else
    cat "$dir/out"
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
