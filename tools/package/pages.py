#!/usr/bin/env python3
"""pages.py: manual pages and completions, from what there is already.

    pages.py --xt build/xt [--xt-mpi build/xt-mpi] --out DIR
                                         DIR/man1/xt.1, DIR/mpi/xt-mpi.1, DIR/man3/libxtview.3 and a page
                                         a function,
                                         DIR/xt (bash), DIR/_xt (zsh)

xt(1) and the completions come from `xt help`, `xt help COMMAND` and `xt env`, libxtview(3) from the public
headers.
"""
import argparse
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NAMES = {"xt": "compile a chain of views into one copy",
         "xt-mpi": "run a chain over the ranks of an MPI job",
         "libxtview": "compiles chains of views into one copy"}


def roff(text):
    """Any text as roff: nothing in it is a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("^", "\\(ha").replace("~", "\\(ti")
    return "\n".join("\\&" + line if line[:1] in ".'" else line for line in text.split("\n"))


def head(name, section, version):
    return (f'.TH {name.upper()} {section} "" "xtview {version}"\n'
            f".SH NAME\n{name} \\- {roff(NAMES[name])}\n")


def example(text):
    return f".EX\n{roff(text)}\n.EE\n"


def said_by(xt, *words):
    """What the command prints, without this machine's settings."""
    env = {"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent"}
    return subprocess.run([xt, *words], env=env, check=True, capture_output=True, text=True).stdout


# ---------------------------------------------------------------------------------------------- the command
def command_page(help_text, helps, chain_text, env_text, version):
    first, _, rest = help_text.partition("\n")
    out = head("xt", 1, version)
    out += ".SH SYNOPSIS\n.B xt\n.I command\n[\\fIarguments\\fR]\n"
    out += f".SH DESCRIPTION\n{roff(first)}\n.PP\n{example(rest.strip(chr(10)))}"
    out += ".SH COMMANDS\n"
    for text in helps.values():
        synopsis, _, more = text.partition("\n")
        out += f".SS {roff(synopsis)}\n{example(more.strip(chr(10)))}"
    out += f".SH CHAINS\n{example(chain_text.strip(chr(10)))}"
    out += ".SH EXIT STATUS\n0, or 2 after one line on standard error that says what is wrong; below it the\n"
    out += "chain, if the place in it is known.\n.SH ENVIRONMENT\n"
    for row in re.split(r"\n(?=\S)", env_text.strip("\n")):
        name, _, what = row.partition(" ")
        if not name.startswith("XT_"):
            continue
        lines = [re.sub(r"not set; default", "default", line.strip()) for line in what.strip().split("\n")]
        out += f".TP\n.B {roff(name)}\n{roff(lines[0])}\n" + "".join(f".br\n{roff(x)}\n" for x in lines[1:])
    return out + ".SH SEE ALSO\n.BR libxtview (3)\n"


def commands(help_text):
    """Names of the commands, from the lines "  xt NAME .."."""
    return list(dict.fromkeys(re.findall(r"^  xt ([a-z]+)", help_text, flags=re.M)))


def option_rows(help_text):
    """(names, placeholder) of each option of a command, from the lines "  -o, --output FILE  ..": its
    placeholder is "" where it takes no value."""
    for row in re.findall(r"^  ((?:-\w,|   ) --.*?)(?:  .*)?$", help_text, flags=re.M):
        names = re.findall(r"--?[a-z][a-z-]*", row)
        yield names, row.rpartition(names[-1])[2].strip()


def completions(helps, workloads):
    """By what stands before the word: a command, or "COMMAND --option", whose values a placeholder lists."""
    found = {}
    for name, text in helps.items():
        rows = list(option_rows(text))
        alternatives = re.match(r"xt \w+ \[([^]]* \| [^]]*)\]", text)
        words = [w.strip() for w in alternatives[1].split("|")] if alternatives else []
        named = {"COMMAND": list(helps), "NAME": workloads}  # of the others, files: nothing is offered
        found[name] = ([o for names, _ in rows for o in names],
                       [w for word in words for w in named.get(word, [word] if word.islower() else [])])
        for names, placeholder in rows:
            for o in names if "|" in placeholder else ():
                found[f"{name} {o}"] = ([], placeholder.split("|"))
    found["bench"] = (found["bench"][0], workloads)
    return found


def cases(found, is_value, body):
    return "".join(f"    {body(key.replace(' ', chr(92) + ' '), *lists)} ;;\n" for key, lists in found.items()
                   if (" " in key) == is_value)


def bash(found):
    """An option's values where one stands before the word, else options, or words and files."""
    commands = " ".join(key for key in found if " " not in key)
    values = cases(found, True, lambda key, _, words: f"{key}) words='{' '.join(words)}' files=")
    others = cases(found, False, lambda key, options, words:
                   f"{key}) options='{' '.join(options)}' words='{' '.join(words)}'")
    return f"""# Completion of xt for bash. Generated from `xt help`.
_xt()
{{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options= words= files=-f
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{commands}' -- "$word"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
{others}    esac
    case "${{COMP_WORDS[1]}} $before" in
{values}    esac
    case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$words" $files -- "$word")) ;;
    esac
}}
complete -o filenames -F _xt xt
"""


