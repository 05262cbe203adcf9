"""lint.py: the rules of the house that a machine can check. `make lint`; names every line that breaks one.

  layers      a file of runtime/ includes its own layer or lower; tools, bench, examples, python only <xt/*.h>
  circles     no files of base, graph, plan need each other in a circle, by what their objects define and call
  headers     each header compiles alone, as C11; the public ones also as C++11
  public      the shared library exports what the headers declare, no more: runtime/xtview.map lists it
  abi         sizes, places and constants of the public header are those of tests/abi.txt
  cases       the tests that tests/cases.md names are there
  names       nothing in runtime/ prints, exits or aborts; memory comes from xti_alloc
  order       what checked arithmetic writes is not read by the other operand of & or |, which may come first
  text        no tabs, no trailing blanks, 110 columns, no #if 0, no open markers
  generated   nothing generated is committed
"""
import os
import re
import subprocess
import sys
import sysconfig
import tempfile

LAYER = {"base": 0, "graph": 1, "map": 2, "plan": 3, "cpu": 4, "cuda": 4, "cache": 5, "shard": 5, "files": 6,
         "api": 6, "mpi": 7}
PYTHON_H = sysconfig.get_path("include")
COLUMNS = 110
MEMBERS = 20
PRINTS = re.compile(r"(?<![\w.>])(printf|puts|putchar|exit|abort|_exit|perror|malloc|calloc|realloc|strdup"
                    r"|free)\s*\(")
MAY = {  # the files that may, and what
    "runtime/mpi/mpi.c": {"calloc", "malloc", "free"},  # a library of its own
    "runtime/mpi/memory.c": {"calloc", "malloc", "free"},
    "runtime/base/mem.c": {"malloc", "calloc", "realloc", "free"},
}
ORDER = re.compile(r"xti_\w+64\([^;]*?&(\w+)\)\s*[&|](?![&|=])[^;]*\b\1\b")
OPEN = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|^#if 0")

problems = []


def say(path, line, text):
    problems.append(f"{path}:{line}: {text}")


def tracked():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if out.returncode:
        return sorted(os.path.join(d, f)[2:] for d, _, fs in os.walk(".") for f in fs if d[:7] != "./build")
    return sorted(f for f in set(out.stdout.split("\n")) if f and os.path.exists(f))


def includes(text):
    for n, line in enumerate(text.split("\n"), 1):
        m = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if m:
            yield n, m.group(1)


def check_layers(path, text):
    parts = path.split("/")
    if parts[0] == "runtime":
        mine = LAYER.get(parts[1])
        if mine is None:
            say(path, 1, f"runtime/{parts[1]} is not a layer")
            return
        for n, inc in includes(text):
            other = inc.split("/")[0]
            if other in LAYER and (LAYER[other] > mine or (LAYER[other] == mine and other != parts[1])):
                say(path, n, f"{parts[1]} (layer {mine}) includes {inc} (layer {LAYER[other]})")
    elif parts[0] in ("tools", "bench", "examples", "python") and path != "tools/xt-cc.c":  # the library's
        for n, inc in includes(text):
            if inc.split("/")[0] in LAYER:
                say(path, n, f"{parts[0]}/ includes {inc}: only <xt/xt.h>")


def check_calls(path, text):
    if not path.startswith("runtime/"):
        return
    plain = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
    plain = re.sub(r'"(?:[^"\\\n]|\\.)*"', lambda m: '"' + " " * (len(m.group()) - 2) + '"', plain)
    for n, line in enumerate(plain.split("\n"), 1):
        for m in PRINTS.finditer(line):
            if m.group(1) not in MAY.get(path, ()):
                say(path, n, f"{m.group(1)} in the library")
    for m in ORDER.finditer(plain):
        say(path, plain.count("\n", 0, m.start()) + 1, f"{m.group(1)} may be read before it is written")


def check_text(path, text):
    for n, line in enumerate(text.split("\n"), 1):
        if "\t" in line and not path.endswith(("Makefile", ".txt")):
            say(path, n, "tab")
        if line.endswith((" ", "\r")):
            say(path, n, "trailing blank")
        if len(line) > COLUMNS and path.endswith((".c", ".h", ".cu", ".py", ".j2", ".sh")):
            say(path, n, f"{len(line)} columns")
        if OPEN.search(line) and not path.endswith((".txt", ".md")):
            say(path, n, "open marker or #if 0")


