# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026 the Orrery authors
"""The checks of the tree find what they are there to find."""
import os
import shutil
import tempfile
import unittest

import check_exports
import check_format
import check_headers
import check_layers
import check_documents
import check_english
import check_source
import check_usage

LICENCE = "// SPDX-License-Identifier: BSD-3-Clause\n// Copyright 2026 the Orrery authors\n"


class Tree(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def write(self, path, text):
        os.makedirs(os.path.dirname(f"{self.root}/{path}"), exist_ok=True)
        with open(f"{self.root}/{path}", "w", encoding="utf-8") as out:
            out.write(text)


class Layers(Tree):
    def found(self, path, line):
        self.write("emu/base/log.hpp", "")
        self.write("emu/wire/wire.hpp", "")
        self.write("include/gni/gni_pub.h", "")
        self.write("lib/gni/handles.hpp", "")
        self.write(path, line + "\n")
        return check_layers.problems_of(self.root)[0]

    def test_downwards_is_accepted(self):
        self.assertEqual(self.found("emu/nic/nic.cpp", '#include "emu/wire/wire.hpp"'), [])
        self.assertEqual(self.found("lib/gni/cq.cpp", '#include "emu/nic/nic.hpp"'), [])
        self.assertEqual(self.found("lib/gni/post.cpp", "#include <gni_pub.h>"), [])
        self.assertEqual(self.found("tests/lib/gni/x_test.cpp", '#include "lib/gni/handles.hpp"'), [])

    def test_upwards_is_found(self):
        self.assertEqual(len(self.found("emu/base/up.cpp", '#include "emu/wire/wire.hpp"')), 1)

    def test_sideways_is_found(self):
        self.assertEqual(len(self.found("emu/memory/x.cpp", '#include "emu/job/pe.hpp"')), 1)

    def test_another_api_is_found_however_it_is_written(self):
        self.assertEqual(len(self.found("lib/pmi/x.cpp", '#include "lib/gni/handles.hpp"')), 1)
        self.assertEqual(len(self.found("lib/pmi/x.cpp", '#include "../gni/handles.hpp"')), 1)
        self.assertEqual(len(self.found("lib/pmi/x.cpp", "#include <gni_pub.h>")), 1)

    def test_the_simulator_in_the_nic_is_found(self):
        self.assertEqual(len(self.found("emu/nic/x.cpp", '#include "emu/sim/events.hpp"')), 1)

    def test_an_unknown_layer_is_found(self):
        self.assertEqual(len(self.found("emu/misc/x.cpp", "int x;")), 1)

    def test_an_api_name_in_the_emulator_is_found(self):
        self.assertEqual(len(self.found("emu/nic/x.cpp", "// as GNI_PostFma does")), 1)
        self.assertEqual(self.found("emu/nic/x.cpp", "// the variable PMI_GNI_PTAG"), [])

    def test_an_api_name_in_another_api_is_found(self):
        self.assertEqual(len(self.found("lib/gni/x.cpp", "dmapp_init();")), 1)


class Source(Tree):
    def found(self, path, text):
        self.write(path, text)
        return check_source.problems_of(self.root)[0]

    def test_a_plain_file_is_accepted(self):
        self.assertEqual(self.found("emu/base/a.cpp", LICENCE + '#include "emu/base/a.hpp"\n\n#include <array>\n'), [])

    def test_a_missing_licence_is_found(self):
        self.assertEqual(len(self.found("emu/base/a.cpp", "int a;\n")), 2)

    def test_a_long_line_and_a_long_file_are_found(self):
        self.assertEqual(len(self.found("emu/base/a.cpp", LICENCE + "// " + "x" * 108 + "\n")), 1)
        self.assertEqual(len(self.found("emu/base/a.cpp", LICENCE + "\n" * 500)), 1)

    def test_words_that_do_not_belong_here_are_found(self):
        for words in ("see /" + "work/x", "/" + "root/x", "TO" + "DO", "good enough fo" + "r now", "iss" + "ue 12"):
            self.assertEqual(len(self.found("docs/a.md", words + "\n")), 1, words)
        self.assertEqual(self.found("docs/a.md", "does the work/x of a network/work/x\n"), [])

    def test_include_order(self):
        own, ours, std, system = '#include "a/x.hpp"\n', '#include "a/y.hpp"\n', "#include <array>\n", "#include <poll.h>\n"
        test = '#include <gtest/gtest.h>\n'

        def order(*blocks):
            return check_source.include_order("a/x.cpp", "\n".join(blocks).splitlines())
        self.assertEqual(order(own, ours, std, system), [])
        self.assertEqual(order(own, test, std, system), [])
        self.assertEqual(order(own, std, system, test), [])
        self.assertEqual(len(order(own, system, std)), 1)
        self.assertEqual(len(order(std, ours)), 1)
        self.assertEqual(len(order(own, ours + std)), 1)
        self.assertEqual(len(order(std, system, std)), 2)

    def test_a_header_without_pragma_once_is_found(self):
        self.assertEqual(len(self.found("emu/base/a.hpp", LICENCE + "int a();\n")), 1)


class Format(Tree):
    def test_a_badly_formatted_file_is_found(self):
        clang_format = shutil.which("clang-format")
        if not clang_format:
            self.skipTest("no clang-format")
        self.write(".clang-format", "BasedOnStyle: Google\n")
        self.write("a.cpp", "int a;\n")
        self.assertEqual(check_format.problems_of(self.root, clang_format), ([], 1))
        self.write("b.cpp", "int   b ;\n")
        self.assertNotEqual(check_format.problems_of(self.root, clang_format)[0], [])


class Headers(Tree):
    def found(self, path, text):
        self.write(path, text)
        return check_headers.problems_of(self.root, f"{self.root}/build", [("gcc", "g++")], [])[0]

    def test_a_header_that_needs_another_is_found(self):
        self.assertEqual(self.found("emu/base/a.hpp", "#pragma once\n#include <string>\nstd::string a();\n"), [])
        self.assertEqual(len(self.found("emu/base/b.hpp", "#pragma once\nstd::string b();\n")), 1)

    def test_a_header_without_a_guard_is_found(self):
        self.assertEqual(len(self.found("emu/base/b.hpp", "struct b {};\n")), 1)

    def test_what_is_precompiled_hides_nothing(self):
        launcher, check_headers.LAUNCHER = check_headers.LAUNCHER, []
        worthwhile, check_headers.WORTHWHILE = check_headers.WORTHWHILE, 1
        try:
            self.assertEqual(self.found("emu/base/a.hpp", "#pragma once\n#include <string>\nstd::string a();\n"), [])
            through = '#pragma once\n#include "emu/base/a.hpp"\nstd::string b();\n'
            self.assertEqual(self.found("emu/base/b.hpp", through), [])
            self.assertEqual(check_headers.standard(self.root, "emu/base/b.hpp", {}), {"string"})
            lacks = "#pragma once\n#include <string>\nstd::shared_ptr<int> c();\n"
            self.assertEqual(len(self.found("emu/base/c.hpp", lacks)), 1)
            self.assertEqual(len(self.found("emu/base/d.hpp", "#pragma once\nstd::string d();\n")), 2)
        finally:
            check_headers.LAUNCHER, check_headers.WORTHWHILE = launcher, worthwhile

    def test_a_c_header_with_cpp_in_it_is_found(self):
        self.assertEqual(self.found("include/gni/a.h", "#pragma once\nint a(void);\n"), [])
        self.assertEqual(len(self.found("include/gni/b.h", "#pragma once\nnamespace b {}\n")), 1)


class Documents(Tree):
    def found(self, text, path="docs/a.md"):
        self.write("LICENSE", "")
        self.write("emu/base/wait.hpp", "")
        self.write(path, text)
        return check_documents.problems_of(self.root)[0]

    def test_what_is_there_is_accepted(self):
        self.assertEqual(self.found("# A b\n[x](../LICENSE) [y](#a-b) `emu/base/wait` `emu/{base}/wait.hpp` `lib/orrery`\n"), [])

    def test_dead_links_paths_headings_and_commands_are_found(self):
        for text in ("[x](none.md)", "[x](#none)", "`emu/base/none.hpp`", "\n    tools/none.sh # runs\n"):
            self.assertEqual(len(self.found(text)), 1, text)

    def test_a_long_line_is_found(self):
        self.assertEqual(self.found("x" * 120), [])
        self.assertEqual(len(self.found("x" * 121)), 1)

    def test_a_sentence_without_a_subject_of_the_code_is_found(self):
        self.assertEqual(len(self.found("Nobody waits.")), 1)
        self.assertEqual(self.found("`who` waits."), [])

    def test_a_dead_path_in_a_comment_is_found(self):
        self.assertEqual(self.found("// as emu/base/wait.hpp says\n", "emu/base/a.cpp"), [])
        self.assertEqual(len(self.found("// as docs/none.md says\n", "emu/base/a.cpp")), 1)


class English(Tree):
    def found(self, text, path="emu/base/a.hpp"):
        self.write(path, text)
        return check_english.problems_of(self.root)[0]

    def test_a_comment_without_a_subject_of_the_code_is_found_at_its_place(self):
        for text in ("\n// Whoever waits.\n", "\nint a;  // nobody waits\n", "/* A lock\n * that everybody takes. */\n"):
            problems = self.found(text)
            self.assertEqual(len(problems), 1, text)
            self.assertTrue(problems[0].startswith("emu/base/a.hpp:2: "), problems[0])
        self.assertEqual(len(self.found("// The short way of a put.\n")), 1)

    def test_code_quotations_and_sources_are_not_read(self):
        for text in ('int who = f("nobody");\n', "// `who` is a name\n", '// "who am I"\n', "char a = '\"'; int who;\n"):
            self.assertEqual(self.found(text), [], text)
        self.assertEqual(len(self.found("#pragma once\n", "emu/base/b.hpp")), 0)
        self.assertEqual(self.found("// Nobody.\n", "emu/base/a.cpp"), [])


class Exports(unittest.TestCase):
    MAP = "# comment\nV_0 {\n  global:\n    f;\n    orrery_*;\n};\nV_P { global: _ZN6orrery*; local: *; };\n"

    def found(self, *symbols):
        return check_exports.compare(list(symbols), *check_exports.patterns_of(self.MAP))

    def test_the_map_is_read(self):
        self.assertEqual(check_exports.patterns_of(self.MAP), (["f", "orrery_*", "_ZN6orrery*"], ["V_0", "V_P"]))

    def test_what_the_map_names_is_accepted(self):
        self.assertEqual(self.found("V_0", "f", "orrery_x", "_ZN6orrery3log6set_peEi"), [])

    def test_a_leak_is_found(self):
        self.assertEqual(len(self.found("f", "_ZN3fmt2v97vformatEv")), 1)

    def test_a_leak_through_a_wide_map_is_found(self):
        patterns, nodes = ["*"], []
        for name in ("_ZNSt6vectorIiE9push_backEi", "_ZTVN3fmt2v912format_errorE", "_ZSt4swapv", "_ZNSs6appendE"):
            self.assertEqual(len(check_exports.compare([name], patterns, nodes)), 1, name)
        self.assertEqual(check_exports.compare(["_ZN6orrery4openESs"], patterns, nodes), [])

    def test_a_name_that_is_missing_is_found(self):
        self.assertEqual(len(self.found("orrery_x")), 1)


class Usage(Tree):
    def found(self, usage, parameters):
        self.write("emu/base/lamp.hpp", "#pragma once\nnamespace orrery {\n// Usage: " + usage +
                   "\nstruct Lamp { void light(int); };\n}  // namespace orrery\n")
        self.write("tests/usage/parameters.txt", parameters)
        self.write("tests/usage/stand_ins.hpp", "")
        return check_usage.problems_of(self.root, f"{self.root}/build", ["c++"])

    def test_what_compiles_is_accepted(self):
        self.assertEqual(self.found("lamp.light(1);  ...  lamp.light(0)", "emu/base/lamp.hpp: Lamp& lamp\n"), ([], 1))

    def test_what_does_not_is_found_with_its_place(self):
        problems, _ = self.found("lamp.lighten(1);", "emu/base/lamp.hpp: Lamp& lamp\n")
        self.assertEqual(len(problems), 1)
        self.assertIn("emu/base/lamp.hpp:3:", problems[0])

    def test_the_rest_of_a_comment_is_part_of_it(self):
        self.assertTrue(self.found("lamp.light(1);\n// and nothing else", "emu/base/lamp.hpp: Lamp& lamp\n")[0])

    def test_parameters_of_a_header_without_usage_are_found(self):
        self.assertEqual(len(self.found("Lamp().light(1);", "emu/base/old.hpp: int n\n")[0]), 1)


if __name__ == "__main__":
    unittest.main()
