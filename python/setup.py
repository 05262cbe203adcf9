"""setup.py: builds libxtview.a in the repository above, by its Makefile, and links it into one extension of
the stable ABI, so that one wheel serves Python 3.11 and all later ones. XTVIEW_LIB: a library made before. A
source distribution has what that takes in library/."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

here = Path(__file__).resolve().parent
root = here / "library" if (here / "library").is_dir() else here.parent
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    sys.exit("xtview: free-threaded Pythons have no stable ABI, and xtview's tables need the GIL")


def version():
    return re.search(r'#define XT_VERSION "([^"]+)"', (root / "include/xt/xt.h").read_text())[1]


class Build(build_ext):
    def run(self):
        if "XTVIEW_LIB" not in os.environ:
            # This Python has jinja2, and a make that runs this must not lend its flags.
            env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
            env["PYTHON"] = sys.executable
            subprocess.run(["make", f"-j{os.cpu_count() or 1}", "lib"], cwd=root, check=True, env=env)
        super().run()
        helper = Path(self.build_lib) / "xtview" / "xt-cc"  # of the library, which looks beside itself
        self.copy_file(str(Path(library).parent / "xt-cc"), str(helper))
        subprocess.run(["strip", str(helper)], check=False)


class Source(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        os.makedirs(f"{base_dir}/library", exist_ok=True)
        shutil.copy(root / "Makefile", f"{base_dir}/library")
        for folder in "gen include runtime templates tools".split():
            made = shutil.ignore_patterns("__pycache__")
            shutil.copytree(root / folder, f"{base_dir}/library/{folder}", ignore=made)


library = os.environ.get("XTVIEW_LIB", str(root / "build/libxtview.a"))
core = Extension(
    "xtview._core",
    sorted(str(p.relative_to(here)) for p in (here / "src/core").glob("*.c")),
    include_dirs=[str(root / "include")],
    extra_objects=[library],
    depends=[library, "src/core/core.h", *map(str, (root / "include/xt").glob("*.h"))],
    libraries=["dl", "m"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    py_limited_api=True,
    extra_compile_args="-std=c11 -O2 -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter".split(),
    extra_link_args=["-pthread", "-Wl,--exclude-libs,ALL", "-Wl,--gc-sections", "-Wl,-s"],
)
setup(
    version=version(),
    ext_modules=[core],
    cmdclass={"build_ext": Build, "sdist": Source},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
