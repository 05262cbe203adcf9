#!/bin/sh
# bootstrap.sh: finds what this machine lacks to build, run or test xt, and installs it where it can.
#   bootstrap.sh build|run|test|deb|proof|cover|fuzz|san   silent and quick when nothing is missing; apt-get
#                                    (root, or through sudo) when something is;
#                                    elsewhere one message with the command to type, exit 1
#   bootstrap.sh --python [MODULE]   prints a python3 that can import MODULE (jinja2): $PYTHON if it can, the
#                                    one on PATH, the system's (a pyenv python may hide the one apt serves)
#   bootstrap.sh nvrtc DIR           NVRTC from PyPI into DIR, for tests on a machine that has none
#   bootstrap.sh --check-libs        prints the flags that compile and link a test that uses <check.h>
# Environment: CC, PYTHON, BOOTSTRAP=no: installs nothing. Nothing is cached: each call tests the machine.

# Each thing that can be missing, and the packages that have it: a comma stands for a space, - for none.
packages_table() {
    cat <<'END'
item    apt-get                 dnf                pacman        apk           zypper             brew
make    make                    make               make          make          make               make
cc      gcc,libc6-dev           gcc,glibc-devel    gcc           gcc,musl-dev  gcc,glibc-devel    gcc
jinja2  python3,python3-jinja2  python3-jinja2     python-jinja  py3-jinja2    python3-Jinja2     -
check   check                   check-devel        check         check-dev     check-devel        check
dpkg    dpkg-dev                -                  -             -             -                  -
headers python3-dev             -                  -             -             -                  -
headers python3-setuptools      -                  -             -             -                  -
numpy   python3-numpy           python3-numpy      python-numpy  py3-numpy     python3-numpy      numpy
python  python3-dev             python3-devel      -             python3-dev   python3-devel      -
python  python3-setuptools      python3-setuptools python-setuptools py3-setuptools python3-setuptools -
python  python3-pytest          python3-pytest     python-pytest py3-pytest    python3-pytest     -
python  python3-hypothesis      python3-hypothesis python-hypothesis py3-hypothesis python3-hypothesis -
proof   frama-c-base,why3,cvc4,z3 -                -             -             -                  -
cover   clang-19,llvm-19,libclang-rt-19-dev -      -             -             -                  -
locale  locales                 glibc-locale-source -             -             -                  -
fuzz    clang,libclang-rt-14-dev -         -             -             -                  -
san     valgrind                valgrind           valgrind      valgrind      valgrind           -
pip     python3-pip             python3-pip        python-pip    py3-pip       python3-pip        -
END
}

packages() { # $1 package manager, the rest items: prints their packages on one line
    manager=$1; shift
    packages_table | awk -v manager="$manager" -v items=" $* " '
        NR == 1 { for (i = 2; i <= NF; i++) if ($i == manager) col = i; next }
        col && index(items, " " $1 " ") && $col != "-" { gsub(",", " ", $col); print $col }' | xargs
}

say() { echo "bootstrap: $*" >&2; }

links() ( # $1 a C program, the rest flags
    dir=$(mktemp -d) || exit 1
    trap 'rm -rf "$dir"' EXIT
    printf '%b\n' "$1" >"$dir/try.c"; shift
    ${CC:-cc} "$dir/try.c" -o "$dir/try" "$@" >/dev/null 2>&1
)

check_libs() { # Debian and Ubuntu have only a static check: what it needs (subunit, floor) is named too
    for libs in '-lcheck -lsubunit -lm -lrt -lpthread' '-lcheck -lm -lrt -lpthread' \
        "$(pkg-config --cflags --libs check 2>/dev/null)"; do
        # shellcheck disable=SC2086 # flags are words
        links '#include <check.h>\nint main(void) { srunner_run_all(srunner_create(0), CK_SILENT); }' $libs &&
            echo "$libs" && return 0
    done
    return 1
}

find_python() { # $1 module
    for python in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
        "$python" -c "import $1" >/dev/null 2>&1 && echo "$python" && return 0
    done
    return 1
}

# The package's tests: headers and modules, of a Python that is new enough or of none.
python_tests() {
    for python in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
        "$python" -c 'import sys, sysconfig, os
sys.exit(sys.version_info >= (3, 11) and not os.path.exists(sysconfig.get_path("include") + "/Python.h"))
' >/dev/null 2>&1 && "$python" -c 'import setuptools, pytest, hypothesis' >/dev/null 2>&1 && return 0
    done
    ! /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

extras() { # $1 package set: prints what is missing of that which only some tests, or a package, need
    if [ "$1" = deb ]; then
        /usr/bin/python3 -c 'import setuptools, sysconfig, os
assert os.path.exists(sysconfig.get_path("include") + "/Python.h")' >/dev/null 2>&1 || echo headers
    fi
    [ "$1" = test ] || return 0
    find_python numpy >/dev/null || echo numpy
    python_tests || echo python
}

commands() { # $1 package set: the programs of it that are not here
    case $1 in
    proof) set -- proof frama-c why3 cvc4 z3 ;;
    cover) # a host whose decimals have commas is made of these
        [ -d /usr/share/i18n/charmaps ] || echo locale
        set -- cover clang-19 llvm-cov-19 llvm-profdata-19 ;;
    fuzz) set -- fuzz clang ;;
    san) set -- san valgrind ;;
    pip) find_python pip >/dev/null || echo pip; return ;;
    *) return ;;
    esac
    set_of=$1; shift
    for program in "$@"; do command -v "$program" >/dev/null || { echo "$set_of"; return; }; done
}

