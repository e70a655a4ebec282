"""Finds the fenced code blocks of a page and what the comment before each says of it.

    <!-- example: NAME[, KEY[ VALUE]]... -->

NAME is unique on its page. Keys:
    session NAME    the directory that blocks of a page share, in their order; default: one of the block's own
    clone           the session looks like a clone in which Kedge was built: build/, share/ and examples/ are there
    file NAME       the block is also written to this file of the session
    program         C, C++, Fortran: a whole program
    scaffold FILE   C, C++, CMake: a fragment, which takes the place of the line with [example] in scaffolds/FILE
    stub            C, C++: compiled against the headers in stubs/ alone, and not run
    run N [ARG...]  ranks to run it with (default 1); `run none`: a script of the session does, by the name of the file
                    without its ending
    shell           of a block without a language: a shell script
    where A=B ...   words of a shell script that stand for something: A is replaced by B
    same PATH       the block is this file, and is not run
    output          of a block of text: the previous script of the session printed these lines, in this order;
                    an ellipsis stands for anything; lines of the log are in an order of their own
    skip REASON     not run; the rest of the comment says why

In a shell script every command must succeed, except those with a comment that begins with "dies" or "fails", which must
not.
"""

import re
from dataclasses import dataclass, field

KEYS = ("session", "clone", "file", "program", "scaffold", "stub", "run", "shell", "where", "same",
        "output", "skip")
DECLARATION = re.compile(r"\s*<!-- example: (.*) -->\s*$")
FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*(\S*)\s*$")


@dataclass
class Block:
    page: str  # path below the source directory
    line: int  # of the opening fence
    language: str
    text: str
    name: str = ""
    keys: dict = field(default_factory=dict)
    problem: str = ""

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def session(self):
        return self.keys.get("session", self.name)


def parse_declaration(text):
    """(name, keys, problem)."""
    name, _, rest = text.partition(",")
    keys = {}
    while rest.strip():
        rest = rest.strip()
        if rest.startswith("skip"):
            keys["skip"] = rest[4:].strip(" :")
            break
        item, _, rest = rest.partition(",")
        key, _, value = item.strip().partition(" ")
        if key not in KEYS:
            return name.strip(), keys, f"unknown key '{key}'"
        keys[key] = value.strip()
    if "skip" in keys and len(keys["skip"].split()) < 3:
        return name.strip(), keys, "a skip says why, in a few words"
    return name.strip(), keys, ""


def blocks_of(page, text):
    """Every fenced block, in order; one that is not declared, or not closed, has a problem."""
    found, names = [], set()
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        opening = FENCE.match(lines[index])
        if not opening:
            index += 1
            continue
        indent, fence, language = opening.groups()
        end = index + 1
        while end < len(lines) and not re.match(rf"\s*{re.escape(fence)}\s*$", lines[end]):
            end += 1
        body = [line[len(indent):] if line.startswith(indent) else line.lstrip() for line in lines[index + 1:end]]
        block = Block(page, index + 1, language, "\n".join(body) + "\n")
        declaration = DECLARATION.match(lines[index - 1]) if index > 0 else None
        if end == len(lines):
            block.problem = "the fence is not closed"
        elif not declaration:
            block.problem = "no <!-- example: ... --> in the line before it"
        else:
            block.name, block.keys, block.problem = parse_declaration(declaration.group(1))
            if not re.fullmatch(r"[a-z0-9-]+", block.name):
                block.problem = f"'{block.name}' is not a name: a-z 0-9 -"
            elif block.name in names:
                block.problem = f"another block of this page is called '{block.name}'"
            names.add(block.name)
        found.append(block)
        index = end + 1
    return found