def structs(text):
    """(name, offset, members) of each struct that is defined; what it holds by an inner struct is one."""
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)
    for m in re.finditer(r"\bstruct (\w+) \{", text):
        depth, members = 1, 0
        for c in text[m.end():]:
            depth += (c in "{([") - (c in "})]")
            members += depth == 1 and c in ";,"
            if not depth:
                break
        yield m.group(1), m.start(), members


def check_structs(path, text):
    """What CPU plans are made of stays small enough to be read at once."""
    if path.startswith(("runtime/plan/", "runtime/cpu/")):
        for name, at, members in structs(text):
            if members > MEMBERS:
                say(path, text.count("\n", 0, at) + 1, f"struct {name}: {members} members")


def mpi_folders():
    """Where mpi.h is, for the one header that needs it; [] where there is none."""
    for asked in (["mpicc", "--showme:incdirs"], ["mpicc", "-show"]):
        try:
            out = subprocess.run(asked, capture_output=True, text=True)
        except OSError:
            return []
        folders = [w.removeprefix("-I") for w in out.stdout.split() if "/" in w]
        if any(os.path.exists(f + "/mpi.h") for f in folders):
            return [f for f in folders if os.path.exists(f + "/mpi.h")]
    return []


def compiles(path, language):
    wants = path.endswith("xt_mpi.h") or path.startswith(("runtime/mpi/", "tools/mpi/"))
    mpi = mpi_folders() if wants else ["."]
    if not mpi:
        return
    with tempfile.TemporaryDirectory() as d:
        folders = [f"-I{d}" for d in ("include", "runtime", ".", "tests")] + ["-isystem", PYTHON_H]
        folders += [f"-isystem{d}" for d in mpi]
        cmd = language + ["-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-fsyntax-only"] + folders
        main = os.path.join(d, "main." + ("cc" if "++" in " ".join(language) else "c"))
        with open(main, "w") as f:
            f.write(f'#include "{os.path.abspath(path)}"\nint main(void) {{ return 0; }}\n')
        out = subprocess.run(cmd + [main], capture_output=True, text=True)
        if out.returncode:
            say(path, 1, f"does not compile alone ({' '.join(language)}): {out.stderr.split(chr(10))[0]}")


def check_map():
    """Each XT_API function of a header is in the linker's list of exports, and nothing else is."""
    path, declared = "runtime/xtview.map", set()
    for header in sorted(set(os.listdir("include/xt")) - {"xt_mpi.h"}):
        with open("include/xt/" + header) as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        declared |= set(re.findall(r"XT_API\b[^;]*?\b(xt_\w+)\(", text))
    with open(path) as f:
        listed = re.findall(r"\b(xt_\w+);", f.read())
    for name in sorted(declared - set(listed)):
        say(path, 1, f"{name} is declared in include/xt and not listed here")
    for name in sorted(set(listed) - declared):
        say(path, 1, f"{name} is listed and declared nowhere")


def public_structs(text):
    return re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.S | re.M)


def public_names(text):
    """C expressions whose values programs have compiled in: sizes, members' places, constants."""
    for name, body in public_structs(text):
        body = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", body)  # of pointers to functions the name alone
        yield f"sizeof(struct {name})"
        for member in re.findall(r"(\w+)(?:\[\w*\])*(?=\s*[,;])", body):
            yield f"offsetof(struct {name}, {member})"
    for body in re.findall(r"\benum(?: \w+)? \{(.*?)\}", text, re.S):
        yield from re.findall(r"\bXT_\w+", body)


def types(text):
    """(what, its type) of each struct and of each type that is named for a pointer to a function."""
    for name, body in public_structs(text):
        yield f"struct {name}", " ".join(body.split())
    for body in re.findall(r"^typedef (?!enum)([^;]*);", text, re.M):
        yield f"typedef {re.search(r'xt_[a-z_]+', body)[0]}", " ".join(body.split())


