#!/bin/sh
# install_check.sh: what `make install` brings works where it is put and where it is moved to: programs by
# pkg-config and by CMake, shared and static; pages and completions are well formed; uninstall leaves nothing.
# B: build directory.
B=${B:-build}
if [ -n "${SAN:-}" ]; then
    echo 'skipped: installed files with sanitizers'
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0
check() { # description, command ..
    what=$1
    shift
    if "$@" >"$dir/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
        cat "$dir/out"
    fi
}
skip() { echo "skipped: $* is not installed"; }
version=$(sed -n 's/^#define XT_VERSION "\(.*\)"/\1/p' include/xt/xt.h)
says="xtview $version: 1 4 2 5 3 6"
install() { B=$B DESTDIR=$dir/stage PREFIX=/opt/xt sh tools/package/install.sh "$@"; }

check 'install' install install
mkdir "$dir/moved dir" && mv "$dir/stage/opt/xt" "$dir/moved dir/here"
at="$dir/moved dir/here"
check 'the command runs' "$at/bin/xt" explain 'x: u8[2,3]; x.permute(1,0)'
check 'stripped' sh -c '! readelf -S "$1/lib/libxtview.so.0" "$1/bin/xt" | grep -q debug_info' - "$at"
check 'soname' sh -c 'readelf -d "$1/lib/libxtview.so" | grep -q "soname: \[libxtview.so.0\]"' - "$at"

# A prefix without blanks for make, which knows no quotes.
mv "$at" "$dir/at" && at=$dir/at
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH="$at/lib/pkgconfig"
    check 'version' test "$(pkg-config --modversion xtview)" = "$version"
    for link in '' --static; do
        cp -r examples/use "$dir/use$link"
        check "pkg-config builds $link" make -C "$dir/use$link" LINK=$link CC="${CC:-cc}"
        check "and runs $link" test "$(LD_LIBRARY_PATH=$at/lib "$dir/use$link/copy")" = "$says"
    done
    check 'static needs no library' sh -c '! ldd "$1" | grep -q libxtview' - "$dir/use--static/copy"
else
    skip pkg-config
fi
if command -v cmake >/dev/null; then
    check 'cmake configures' cmake -S examples/use -B "$dir/cmake" -DCMAKE_PREFIX_PATH="$at"
    check 'cmake builds' cmake --build "$dir/cmake"
    for program in copy copy_static; do
        check "$program" test "$("$dir/cmake/$program")" = "$says"
    done
    mkdir "$dir/merged" && ln -s "$at/lib" "$dir/merged/lib"
    check 'cmake configures by a link to lib' \
        cmake -S examples/use -B "$dir/cmake-merged" -DCMAKE_PREFIX_PATH="$dir/merged"
    check 'and builds' cmake --build "$dir/cmake-merged"
    sed 's/xtview 0.1/xtview 0.2/' examples/use/CMakeLists.txt >"$dir/use/CMakeLists.txt" 2>/dev/null &&
        check 'cmake refuses another version' \
            sh -c '! cmake -S "$1/use" -B "$1/no" -DCMAKE_PREFIX_PATH="$1/at"' - "$dir"
else
    skip cmake
fi

if command -v groff >/dev/null; then
    for page in "$at/share/man/man1/xt.1" "$at/share/man/man3/libxtview.3"; do
        check "$page" test -z "$(groff -man -ww -z -Tutf8 "$page" 2>&1)"
    done
else
    skip groff
fi
for f in $(sed -n 's/^        \(xt_[a-z_]*\);$/\1/p' runtime/xtview.map); do
    [ -e "$at/share/man/man3/$f.3" ] || check "a page of $f" false
done
complete() { # words: what bash offers for the last one
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _xt; echo "${COMPREPLY[*]}"' - \
        "$at/share/bash-completion/completions/xt" "$@"
}
commands=$("$at/bin/xt" help | sed -n 's/^  xt \([a-z]*\).*/\1/p' | awk '!seen[$0]++' | xargs)
check 'every command completes' test "$(complete xt '')" = "$commands"
check 'options complete' test "$(complete xt emit --a)" = --arch
check 'values complete' test "$(complete xt run --backend c)" = 'cpu cuda'
check 'words complete' test "$(complete xt cache '' | xargs -n 1 | grep -cx -e list -e clear -e path)" = 3
check 'workloads complete' test "$(complete xt bench kv_ap)" = kv_append

refuses() { ! DESTDIR=$dir/beside PREFIX=/usr LIBDIR=/opt/lib B=$B sh tools/package/install.sh install; }
check 'a folder beside the prefix is refused' refuses
check 'and nothing is written then' test ! -e "$dir/beside"
mkdir -p "$dir/stage/opt" && mv "$at" "$dir/stage/opt/xt" && touch "$dir/stage/opt/xt/lib/another"
check 'uninstall' install uninstall
check 'uninstall leaves what is not its own' test -e "$dir/stage/opt/xt/lib/another"
check 'and nothing else' test "$(find "$dir/stage" -type f -o -type l | wc -l)" -eq 1
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
