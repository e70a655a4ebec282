"""That every public symbol of include/kedge is documented, enumerators too: runs Doxygen as the site does, and fails on
any warning.

reference_test.py SOURCE_DIR. Exit status 77 if Doxygen is not installed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

# In a header of its own, to see that the test notices: each line is one thing that nobody described.
UNDOCUMENTED = """
namespace kedge {
struct Nobody { int knows = 0; };
/// Of these two only one is described: first.
enum class Which { first, second };
void called();
}
"""


def doxygen(source_dir, inputs, directory):
    """(its warnings, the directory of its XML)."""
    config = (source_dir / "share/doc/site/Doxyfile").read_text()
    config += f"\nINPUT = {' '.join(map(str, inputs))} share/doc/site/reference.dox\nGENERATE_HTML = NO\nGENERATE_XML = YES\nXML_PROGRAMLISTING = NO\n"
    environment = {**os.environ, "KEDGE_VERSION": "0", "KEDGE_REFERENCE_DIRECTORY": str(directory)}
    done = subprocess.run(["doxygen", "-"], input=config, cwd=source_dir, env=environment, text=True, timeout=120,
                          capture_output=True)
    warnings = (directory / "warnings.txt").read_text().strip().split("\n")
    if done.returncode != 0 or done.stderr.strip():
        warnings.append(f"doxygen ended with status {done.returncode}: {done.stderr.strip()}")
    return [line for line in warnings if line], directory / "xml"


def text_of(element):
    return " ".join(" ".join(part.itertext()) for part in element.findall("briefdescription") +
                    element.findall("detaileddescription"))


def undocumented_enumerators(xml):
    """Those without a text of their own that the text of their enumeration does not name either. (Doxygen 1.9.4 does not
    ask for them.)"""
    found = set()
    for file in xml.glob("*.xml"):
        for enumeration in ElementTree.parse(file).iter("memberdef"):
            if enumeration.get("kind") != "enum":
                continue
            named = set(re.findall(r"\w+", text_of(enumeration)))
            for one in enumeration.findall("enumvalue"):
                name = one.findtext("name")
                # The name of a type or a number says what it is: int8, KEDGE_INT8.
                plain = re.fullmatch(r"(KEDGE_)?(U?INT|FLOAT|BFLOAT)\d+", name.upper())
                if not text_of(one).strip() and name not in named and not plain:
                    found.add(f"{enumeration.findtext('name')}::{name} is not documented")
    return sorted(found)


def problems(source_dir, inputs):
    with tempfile.TemporaryDirectory() as directory:
        warnings, xml = doxygen(source_dir, inputs, Path(directory))
        return warnings + undocumented_enumerators(xml)


def main():
    source_dir = Path(sys.argv[1])
    if shutil.which("doxygen") is None:
        print("skipped: doxygen is not installed (share/kedge/install-dependencies test)")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        header = Path(directory) / "nobody.hpp"
        header.write_text(UNDOCUMENTED)
        noticed = "\n".join(problems(source_dir, [header]))
    for missing in ("Nobody is not", "knows", "Which::second", "called()"):
        if missing not in noticed:
            print(f"this test would not notice that {missing} is not documented:\n{noticed}")
            return 1
    found = problems(source_dir, ["include/kedge"])
    print("\n".join(found) if found else "every public symbol is documented")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