def signatures(text):
    """(function, its type): what is returned and taken, without the arguments' names."""
    declared = r"XT_API\s+([^;]*?)\b(xt_\w+)\(((?:[^()]|\([^()]*\))*)\);"
    for result, name, taken in re.findall(declared, text, re.S):
        args = [re.sub(r"(?<=[\w*] )\w+$|(?<=\*)\w+$|\b\w+(?=\[)", "", " ".join(a.split()))
                for a in re.split(r",(?![^(]*\))", taken)]
        kind = f"{' '.join(result.split())} ({', '.join(a.strip() for a in args)})"
        yield name, kind


def check_abi(cc):
    """What programs were built with (tests/abi.txt, of x86-64) is so still: sizes, places, constants, types
    of members and functions. With --abi: prints what is. xt_mpi.h has functions alone."""
    path = "tests/abi.txt"
    headers = []
    for header in ["xt.h", "xt_shard.h", "xt_files.h", "xt_mpi.h"]:
        with open("include/xt/" + header) as f:
            headers.append(re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S))
    text = "".join(headers[:3])
    names = list(dict.fromkeys(public_names(text)))
    rows = "\n".join(f'printf("%s %lld\\n", "{n}", (long long)({n}));' for n in names)
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/abi.c", "w") as f:
            f.write("#include <stdio.h>\n#include <xt/xt_files.h>\n#include <xt/xt_shard.h>\n"
                    "int main(void) {\n" + rows + "\n}\n")
        subprocess.run(cc + ["-Iinclude", d + "/abi.c", "-o", d + "/abi"], check=True)
        now = subprocess.run([d + "/abi"], capture_output=True, text=True, check=True).stdout
    now += "".join(f"{name}: {kind}\n" for name, kind in [*types(text), *signatures("".join(headers))])
    if "--abi" in sys.argv:
        sys.exit(print(now, end=""))
    with open(path) as f:
        was, is_now = [dict(re.split(r": | (?=-?\d+$)", line, maxsplit=1) for line in t.splitlines())
                       for t in (f.read(), now)]
    for name in was:
        if is_now.get(name) != was[name]:
            say(path, 1, f"{name} was {was[name]} and is {is_now.get(name, 'gone')}: programs break, "
                         "unless it is the size of a struct that grew at its end")
    for name in sorted(set(is_now) - set(was)):
        say(path, 1, f"{name} is new: write it here (lint.py --abi prints all)")


def check_exports():
    lib = "build/libxtview.so.0"
    if not os.path.exists(lib):
        return
    out = subprocess.run(["nm", "-D", "--defined-only", lib], capture_output=True, text=True).stdout
    for line in out.split("\n"):
        name = line.split(" ")[-1].split("@")[0]
        if name and not name.startswith("XTVIEW_") and not re.match(r"xt_|_init$|_fini$", name):
            say(lib, 1, f"exports {name}")
    check_dynamic(lib)


# Run when the library is loaded: the C runtime's, and libgcc's question to cpuid. None of xt's.
STARTERS = {"frame_dummy", "__cpu_indicator_init"}


def check_dynamic(lib):
    """How it is loaded: it stays once it is there, runs nothing of its own, needs the C library alone, and
    has neither a stack to execute nor text to write."""
    read = lambda tool, *args: subprocess.run([tool, *args, lib], capture_output=True, text=True).stdout
    dynamic, segments = read("readelf", "-dW"), read("readelf", "-lW")
    for what in "NODELETE", "NOW", "[libxtview.so.0]":
        if what not in dynamic:
            say(lib, 1, f"is not linked with {what}")
    for name in re.findall(r"NEEDED.*\[(.*?)\]", dynamic):
        if not re.match(r"(libc|libm|libdl|libpthread|ld-linux[-\w]*)\.so", name):
            say(lib, 1, f"needs {name}")
    if "TEXTREL" in dynamic or not re.search(r"GNU_STACK.* RW ", segments) or "GNU_RELRO" not in segments:
        say(lib, 1, "has text relocations, a stack to execute or no RELRO")
    span = re.search(r"\(INIT_ARRAY\)\s+0x(\w+)\s.*?\(INIT_ARRAYSZ\)\s+(\d+)", dynamic, re.S)
    if span and os.uname().machine == "x86_64":
        first, last = int(span[1], 16), int(span[1], 16) + int(span[2])
        names = {int(v, 16): n for v, n in re.findall(r"^(\w+) [tT] (\w+)$", read("nm"), re.M)}
        moved = re.findall(r"^(\w+)\s+\w+\s+R_X86_64_RELATIVE\s+(\w+)", read("readelf", "-rW"), re.M)
        for at, to in moved:
            if first <= int(at, 16) < last and names.get(int(to, 16)) not in STARTERS:
                say(lib, 1, f"runs {names.get(int(to, 16), to)} when it is loaded")


