#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lint's own test: plants each fault in a small tree and expects it to be told; a clean tree is silent."""
import os
import subprocess
import sys
import tempfile
import unittest

LINT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lint.py")
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"


class LintTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("base/a.h", "#ifndef A_H\n#define A_H\n#include <stdint.h>\nstruct a {\n    uint8_t b;\n};\n#endif\n")
        self.write("net/n.c", '#include "base/a.h"\n')
        self.write("probe/include/millrace/probe.h", "#ifndef P_H\n#define P_H\nvoid mr_call(void);\n#endif\n")

    def write(self, path, text, spdx=SPDX):
        whole = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as file:
            file.write(spdx + text)

    def lint(self):
        done = subprocess.run([sys.executable, LINT, "--root", self.folder.name], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr

    def expect(self, *texts):
        status, output = self.lint()
        self.assertEqual(status, 1, output)
        for text in texts:
            self.assertIn(text, output)
        self.assertIn(f", {len(texts)} faults", output)

    def test_a_clean_tree_is_silent(self):
        status, output = self.lint()
        self.assertEqual(status, 0, output)
        self.assertEqual(output, "3 files, 0 over 400 lines, 0 functions over 60 lines, 0 faults\n")

    def test_an_empty_tree_is_no_success(self):
        for path in ("base/a.h", "net/n.c", "probe/include/millrace/probe.h"):
            os.remove(os.path.join(self.folder.name, path))
        self.assertEqual(self.lint()[0], 1)

    def test_includes_against_the_arrows(self):
        self.write("base/b.c", '#include "net/n.h"\n')
        self.write("probe/p.c", '#include "pipeline/filter.h"\n')
        self.write("pipeline/q.c", '#  include <millrace/probe.h>\n')
        self.write("worker/w.c", '#include "master/m.h"\n')
        self.write("master/m.c", '#include "worker/w.h"\n')
        self.write("master/c.c", '#include "cli/c.h"\n')
        self.write("cli/c.c", '#include "tests/unit/unit_test.h"\n')
        self.expect("base/b.c:2: base/ must not include net/", "probe/p.c:2: probe/ must not include pipeline/",
                    "pipeline/q.c:2: pipeline/ must not include probe/", "worker/w.c:2: worker/ must not include master/",
                    "master/m.c:2: master/ must not include worker/", "master/c.c:2: master/ must not include cli/",
                    "cli/c.c:2: cli/ must not include tests/")

    def test_tests_include_all(self):
        self.write("tests/unit/t.c", '#include "master/m.h"\n#include "cli/c.h"\n')
        self.assertEqual(self.lint()[0], 0)

    def test_an_include_without_its_folder(self):
        self.write("net/o.c", '#include "n.h"\n')
        self.expect('net/o.c:2: include "n.h" by its folder')

    def test_a_header_that_needs_another_before_it(self):
        self.write("net/n.h", "uint8_t f(void);\n")
        self.expect("net/n.h:1: does not compile alone")

    def test_a_header_without_a_guard(self):
        self.write("net/n.h", "struct twice {\n    int a;\n};\n")
        self.expect("net/n.h:1: does not compile alone")

    def test_a_public_header_that_is_no_cxx(self):
        self.write("probe/include/millrace/x.h", "void f(int class);\n")
        self.expect("probe/include/millrace/x.h:1: does not compile alone")

    def test_a_public_header_that_includes_ours(self):
        self.write("probe/include/millrace/x.h", '#include "base/a.h"\n')
        self.expect("probe/include/millrace/x.h:1: does not compile alone")

    def test_a_long_file(self):
        self.write("net/o.c", "int a;\n" * 800)
        self.expect("net/o.c:801: 801 lines")

    def test_a_long_function(self):
        self.write("net/o.c", "void f(void)\n{\n" + "    ;\n" * 99 + "}\n")
        self.expect("net/o.c:3: function of 101 lines")

    def test_long_but_allowed_is_counted(self):
        self.write("net/o.c", "int a;\n" * 500 + "void f(void)\n{\n" + "    ;\n" * 60 + "}\n")
        status, output = self.lint()
        self.assertEqual(status, 0, output)
        self.assertIn("1 over 400 lines, 1 functions over 60 lines", output)

    def test_a_source_without_its_spdx_line(self):
        self.write("net/o.c", "int a;\n", spdx="")
        self.write("scripts/o.sh", "#!/bin/bash\necho\n", spdx="")
        self.write("scripts/p.sh", "echo\n", spdx="#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n")
        self.expect("net/o.c:1: the first line is not the SPDX line", "scripts/o.sh:1: the first line")

    def test_something_unfinished(self):
        self.write("net/o.c", "/* " + "TO" + "DO: more */\n")
        self.expect("net/o.c:2: " + "TO" + "DO: finish it")

    def test_an_extension_outside_its_home(self):
        self.write("net/o.c", "/* __attribute__ in a comment is fine */\n__attribute__((unused)) int a;\n")
        self.write("base/compiler.h", "#ifndef C_H\n#define C_H\n#define MR_X __attribute__((unused))\n#endif\n")
        self.expect("net/o.c:3: __attribute__: compiler extensions")

    def test_a_concurrency_table_outside_the_index(self):
        table = "/*\n * field  written by  read by  access\n * tail   producer    any      relaxed\n */\nint a;\n"
        self.write("net/o.c", table)
        self.write("net/p.c", table)
        self.write("docs/CONCURRENCY.md", "| `net/p.c` | tail |\n")
        self.expect("net/o.c:1: its concurrency table is missing")


if __name__ == "__main__":
    unittest.main()