def zsh(found):
    commands = " ".join(key for key in found if " " not in key)
    values = cases(found, True, lambda key, _, words: f"{key}) compadd -- {' '.join(words)}; return")
    others = cases(found, False, lambda key, options, words:
                   f"{key}) options=({' '.join(options)}) others=({' '.join(words)})")
    return f"""#compdef xt
# Completion of xt for zsh. Generated from `xt help`.
local -a options others
if (( CURRENT == 2 )); then
    compadd -- {commands}
    return
fi
case "$words[2] $words[CURRENT-1]" in
{values}esac
case $words[2] in
{others}esac
if [[ $PREFIX == -* ]]; then
    compadd -- $options
else
    compadd -- $others
    _files
fi
"""


# ---------------------------------------------------------------------------------------------- the library
def sections(text):
    """(title, body) of a header: what stands between its ruled lines; the head has no title."""
    parts = re.split(r"/\* -{20,} ([^*]+?) \*/\n", text)
    return [("", parts[0])] + list(zip(parts[1::2], parts[2::2]))


def comment(text):
    """A comment's words, or None where there is more than one."""
    m = re.fullmatch(r"/\*(.*?)\*/\s*", text, flags=re.S)
    return None if not m or "*/" in m[1] else "\n".join(
        re.sub(r"^ \* ?", "", line) for line in m[1].strip().split("\n"))


DIRECTIVES = re.compile(r"^#(if|endif|ifdef|ifndef|else|include|define XT_\w+_H$|define XT_API).*\n?", re.M)


def body(text):
    out = ""
    for block in re.split(r"\n{2,}", text.strip("\n")):
        block = DIRECTIVES.sub("", block)
        block = re.sub(r'^extern "C" \{\n?|^\}\n?$', "", block, flags=re.M) if '"C"' in block else block
        words = re.match(r"(/\*(?:(?!\*/).)*\*/)\n", block + "\n", flags=re.S)
        said = comment(words[1]) if words else None
        if said:
            out += f".PP\n{example(said) if re.search(r'^ {3,}', said, flags=re.M) else roff(said) + chr(10)}"
            block = block[len(words[1]):].strip("\n")
        block = block.replace("XT_API ", "")
        out += f".PP\n{example(block)}" if block.strip() else ""
    return out


def library_page(headers, version):
    out = head("libxtview", 3, version)
    out += ".SH SYNOPSIS\n" + example("\n".join(f"#include <xt/{h.name}>" for h in headers)
                                      + "\n\ncc program.c $(pkg-config --cflags --libs xtview)")
    for header in headers:
        for title, text in sections(header.read_text()):
            if not title:
                intro = comment(re.match(r"/\*.*?\*/", text, flags=re.S)[0])
                text = text[text.index("*/") + 2:]
                title = "DESCRIPTION" if header == headers[0] else f"xt/{header.name}"
                out += f".SH {roff(title.upper())}\n{example(intro)}"
            else:
                out += f".SH {roff(title.upper())}\n"
            out += body(text)
    return out + ".SH SEE ALSO\n.BR xt (1)\n"


def mpi_page(command, version):
    """xt-mpi(1): its help needs no mpirun."""
    first, _, rest = said_by(command, "--help").partition("\n")
    out = head("xt-mpi", 1, version)
    out += f".SH SYNOPSIS\n.B mpirun xt-mpi\n.I command\n.SH DESCRIPTION\n{roff(first)}\n"
    out += f".PP\n{example(rest.strip(chr(10)))}.SH COMMANDS\n"
    for name in re.findall(r"^  mpirun -n N xt-mpi (\w+)", rest, flags=re.M):
        synopsis, _, more = said_by(command, name, "--help").partition("\n")
        out += f".SS {roff(synopsis)}\n{example(more.strip(chr(10)))}"
    return out + ".SH SEE ALSO\n.BR xt (1)\n"


def functions(headers):
    return sorted({m for h in headers for m in re.findall(r"^XT_API [^;]*?\b(xt_\w+)\(", h.read_text(),
                                                          flags=re.M | re.S)})


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--xt", required=True)
    parser.add_argument("--xt-mpi")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    headers = sorted((ROOT / "include/xt").glob("*.h"), key=lambda p: (p.name != "xt.h", p.name))
    version = re.search(r'#define XT_VERSION "([^"]+)"', headers[0].read_text())[1]
    help_text, out = said_by(args.xt, "help"), args.out
    helps = {name: said_by(args.xt, "help", name) for name in commands(help_text)}
    workloads = [line.split()[0] for line in said_by(args.xt, "bench", "--list").splitlines() if line.strip()]
    found = completions(helps, workloads)
    write(out / "man1/xt.1", command_page(help_text, helps, said_by(args.xt, "help", "chain"),
                                            said_by(args.xt, "env"), version))
    write(out / "man3/libxtview.3", library_page(headers, version))
    for name in functions(headers):
        write(out / f"man3/{name}.3", ".so man3/libxtview.3\n")
    if args.xt_mpi:
        write(out / "mpi/xt-mpi.1", mpi_page(args.xt_mpi, version))
    write(out / "xt", bash(found))
    write(out / "_xt", zsh(found))


if __name__ == "__main__":
    main()
