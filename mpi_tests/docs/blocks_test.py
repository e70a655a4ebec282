"""That the test of the pages' code would notice: blocks without a declaration, unknown keys, output that differs."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from blocks import Block, blocks_of  # noqa: E402
from sessions import missing_lines, script_of  # noqa: E402


def problems(text):
    return [block.problem for block in blocks_of("page.md", text)]


class Blocks(unittest.TestCase):
    def test_a_declared_block_is_found_with_its_keys(self):
        block, = blocks_of("page.md", "words\n<!-- example: one, session s, where TAG=latest A=b, clone -->\n```sh\nls\n```\n")
        self.assertEqual((block.line, block.language, block.text, block.problem), (3, "sh", "ls\n", ""))
        self.assertEqual(block.keys, {"session": "s", "where": "TAG=latest A=b", "clone": ""})

    def test_what_is_not_declared_is_a_problem(self):
        self.assertIn("no <!-- example", problems("```sh\nls\n```\n")[0])
        self.assertIn("no <!-- example", problems("<!-- example: a -->\n\n```sh\nls\n```\n")[0])
        self.assertIn("unknown key", problems("<!-- example: a, scafold b -->\n```c\n```\n")[0])
        self.assertIn("another block", problems("<!-- example: a -->\n```sh\n```\n<!-- example: a -->\n```sh\n```\n")[1])
        self.assertIn("not closed", problems("<!-- example: a -->\n```sh\nls\n")[0])

    def test_a_skip_says_why(self):
        self.assertIn("says why", problems("<!-- example: a, skip -->\n```sh\n```\n")[0])
        self.assertEqual(problems("<!-- example: a, skip: it installs, and that takes minutes -->\n```sh\n```\n"), [""])

    def test_what_must_fail_must_not_succeed(self):
        block = Block("page.md", 1, "sh", "true  # dies\ncp TAG x/TAG\n", "a", {"where": "TAG=t1"})
        self.assertIn("if true; then echo 'this did not fail: true'; exit 1; fi\ncp t1 x/TAG", script_of(block))

    def test_output_is_compared_line_by_line_in_order(self):
        printed = "one   1\ntwo 22 x\nthree\n"
        self.assertIsNone(missing_lines("one 1\n…\nthree\n", printed))
        self.assertIsNone(missing_lines("two … x\n", printed))
        self.assertEqual(missing_lines("three\none 1\n", printed), "one 1")
        self.assertIsNone(missing_lines("[kedge] b\na\n", "a\n[kedge] b\n"))
        self.assertEqual(missing_lines("[kedge] b\n[kedge] a\n", "[kedge] a\n[kedge] b\n"), "[kedge] a")
        self.assertEqual(missing_lines("two 23 …\n", printed), "two 23 …")


if __name__ == "__main__":
    unittest.main()
