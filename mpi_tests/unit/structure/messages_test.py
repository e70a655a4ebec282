"""share/kedge/messages finds what a person can see, and no message has a phrase that Kedge does not use."""

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "share/kedge/messages"
WITHOUT = sys.argv[1:]  # paths that --check leaves out
del sys.argv[1:]


def load():
    loader = importlib.machinery.SourceFileLoader("messages", str(PROGRAM))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("messages", loader))
    loader.exec_module(module)
    return module


messages = load()


class Listing(unittest.TestCase):
    def rows(self, code, path="src/x.cpp"):
        return [(row["kind"], row["text"]) for row in messages.of_source(path, code)]

    def test_lists_known_messages_with_their_kind(self):
        rows = messages.messages()
        self.assertGreater(len(rows), 500)
        known = {(row["file"], row["kind"], row["text"]) for row in rows}
        for one in (
            ("src/base/attempt.hpp", "no_space", "out of memory; give the job more memory or save less per rank"),
            ("src/base/options_fields.cpp", "option", "self, group or any"),
            ("src/format/superblock.cpp", "corrupt", "not a Kedge container: bad magic number"),
            ("src/tools/verify.cpp", "help", "Report only problems"),
            ("src/bindings/fortran/options.f90", "text", "kedge_options_set: call kedge_options_load first"),
            ("share/cmake/kedgeConfig.cmake.in", "configure",
             "Kedge has no component '${kedge_component}'; it has core, testing, kedge, c and fortran"),
            ("spack/spack_repo/kedge/packages/kedge/package.py", "text", "the Fortran module is for programs that use MPI"),
        ):
            self.assertIn(one, known)
        places = [(row["file"], row["line"]) for row in rows]
        self.assertEqual(places, sorted(places))

    def test_joins_adjacent_literals_and_resolves_escapes(self):
        code = 'throw Error(ErrorCode::io, "one \\"two\\"\\n"  // why\n  "three" " four");\nlog.info("a b" + x + "c d");'
        self.assertEqual(self.rows(code), [("io", 'one "two"\nthree four'), ("log info", "a b"), ("log info", "c d")])

    def test_reads_raw_strings_and_not_comments_or_characters(self):
        code = "// \"not this one\"\nconst char q = '\"'; /* \"nor this\" */ auto s = R\"x(raw \"text\" here)x\";"
        self.assertEqual(self.rows(code), [("text", 'raw "text" here')])

    def test_leaves_out_what_nobody_sees(self):
        code = '#include "a b.hpp"\nstatic_assert(sizeof(int) == 4, "on disk as it is");\nauto key = "latest";'
        self.assertEqual(self.rows(code), [])

    def test_knows_helpers_that_throw(self):
        code = 'void refuse(std::string what) { throw Error(Failure{ErrorCode::corrupt, what}); }\n' \
               'void f() { if (x) { y(); refuse("it is damaged"); } }'
        self.assertEqual(self.rows(code), [("corrupt", "it is damaged")])

    def test_lists_what_scripts_print(self):
        rows = messages.of_script("x", "echo \"failed: $*\" >&2\ncat <<'TEXT'\nusage: x\nTEXT\n")
        self.assertEqual([row["text"] for row in rows], ["failed: $*", "usage: x"])

    def test_lists_what_fortran_and_cmake_say(self):
        rows = messages.of_fortran("x", "! not \"this one\"\nwrite (*, \"(a, i0)\") \"a \"\"b\"\" c\", 'it''s d'\n")
        self.assertEqual([(row["line"], row["text"]) for row in rows], [(2, 'a "b" c'), (2, "it's d")])
        rows = messages.of_cmake("x", '# message("not this one")\n\nmessage(FATAL_ERROR "one (two) "\n  "\\"three\\"")\n'
                                      'file(WRITE x "int main(void)")\nset(problem "four five")\n')
        self.assertEqual([(row["line"], row["text"]) for row in rows], [(3, 'one (two) "three"'), (6, "four five")])

    def test_prints_json_and_takes_a_pattern(self):
        found = subprocess.run([PROGRAM, "--json", "bad magic number"], capture_output=True, text=True, check=True)
        rows = json.loads(found.stdout)
        self.assertTrue(rows)
        self.assertTrue(all("bad magic number" in row["text"] and row["line"] > 0 for row in rows))

    def test_can_be_piped_into_what_reads_only_the_first_line(self):
        with subprocess.Popen([PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            self.assertTrue(program.stdout.readline())
            program.stdout.close()
            self.assertEqual(program.stderr.read(), "")


class Phrases(unittest.TestCase):
    def test_sees_each_avoided_phrase(self):
        for text in ("waited in vain for", "cannot be had again", "can be made again", "its first bytes are others",
                     "something else makes files of this name", "is kept for Kedge itself", "was given no place",
                     "this user may not", "could not be looked at", "came to nothing", "was passed over",
                     "two thousand thousands", "{} is no file", "cut from outside", "a strange name",
                     "tells of no commit", "is believed", "the master file", "the folder", "lives for ever",
                     "in small letters"):
            row = {"file": "src/x.cpp", "line": 1, "text": text}
            self.assertEqual(len(messages.check([row], [])) > 0, True, text)
            self.assertEqual(messages.check([row], [], ["src/x"]), [])

    def test_sees_a_phrase_across_lines_of_a_comment(self):
        self.assertEqual(len(messages.check([], [("a.hpp", "/// what is made\n  /// again, later\n")])), 1)
        self.assertIn("a.hpp:1:", messages.check([], [("a.hpp", "/// what is made\n  /// again\n")])[0])

    def test_permits_good_english(self):
        for text in ("there is no option {}", "it is no longer there", "not a file", "share no code"):
            self.assertEqual(messages.phrases_in(text), [])

    def test_no_message_or_page_has_one(self):
        without = [argument for path in WITHOUT for argument in ("--without", path)]
        found = subprocess.run([PROGRAM, "--check", *without], capture_output=True, text=True, check=False)
        self.assertEqual((found.returncode, found.stdout), (0, "no avoided phrase\n"))

    def test_exit_status_is_1_for_findings(self):
        found = subprocess.run([sys.executable, "-B", "-c", f"""
import importlib.machinery, sys
m = importlib.machinery.SourceFileLoader("m", {str(PROGRAM)!r}).load_module()
m.messages = lambda: [dict(file="src/x.cpp", line=7, kind="io", text="waited in vain")]
m.pages = lambda: []
sys.argv = ["messages", "--check"]
sys.exit(m.main())"""], capture_output=True, text=True, check=False)
        self.assertEqual(found.returncode, 1, found.stderr)
        self.assertIn("src/x.cpp:7", found.stdout)


if __name__ == "__main__":
    unittest.main()
