# SPDX-License-Identifier: Apache-2.0
"""A prefix with what `cmake --install` puts there, and the call trees of tests/system/recipes/project built with it."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["MR_SOURCE"], "tests", "system", "lib"))
import system  # pylint: disable=wrong-import-position
import trees  # pylint: disable=wrong-import-position
from system import check

PROJECT = system.SOURCE / "tests" / "system" / "recipes" / "project"
EXPECTED = trees.from_file(PROJECT.parent / "expected.txt")
OUTPUT = "146\n"  # of the project's program
SECONDS = 120
COMPILERS = {"gcc": ("gcc", "g++")}
if shutil.which("clang-14"):
    COMPILERS["clang"] = ("clang-14", "clang++-14")
elif shutil.which("clang"):
    COMPILERS["clang"] = ("clang", "clang++")
IS_X86 = os.uname().machine == "x86_64"
DOORS = ["patchable", "hooks"] if IS_X86 else ["hooks"]


def run(*command, cwd=None, **variables):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MILLRACE_")}
    environment.update({key: str(value) for key, value in variables.items()})
    command = [str(part) for part in command]
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=SECONDS,
                          stdin=subprocess.DEVNULL, check=False)
    check(done.returncode == 0, f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done


class Prefix:
    """Installed below `folder`, as a user has it; `environment` leads to it."""

    def __init__(self, folder):
        self.folder = folder / "prefix"
        run("cmake", "--install", system.BUILD, "--prefix", self.folder)
        self.lib = next(self.folder.glob("**/libmillrace.so")).parent
        self.bin = self.folder / "bin"

    @property
    def environment(self):
        return {"PATH": f"{self.bin}:{os.environ['PATH']}", "PKG_CONFIG_PATH": str(self.lib / "pkgconfig")}


class Bench:
    """One worker and one master for all builds; each is an application of its own."""

    def __init__(self, setup):
        self.setup = setup
        self.master = setup.master()
        self.worker = setup.worker(self.master.endpoint)
        self.apps = []

    def trace(self, app, program, *arguments):
        done = self.setup.run([program, *arguments], endpoint=self.worker.endpoint, MILLRACE_APP=app)
        check(done.returncode == 0 and not done.stderr, f"{app}: status {done.returncode}: {done.stderr}")
        check(done.stdout == OUTPUT, f"{app} computes {done.stdout}")
        self.apps.append(app)

    def compare(self, expected=None):
        """All that was traced; Failure where a call tree is not as it should be."""
        self.setup.stop(self.worker)
        trees.check_complete(self.master)
        equal = True
        for app in self.apps:
            equal &= trees.compare(app, expected or EXPECTED, trees.from_master(self.master, app))
        check(equal, "call trees differ")


def skip_with_sanitizer():
    if os.environ.get("MR_SANITIZE"):
        print("skipped: a sanitizer's runtime would have to come first")
        return True
    return False