missing() { # $1 package set: prints what is missing of that which nothing works without, sorted
    {
        { find_python jinja2 >/dev/null || echo jinja2; } & # beside the compiler, to answer sooner
        command -v make >/dev/null || command -v gmake >/dev/null || echo make
        [ "$1" != deb ] || command -v dpkg-architecture >/dev/null || echo dpkg
        if [ "$1" != test ] || ! check_libs >/dev/null; then
            links '#include <stdio.h>\nint main(void) { return puts("") < 0; }' || echo cc
            [ "$1" != test ] || echo check
        fi
        commands "$1"
        wait
    } | sort | xargs
}

apt() { # quiet; what it said is in $log. dpkg wants sbin on PATH
    log=$($sudo env DEBIAN_FRONTEND=noninteractive PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin" \
        apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 -o Acquire::Retries=1 \
        -o DPkg::Lock::Timeout=300 "$@" </dev/null 2>&1)
}

apt_install() { # packages; a failing update is no error, it may be another repository's
    say "installing $* (${sudo:+$sudo }apt-get)"
    ls /var/lib/apt/lists/*_Packages* >/dev/null 2>&1 || apt update
    apt install "$@" || { apt update; apt install "$@"; } || { echo "$log" >&2; return 1; }
}

tell() { # $1 why nothing was installed, the rest items: says what to type, fails
    why=$1; shift
    for manager in apt-get dnf pacman apk zypper brew none; do command -v "$manager" >/dev/null && break; done
    case $manager in pacman) verb=-S ;; apk) verb=add ;; *) verb=install ;; esac
    as=$([ "$(id -u)" = 0 ] || [ "$manager" = brew ] || echo 'sudo ')
    line=$(packages "$manager" "$@")
    line=${line:+$as$manager $verb $line}
    case "$manager $*" in brew*jinja2*) line="${line:+$line; }python3 -m pip install jinja2" ;; esac
    say "missing: $*; $why. ${line:+To install, type: $line}"
    return 1
}

bootstrap() { # $1 package set
    items=$(missing "$1") extra=
    [ -n "$items" ] || extra=$(extras "$1" | xargs) # else python3 may come with the items
    [ -n "$items$extra" ] || return 0
    sudo='' why=''
    if [ "${BOOTSTRAP:-}" = no ]; then why='BOOTSTRAP=no'
    elif ! command -v apt-get >/dev/null; then why='no apt-get here'
    elif [ "$(id -u)" = 0 ]; then :
    elif sudo -n true 2>/dev/null; then sudo='sudo -n'
    elif [ -t 0 ] && command -v sudo >/dev/null; then sudo=sudo
    else why='installing takes root, or sudo without a password'
    fi
    # shellcheck disable=SC2046,SC2086 # packages and items are words
    if [ -n "$items" ]; then
        if [ -z "$why" ]; then apt_install $(packages apt-get $items) || why='apt-get failed'; fi
        [ -z "$why" ] || { tell "$why" $items; return 1; }
        items=$(missing "$1") extra=$(extras "$1" | xargs)
        [ -z "$items" ] || { say "installed, and still missing: $items (CC=${CC:-cc})"; return 1; }
    fi
    # shellcheck disable=SC2046,SC2086
    [ -z "$extra" ] || { [ -z "$why" ] && apt_install $(packages apt-get $extra); } ||
        say "note: missing for a part, which says \"skipped\" or \"note\": $(packages apt-get $extra)"
}

nvrtc() { # $1 directory: NVRTC 13 for this processor, no other file of the machine changes
    ls "$1"/nvidia/cu13/lib/libnvrtc.so.13 >/dev/null 2>&1 && return 0
    bootstrap pip || return 1
    say "installing nvidia-cuda-nvrtc 13 into $1 (pip)"
    PIP_ROOT_USER_ACTION=ignore "$(find_python pip)" -m pip -q install --no-deps --target "$1" \
        'nvidia-cuda-nvrtc==13.*' >&2
}

case ${1:-} in
nvrtc) nvrtc "${2:?directory}" ;;
build | run | test | deb | proof | cover | fuzz | san) bootstrap "$1" ;;
--python) find_python "${2:-jinja2}" || tell 'no python3 here can import it' "${2:-jinja2}" ;;
--check-libs) check_libs || tell 'no flags link it' check ;;
*) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
