#!/bin/sh
# install.sh: puts what was built in place, or takes it away again.
#   install.sh install|uninstall
# Environment: B, the build directory with package/ made by pages.py; PREFIX, DESTDIR; BINDIR, LIBDIR,
# INCLUDEDIR, MANDIR, BASHDIR, ZSHDIR, LIBEXECDIR, all below PREFIX; STRIP (":": keeps debug information);
# MPI=no: without libxtview-mpi and xt-mpi. The library looks for libexec/xtview and share/xtview one and two
# folders above its own.
set -eu
B=${B:-build} DESTDIR=${DESTDIR:-} PREFIX=${PREFIX:-/usr/local} STRIP=${STRIP:-strip}
BINDIR=${BINDIR:-$PREFIX/bin} LIBDIR=${LIBDIR:-$PREFIX/lib} INCLUDEDIR=${INCLUDEDIR:-$PREFIX/include}
MANDIR=${MANDIR:-$PREFIX/share/man} BASHDIR=${BASHDIR:-$PREFIX/share/bash-completion/completions}
ZSHDIR=${ZSHDIR:-$PREFIX/share/zsh/site-functions} LIBEXECDIR=${LIBEXECDIR:-$PREFIX/libexec/xtview}
here=$(dirname "$0") version=$(sed -n 's/^#define XT_VERSION "\(.*\)"/\1/p' include/xt/xt.h)

put() { # mode, file, destination
    mkdir -p "$(dirname "$3")"
    rm -f "$3"
    cp "$2" "$3"
    chmod "$1" "$3"
}

below() { # a directory, seen from PREFIX
    case $1 in
    "$PREFIX"/*) echo "${1#"$PREFIX"/}" ;;
    *) echo "install.sh: $1 is not below $PREFIX" >&2 && exit 1 ;;
    esac
}

below "$LIBDIR" >/dev/null
below "$INCLUDEDIR" >/dev/null

fill() { # template, destination: paths in it are seen from the destination
    up=$(below "$(dirname "$2")" | sed 's,[^/][^/]*,..,g')
    lib=$(below "$LIBDIR") include=$(below "$INCLUDEDIR")
    mkdir -p "$DESTDIR$(dirname "$2")"
    sed "s,@UP@,$up,; s,@LIB@,$lib,; s,@INCLUDE@,$include,; s,@VERSION@,$version,
         s,@MAJOR@,${version%%.*},; s,@MINOR@,$(echo "$version" | cut -d. -f2)," "$here/$1" >"$DESTDIR$2"
    chmod 644 "$DESTDIR$2"
}

install_mpi() {
    put 644 "$B/libxtview-mpi.so.0" "$DESTDIR$LIBDIR/libxtview-mpi.so.$version"
    $STRIP --strip-unneeded "$DESTDIR$LIBDIR/libxtview-mpi.so.$version"
    ln -sf "libxtview-mpi.so.$version" "$DESTDIR$LIBDIR/libxtview-mpi.so.0"
    ln -sf libxtview-mpi.so.0 "$DESTDIR$LIBDIR/libxtview-mpi.so"
    put 755 "$B/xt-mpi" "$DESTDIR$BINDIR/xt-mpi"
    $STRIP "$DESTDIR$BINDIR/xt-mpi"
    put 644 "$B/package/mpi/xt-mpi.1" "$DESTDIR$MANDIR/man1/xt-mpi.1"
    put 644 include/xt/xt_mpi.h "$DESTDIR$INCLUDEDIR/xt/xt_mpi.h"
    fill xtview-mpi.pc.in "$LIBDIR/pkgconfig/xtview-mpi.pc"
}

install_all() {
    put 755 "$B/xt" "$DESTDIR$BINDIR/xt"
    put 755 "$B/xt-cc" "$DESTDIR$LIBEXECDIR/xt-cc"
    put 644 "$B/libxtview.so.0" "$DESTDIR$LIBDIR/libxtview.so.$version"
    put 644 "$B/libxtview.a" "$DESTDIR$LIBDIR/libxtview.a"
    [ ! -e "$B/xtview.xtpack" ] || put 644 "$B/xtview.xtpack" "$DESTDIR$PREFIX/share/xtview/xtview.xtpack"
    $STRIP "$DESTDIR$BINDIR/xt" "$DESTDIR$LIBEXECDIR/xt-cc"
    $STRIP --strip-unneeded "$DESTDIR$LIBDIR/libxtview.so.$version"
    $STRIP -g "$DESTDIR$LIBDIR/libxtview.a"
    ln -sf "libxtview.so.$version" "$DESTDIR$LIBDIR/libxtview.so.0"
    ln -sf libxtview.so.0 "$DESTDIR$LIBDIR/libxtview.so"
    for h in include/xt/*.h; do
        [ "${h##*/}" = xt_mpi.h ] || put 644 "$h" "$DESTDIR$INCLUDEDIR/xt/${h##*/}"
    done
    [ ! -e "$B/libxtview-mpi.so.0" ] || [ "${MPI:-}" = no ] || install_mpi
    for page in "$B"/package/man?/*; do
        put 644 "$page" "$DESTDIR$MANDIR/$(basename "$(dirname "$page")")/${page##*/}"
    done
    put 644 "$B/package/xt" "$DESTDIR$BASHDIR/xt"
    put 644 "$B/package/_xt" "$DESTDIR$ZSHDIR/_xt"
    fill xtview.pc.in "$LIBDIR/pkgconfig/xtview.pc"
    fill xtviewConfig.cmake.in "$LIBDIR/cmake/xtview/xtviewConfig.cmake"
    fill xtviewConfigVersion.cmake.in "$LIBDIR/cmake/xtview/xtviewConfigVersion.cmake"
}

# What an install would bring is taken away; directories of its own, too.
uninstall() {
    real=$DESTDIR DESTDIR=$(mktemp -d) STRIP=:
    trap 'rm -rf "$DESTDIR"' EXIT
    install_all
    (cd "$DESTDIR" && find . -type f -o -type l) | while read -r f; do rm -f "$real/$f"; done
    rmdir "$real$LIBEXECDIR" "$real$INCLUDEDIR/xt" "$real$LIBDIR/cmake/xtview" "$real$PREFIX/share/xtview" \
        2>/dev/null || true
}

case ${1:-} in
install) install_all ;;
uninstall) uninstall ;;
*) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
