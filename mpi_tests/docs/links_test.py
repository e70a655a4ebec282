"""That every link of the pages leads to a file that is there, and to a heading of it.

links_test.py SOURCE_DIR, for the source tree; or links_test.py --installed DIRECTORY, for all pages below it
"""

import re
import sys
from pathlib import Path

PAGES = ("*.md", "share/doc/*.md", "share/doc/decisions/*.md", "share/doc/measurements/*.md", "mpi_tests/docs/stubs/*.md")
LINK = re.compile(r"\]\(([^()\s]+)\)")


def without_code(text):
    """Fenced blocks and code in lines left out: what looks like a link there is none."""
    text = re.sub(r"(?ms)^(`{3,}).*?^\1\s*$", "", text)
    return re.sub(r"`[^`\n]*`", "", text)


def slugs(text):
    """The names of its headings, as the repository's pages and the site have them."""
    found = set()
    for heading in re.findall(r"(?m)^#{1,6} +(.*)$", re.sub(r"(?ms)^(`{3,}).*?^\1\s*$", "", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def problems_of(page, text, read):
    """`read(path)`: the text of a file beside this page, None if there is none, "" if it is not a page."""
    problems = []
    for target in LINK.findall(without_code(text)):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        content = text if not path else read(path)
        if content is None:
            problems.append(f"{page}: {target}: there is no such file")
        elif anchor and anchor not in slugs(content):
            problems.append(f"{page}: {target}: there is no such heading")
    return problems


def self_test():
    page = "# A b\n[x](#a-b) [y](other.md#c_d) [z](https://x.y) `[n](none)`\n```\n[n](none)\n```\n"
    other = {"other.md": "## c_d\n"}
    assert problems_of("p", page, other.get) == []
    assert problems_of("p", page.replace("#a-b", "#a-c"), other.get)
    assert problems_of("p", page, {}.get)
    assert problems_of("p", page.replace("`", ""), other.get)


def main():
    self_test()
    source_dir = Path(sys.argv[-1])
    patterns = ("**/*.md",) if "--installed" in sys.argv else PAGES
    problems, count = [], 0
    for page in sorted({path for pattern in patterns for path in source_dir.glob(pattern)}):
        count += 1

        def read(path, page=page):
            file = page.parent / path
            return (file.read_text() if file.suffix == ".md" else "") if file.exists() else None

        problems += problems_of(page.relative_to(source_dir), page.read_text(), read)
    if count == 0:
        problems.append(f"there are no pages in {source_dir}")
    print("\n".join(problems) if problems else f"all links of {count} pages lead somewhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
