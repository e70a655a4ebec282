"""Nothing of kedge::testing is in a library that jobs link. Usage: NM TESTING_LIBRARY PRODUCT_LIBRARY..."""

import subprocess
import sys

NAMES = ("kedge::testing::", "InProcessWorld", "InProcessJob", "Mailboxes", "SimulatedDeath")


def symbols(nm, library):
    """The lines of nm that name something of kedge::testing."""
    listed = subprocess.run([nm, "-C", library], check=True, capture_output=True, text=True).stdout
    assert "kedge::" in listed, f"{library} shows no symbols"
    return [line for line in listed.splitlines() if any(name in line for name in NAMES)]


def main(nm, testing, *products):
    problems = [f"{product}: {line}" for product in products for line in symbols(nm, product)]
    # The library itself must be found guilty, name by name: else this test sees nothing.
    own = "\n".join(symbols(nm, testing))
    problems += [f"{testing} shows no {name}" for name in NAMES if name not in own]
    print("\n".join(problems) or "well")
    return 1 if problems or not products else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
