"""Every kind of error has a class, which carries what the failure said."""
import unittest
from pathlib import Path

import kedge


class Errors(unittest.TestCase):
    def test_every_kind_has_a_class(self):
        header = (Path(__file__).resolve().parents[2] / "include/kedge/error.hpp").read_text()
        names = header[header.index("enum class ErrorCode") :].split("};")[0]
        for line in names.splitlines()[1:]:
            code = line.split("//")[0].split("=")[0].strip(" ,")
            if code:
                error = kedge._errors.from_failure(code, "m", 3, "/p", 28, "text")
                self.assertEqual((error.code, error.rank, error.path, error.system_errno, str(error)),
                                 (code, 3, "/p", 28, "text"))
                self.assertIsNot(type(error), kedge.Error, code)


if __name__ == "__main__":
    unittest.main()