NO_CIRCLES = ["base", "graph", "plan"]


def calls_between(objects):
    """{file: {file that it needs: a symbol}} by nm; files are named without .o."""
    of, needs = {}, {}
    for path in objects:
        out = subprocess.run(["nm", path], capture_output=True, text=True).stdout
        symbols = [line.split()[-2:] for line in out.splitlines()]
        of.update({name: path[:-2] for kind, name in symbols if kind in "TDRB"})
        needs[path[:-2]] = [name for kind, name in symbols if kind == "U"]
    return {f: {of[s]: s for s in names if of.get(s, f) != f} for f, names in needs.items()}


def check_circles(folder):
    """Takes away, again and again, who needs nobody: what is left lies on circles or above one."""
    at = os.path.join(os.environ.get("B", "build"), "obj/runtime", folder)
    files = [f[:-2] for f in sorted(os.listdir("runtime/" + folder)) if f.endswith(".c")]
    objects = [os.path.join(at, f + ".o") for f in files]
    needs = calls_between([o for o in objects if os.path.exists(o)])
    while free := [f for f in needs if not needs[f]]:
        needs = {f: {n: s for n, s in needs[f].items() if n not in free} for f in needs if f not in free}
    for f, of in needs.items():
        name = os.path.basename(f)
        say(f"runtime/{folder}/{name}.c", 1,
            "in a circle, or above one: " + ", ".join(f"{os.path.basename(n)} ({s})" for n, s in of.items()))


def check_cases(path, text):
    """The tests that a page of tests/ names are there."""
    there = set()
    for name in os.listdir("tests"):
        if name.startswith("test_") and name.endswith(".c"):
            with open("tests/" + name) as f:
                there.update(re.findall(r"START_TEST\((\w+)\)", f.read()))
    for line, row in enumerate(text.split("\n"), 1):
        for name in re.findall(r"\b[a-z0-9]+(?:_[a-z0-9]+){3,}\b", row):
            if name not in there:
                say(path, line, f"there is no test {name}")


def check_generated(path, text):
    if path.startswith("build/") or path.endswith((".o", ".a", ".so", ".ptx", ".cubin", ".pyc")):
        if not path.startswith("tests/ptx/"):
            say(path, 1, "generated file in the tree")


def main():
    cc = os.environ.get("CC", "cc").split()
    files = tracked()
    for path in files:
        try:
            text = open(path, encoding="utf-8").read()
        except (UnicodeDecodeError, IsADirectoryError):
            continue
        check_generated(path, text)
        if path == "tests/cases.md":
            check_cases(path, text)
        if path.endswith((".c", ".h", ".cu", ".j2", ".py", ".sh", "Makefile")):
            check_text(path, text)
        if path.endswith((".c", ".h")):
            check_layers(path, text)
            check_calls(path, text)
            check_structs(path, text)
    for path in files:
        if path.endswith(".h") and (path.split("/")[0] != "python" or os.path.exists(PYTHON_H + "/Python.h")):
            compiles(path, cc + ["-std=c11", "-xc"])
    if subprocess.run(["sh", "-c", "command -v c++ >/dev/null"]).returncode == 0:
        for header in sorted(os.listdir("include/xt")):
            compiles("include/xt/" + header, ["c++", "-std=c++11", "-Wpedantic", "-Wshadow", "-xc++"])
    for folder in NO_CIRCLES:
        check_circles(folder)
    check_map()
    if os.uname().machine == "x86_64":
        check_abi(cc)
    check_exports()
    for p in problems:
        print(p)
    print(f"lint: {len(files)} files, {len(problems)} problems")
    sys.exit(1 if problems else 0)


main()
