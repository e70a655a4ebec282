"""That the page "when something went wrong" has a section for each error code and quotes messages that exist.

errors_page_test.py SOURCE_DIR
"""

import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path

PAGE = "share/doc/when-something-went-wrong.md"


def codes_of(header):
    """The enumerators of kedge::ErrorCode."""
    body = re.search(r"enum class ErrorCode[^{]*\{(.*?)\};", header, re.S).group(1)
    return re.findall(r"^\s*(\w+)\s*(?:=\s*\d+)?,", body, re.M)


def sections_of(page):
    """{heading: its text}."""
    parts = re.split(r"(?m)^## (.*)$", page)
    return dict(zip(parts[1::2], parts[2::2]))


def quotes_of(section):
    """What the first cells of a section's table quote."""
    return re.findall(r"(?m)^\| `([^`]*)` \|", section)


def says(message, quote):
    """Whether the message has all pieces of the quote, in order. A piece may stand for what is filled in."""
    message = re.sub(r"\{[^{}]*\}", "\0", message.replace("{{", "\1").replace("}}", "\2"))
    at = 0
    for piece in quote.split("…"):
        piece = piece.strip()
        found = message.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return len(quote.replace("…", "").strip()) > 12


def problems_of(page, codes, messages):
    """`messages`: (kind, text) pairs, kind being an error code, a log level or anything else."""
    sections = sections_of(page)
    problems = [f"no section for {code}" for code in codes if code not in sections]
    known = {*codes, "First look", "Warnings in the log", "When building"}
    problems += [f"'{heading}' is not an error code" for heading in sections if heading not in known]
    for heading, text in sections.items():
        quotes = quotes_of(text)
        if heading in codes and not quotes:
            problems.append(f"section {heading} quotes no message")
        for quote in quotes:
            kinds = {kind for kind, message in messages if says(message, quote)}
            if not kinds:
                problems.append(f"no message says: {quote}")
            elif heading in codes and heading not in kinds and not kinds - set(codes):
                problems.append(f"this is {' or '.join(sorted(kinds))}, not {heading}: {quote}")
    for code in codes:
        if f"[{code}](#{code})" not in page:
            problems.append(f"the table at the top does not link to {code}")
    return problems


def messages_in(source_dir):
    loader = importlib.machinery.SourceFileLoader("messages", str(source_dir / "share/kedge/messages"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("messages", loader))
    loader.exec_module(module)
    return [(row["kind"], row["text"]) for row in module.messages(source_dir)]


def self_test():
    codes, messages = ["io", "busy"], [("io", "cannot {}: disk is full"), ("busy", "in use by {}; wait")]
    good = ("| [io](#io) | [busy](#busy)\n## io\n| `cannot …: disk is full` | x |\n"
            "## busy\n| `in use by …; wait` | y |\n")
    assert problems_of(good, codes, messages) == []
    assert problems_of(good.replace("## busy", "## busi"), codes, messages)
    assert problems_of(good.replace("disk is full", "disk was full"), codes, messages)
    assert problems_of(good.replace("cannot …: disk is full", "in use by …; wait"), codes, messages)
    assert problems_of(good, [*codes, "timeout"], messages)


def main():
    self_test()
    source_dir = Path(sys.argv[1])
    problems = problems_of((source_dir / PAGE).read_text(), codes_of((source_dir / "include/kedge/error.hpp").read_text()),
                           messages_in(source_dir))
    print("\n".join(problems) if problems else f"{PAGE}: all codes, and all quoted messages exist")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
