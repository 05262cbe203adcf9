#!/usr/bin/env python3
"""pages.py: manual pages and completions, from what there is already.

    pages.py --xt build/xt --out DIR     DIR/man1/xt.1, DIR/man3/libxtview.3 and a page a function,
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


def options(help_text):
    """Of one command, from the lines "  -o, --output FILE  .."."""
    return [o for line in re.findall(r"^  (?:-\w,|   ) --.*", help_text, flags=re.M)
            for o in re.findall(r"--?[a-z][a-z-]*", re.split(r"  +(?=\S)", line.strip() + "  ")[0])]


def bash(found):
    cases = "".join(f"    {name}) options='{' '.join(options)}' ;;\n" for name, options in found.items())
    return (f"# Completion of xt for bash. Generated from `xt help`.\n"
            f"_xt()\n{{\n    local word=${{COMP_WORDS[COMP_CWORD]}} options=\n    COMPREPLY=()\n"
            f"    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
            f"        COMPREPLY=($(compgen -W '{' '.join(found)}' -- \"$word\"))\n        return\n    fi\n"
            f"    case ${{COMP_WORDS[1]}} in\n{cases}    esac\n"
            f"    case $word in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
            f"    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n    esac\n}}\n"
            f"complete -o filenames -F _xt xt\n")


def zsh(found):
    cases = "".join(f"    {name}) options=({' '.join(options)}) ;;\n" for name, options in found.items())
    return (f"#compdef xt\n# Completion of xt for zsh. Generated from `xt help`.\n"
            f"local -a options\n"
            f"if (( CURRENT == 2 )); then\n    compadd -- {' '.join(found)}\n    return\nfi\n"
            f"case $words[2] in\n{cases}esac\n"
            f"if [[ $PREFIX == -* ]]; then\n    compadd -- $options\nelse\n    _files\nfi\n")


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


def functions(headers):
    return sorted({m for h in headers for m in re.findall(r"^XT_API [^;]*?\b(xt_\w+)\(", h.read_text(),
                                                          flags=re.M | re.S)})


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--xt", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    headers = sorted((ROOT / "include/xt").glob("*.h"), key=lambda p: (p.name != "xt.h", p.name))
    version = re.search(r'#define XT_VERSION "([^"]+)"', headers[0].read_text())[1]
    help_text, out = said_by(args.xt, "help"), args.out
    helps = {name: said_by(args.xt, "help", name) for name in commands(help_text)}
    found = {name: options(text) for name, text in helps.items()}
    write(out / "man1/xt.1", command_page(help_text, helps, said_by(args.xt, "help", "chain"),
                                            said_by(args.xt, "env"), version))
    write(out / "man3/libxtview.3", library_page(headers, version))
    for name in functions(headers):
        write(out / f"man3/{name}.3", ".so man3/libxtview.3\n")
    write(out / "xt", bash(found))
    write(out / "_xt", zsh(found))


if __name__ == "__main__":
    main()
