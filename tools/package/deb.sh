#!/bin/sh
# deb.sh: Debian packages of what was built: libxtview0, libxtview-dev, xt, and python3-xtview where python3
# can build it. The files are install.sh's, without libxtview-mpi, which depends on an MPI. Needs dpkg-dev,
# python3-dev, python3-setuptools. `make deb`.
# Environment: B, VERSION; MAINTAINER.
set -eu
B=${B:-build} MAINTAINER=${MAINTAINER:-xt maintainers <maintainers@xtview.invalid>}
arch=$(dpkg --print-architecture) triple=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
date=$(git log -1 --format=%cD 2>/dev/null || date -R)
out=$B/deb work=$B/deb-work
rm -rf "$out" "$work"
mkdir -p "$out" "$work"

DESTDIR=$work/all PREFIX=/usr LIBDIR=/usr/lib/$triple ZSHDIR=/usr/share/zsh/vendor-completions \
    MANDIR=/usr/share/man MPI=no sh tools/package/install.sh install
strip --strip-unneeded --remove-section=.comment --remove-section=.note \
    "$work/all/usr/lib/$triple"/*.so.*.*.* "$work/all/usr/bin/xt"

take() { # package, paths: from what an install brings
    package=$1
    shift
    for path in "$@"; do
        for f in "$work/all/"$path; do
            to=$work/$package/$(dirname "${f#"$work"/all/}")
            mkdir -p "$to"
            cp -a "$f" "$to/"
        done
    done
}

texts() { # package: what policy wants in its doc directory
    doc=$work/$1/usr/share/doc/$1
    mkdir -p "$doc"
    {
        echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
        echo 'Upstream-Name: xtview'
        echo
        echo 'Files: *'
        echo 'Copyright: 2026 the authors of xtview'
        echo 'License: Apache-2.0'
        echo ' On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.'
    } >"$doc/copyright"
    {
        echo "xtview ($VERSION) unstable; urgency=medium"
        echo
        echo '  * As CHANGELOG.md says.'
        echo
        echo " -- $MAINTAINER  $date"
    } | gzip -9n >"$doc/changelog.gz"
    find "$work/$1" -path '*/man/*' -type f -exec gzip -9n {} +
}

links() { # package: pages that name another become links to it, which need no second reading
    for page in "$work/$1"/usr/share/man/man3/xt_*.3; do
        [ -e "$page" ] || continue
        rm "$page"
        ln -s libxtview.3.gz "$page.gz"
    done
}

depends() { # package, files of it: what they link to, as dependencies
    # shellcheck disable=SC2086 # a pattern below $work
    (cd "$work" && shift && dpkg-shlibdeps -O --ignore-missing-info $* 2>/dev/null) |
        sed 's/^shlibs:Depends=//'
}

build() { # package, section, architecture, depends, short description; long description from standard input
    dir=$work/$1
    texts "$1"
    mkdir -p "$dir/DEBIAN"
    {
        echo "Package: $1"
        echo 'Source: xtview'
        echo "Version: $VERSION"
        echo "Architecture: $3"
        echo "Maintainer: $MAINTAINER"
        echo "Installed-Size: $(du -sk --apparent-size "$dir" | cut -f1)"
        [ -z "$4" ] || echo "Depends: $4"
        echo "Section: $2"
        echo 'Priority: optional'
        echo "Description: $5"
        sed 's/^$/./; s/^/ /'
    } >"$dir/DEBIAN/control"
    (cd "$dir" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    find "$dir" -type d -exec chmod 755 {} +
    dpkg-deb --root-owner-group --build "$dir" "$out" >/dev/null
    echo "  DEB  $out/${1}_${VERSION}_$3.deb"
}

long='A chain of views - permute, reshape, slice with steps, pad, concat,
windows, masks - is fused into one index map, and that is copied by a
kernel made for it: on processors by vector instructions chosen at run
time, on NVIDIA GPUs by code compiled at run time, where the driver and
NVRTC are found.'

take libxtview0 "usr/lib/$triple/libxtview.so.*" usr/libexec/xtview/xt-cc
[ ! -e "$work/all/usr/share/xtview" ] || take libxtview0 usr/share/xtview
mkdir -p "$work/libxtview0/DEBIAN"
echo 'libxtview 0 libxtview0 (>= 0.1.0)' >"$work/libxtview0/DEBIAN/shlibs"
echo 'activate-noawait ldconfig' >"$work/libxtview0/DEBIAN/triggers"
mkdir -p "$work/debian"
printf 'Source: xtview\n\nPackage: libxtview0\nArchitecture: any\n' >"$work/debian/control"
lib=libxtview0/usr/lib/$triple/libxtview.so.$VERSION
echo "$long" | build libxtview0 libs "$arch" "$(depends libxtview0 "$lib")" \
    'compiles chains of views into one copy - library'

take libxtview-dev usr/include "usr/lib/$triple/libxtview.a" "usr/lib/$triple/libxtview.so" \
    "usr/lib/$triple/pkgconfig" "usr/lib/$triple/cmake" usr/share/man/man3
links libxtview-dev
printf '%s\n\nThis package has the headers, the static library and the manual.\n' "$long" |
    build libxtview-dev libdevel "$arch" "libxtview0 (= $VERSION), libc6-dev" \
        'compiles chains of views into one copy - development files'

take xt usr/bin usr/share/man/man1 usr/share/bash-completion usr/share/zsh
printf '%s\n\nThis package has the command xt, which copies .npy files and explains chains.\n' "$long" |
    build xt utils "$arch" "$(depends xt xt/usr/bin/xt)" 'compiles chains of views into one copy - command'

# The system's Python: the module is for it, whichever other one builds the library.
python3_xtview() {
    [ -e python/setup.py ] || return 1
    mkdir -p "$work/source"
    cp -r python include "$work/source/" && rm -rf "$work/source/python/build"
    site=$(realpath "$work")/python3-xtview/usr/lib/python3/dist-packages
    mkdir -p "$site"
    library=$(realpath "$B")/libxtview.a
    (cd "$work/source/python" && XTVIEW_LIB=$library /usr/bin/python3 setup.py -q build --build-lib "$site" \
        egg_info --egg-base "$site") >"$work/python.log" 2>&1 </dev/null || return 1
    rm -f "$site"/xtview.egg-info/SOURCES.txt
    find "$site" -name '*.so' -exec chmod 644 {} +
}
script() { # name, what it does where the command exists: of a package of modules, as dh_python3 writes it
    mkdir -p "$work/python3-xtview/DEBIAN"
    printf '#!/bin/sh\nset -e\nif command -v %s >/dev/null 2>&1; then\n    %s -p python3-xtview\nfi\n' \
        "$2" "$2" \
        >"$work/python3-xtview/DEBIAN/$1"
    chmod 755 "$work/python3-xtview/DEBIAN/$1"
}
if python3_xtview; then
    script postinst py3compile
    script prerm py3clean # what Python wrote beside the modules does not stay behind
    printf '%s\n\nThis package has the Python module xtview, for NumPy and what speaks DLPack.\n' "$long" |
        build python3-xtview python "$arch" \
            "python3 (>= 3.11), $(depends python3-xtview python3-xtview/usr/lib/python3/*/*/*.so)" \
            'compiles chains of views into one copy - Python 3'
else
    echo "  note: no python3-xtview: /usr/bin/python3 cannot build it: $(tail -n 1 "$work/python.log")"
fi
