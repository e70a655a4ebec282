"""The Spack recipe, CMakeLists.txt, share/doc/install.md, share/kedge/install-dependencies and Debian 12 agree with
each other, and the source archive is what is committed.

Standard library only: Spack is not needed. With Spack itself: mpi_tests/interop/spack/check.sh.
"""

import ast
import os
import re
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RECIPE = ROOT / "spack/spack_repo/kedge/packages/kedge/package.py"

# Spack's name: (Debian 12's package, its version). A floor above the version would refuse what Kedge is built and
# tested with.
DEPENDENCIES = {
    "cmake": ("cmake", "3.25.1"),
    "mpi": ("libopenmpi-dev", "3.1"),  # the version of the standard
    "hdf5": ("libhdf5-dev", "1.10.8"),
    "isa-l": ("libisal-dev", "2.30.0"),
    "boost": ("libboost-filesystem-dev", "1.74.0"),
    "liburing": ("liburing-dev", "2.3"),
    "fmt": ("libfmt-dev", "9.1.0"),
    "spdlog": ("libspdlog-dev", "1.10.0"),
    "nlohmann-json": ("nlohmann-json3-dev", "3.11.2"),
    "tomlplusplus": ("libtomlplusplus-dev", "3.3.0"),
    "cli11": ("libcli11-dev", "2.1.2"),
}
FOR_TESTS = {"googletest": ("libgmock-dev", "1.12.1"), "benchmark": ("libbenchmark-dev", "1.7.1")}
FOR_PYTHON = {"python", "py-numpy", "py-nanobind"}  # from PyPI, or what a site has
OF_A_SITE = FOR_PYTHON | {"cuda"}  # its toolkit goes with its driver
OF_A_SITE_IN_DEBIAN = {"gfortran", "python3-dev", "python3-numpy", "nvidia-cuda-toolkit"}
LANGUAGES = {"c", "cxx", "fortran"}
# Variants that Debian's packages cannot be said to have are not asked for; these are.
VARIANTS_ASKED_FOR = {"boost": "+filesystem", "googletest": "+gmock", "hdf5": "~mpi"}
# CMake's own option, with another default: an installation for a centre is shared, a build for a look is not.
STANDARD = {"BUILD_SHARED_LIBS": "shared"}


def cmake_options(text):
    """Name to default, of option(NAME "..." DEFAULT) and set(NAME "" CACHE STRING ...)."""
    options = dict(re.findall(r'^option\((KEDGE_\w+) "[^"]*" (\S+)\)', text, re.M))
    options.update(re.findall(r'^set\((KEDGE_\w+) (\S+) CACHE ', text, re.M))
    return options


def calls(text, *names):
    """(name, constant arguments, constant keyword arguments) of each call of these functions and methods."""
    for node in ast.walk(ast.parse(text)):
        name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if name in names:
            keywords = {key.arg: key.value.value for key in node.keywords if isinstance(key.value, ast.Constant)}
            yield name, [arg.value for arg in node.args if isinstance(arg, ast.Constant)], keywords


def recipe_facts(text):
    """Declared variants with their defaults, options defined from a variant, options defined otherwise."""
    variants = {words[0]: keywords["default"] for _, words, keywords in calls(text, "variant")}
    from_variant = {words[0]: words[1] for _, words, _ in calls(text, "define_from_variant")}
    plain = {words[0] for _, words, _ in calls(text, "define") if words[0].startswith("KEDGE_")}
    return variants, from_variant, plain


def differences(cmake_text, recipe_text):
    options = cmake_options(cmake_text)
    variants, from_variant, plain = recipe_facts(recipe_text)
    defined = {name for name in from_variant if name not in STANDARD} | plain
    found = [f"{name} is in CMakeLists.txt and not in the recipe" for name in sorted(set(options) - defined)]
    found += [f"{name} is in the recipe and not in CMakeLists.txt" for name in sorted(defined - set(options))]
    found += [f"variant {name} defines no option" for name in sorted(set(variants) - set(from_variant.values()))]
    for option, variant in from_variant.items():
        if variant not in variants:
            found.append(f"{option} comes from variant {variant}, which is not declared")
        elif options.get(option) in ("ON", "OFF") and variants[variant] != (options[option] == "ON"):
            found.append(f"variant {variant} has another default than {option}")
    return found


def page_problems(cmake_text, page_text):
    """What the installation page's table of options has otherwise than CMakeLists.txt."""
    rows = dict(re.findall(r"^\| `(KEDGE_\w+)` \| ([^|]*?) \|", page_text, re.M))
    options = cmake_options(cmake_text)
    found = [f"{name} is not on the page" for name in sorted(set(options) - set(rows))]
    found += [f"{name} is on the page alone" for name in sorted(set(rows) - set(options))]
    return found + [f"{name} is {options[name]}, and on the page {words}" for name, words in rows.items()
                    if options.get(name) in ("ON", "OFF") and options[name] != words]


def dependencies(recipe_text):
    """(package, floor or "", variants, types) of each depends_on."""
    for _, words, keywords in calls(recipe_text, "depends_on"):
        name, floor, variants = re.fullmatch(r"([\w-]+)(?:@([\d.]+):)?((?:[+~]\w+)*)", words[0]).groups(default="")
        yield name, floor, variants, keywords.get("type", "")


def number(version):
    return [int(part) for part in version.split(".")]


def floor_problems(recipe_text):
    known = {name: version for name, (_, version) in (DEPENDENCIES | FOR_TESTS).items()}
    found, seen = [], set()
    for name, floor, variants, kind in dependencies(recipe_text):
        if name in LANGUAGES | OF_A_SITE:
            continue
        if name not in known:
            found.append(f"{name} is not known here")
            continue
        seen.add(name)
        if floor and number(floor) > number(known[name])[: len(number(floor))]:
            found.append(f"{name}@{floor}: refuses Debian 12's {known[name]}")
        if variants and variants != VARIANTS_ASKED_FOR.get(name):
            found.append(f"{name} is asked for {variants}")
        if (name in FOR_TESTS) != (kind == "test"):
            found.append(f"{name} has type '{kind}'")
    return found + [f"{name} is not in the recipe" for name in sorted(set(known) - seen)]


def version_problems(recipe_text, page_text, cmake_text):
    """Where the installation page's table, or what CMake asks for, has another oldest version or package than the recipe."""
    floors = {name: floor for name, floor, _, _ in dependencies(recipe_text) if floor and name not in OF_A_SITE}
    refused = re.search(r'conflicts\("%gcc@:(\d+)"', recipe_text)
    floors["gcc"] = str(int(refused.group(1)) + 1) if refused else ""
    debian = {name: package for name, (package, _) in (DEPENDENCIES | FOR_TESTS).items()} | {"gcc": "g++"}
    rows = {package: version for version, package in
            re.findall(r"^\| [^|]+ \| ([\d.]+)[^|]* \| `([\w+-]+)`[^|]* \| [^|]+ \|$", page_text, re.M)}
    asked = {package: version for version, package in re.findall(r"^ *kedge_need\(\w+ ([\d.]+) ([\w-]+) ", cmake_text, re.M)}
    found = [f"{name} is {rows.get(debian[name])} on the page, and {floor} in the recipe" for name, floor in floors.items()
             if rows.get(debian[name]) != floor]
    found += [f"{debian[name]} is not on the page" for name in DEPENDENCIES if debian[name] not in rows]
    found += [f"{package} is on the page alone" for package in rows
              if package not in {*debian.values(), *OF_A_SITE_IN_DEBIAN}]
    return found + [f"{package} is {version} in CMake" for package, version in asked.items()
                    if version not in {floors[name] for name in floors if debian[name] == package}]


class SpackRecipe(unittest.TestCase):
    def setUp(self):
        self.recipe = RECIPE.read_text()

    def test_knows_the_options_of_cmake(self):
        text = (ROOT / "CMakeLists.txt").read_text()
        self.assertGreaterEqual(len(cmake_options(text)), 6)
        self.assertEqual(differences(text, self.recipe), [])
        self.assertEqual(set(recipe_facts(self.recipe)[0]), {"mpi", "shared", "tools", "examples", "fortran", "python", "cuda"})

    def test_the_installation_page_has_every_option_with_its_default(self):
        cmake, page = (ROOT / "CMakeLists.txt").read_text(), (ROOT / "share/doc/install.md").read_text()
        self.assertEqual(page_problems(cmake, page), [])
        self.assertTrue(page_problems(cmake, page.replace("`KEDGE_TOOLS` | ON", "`KEDGE_TOOLS` | OFF")))
        self.assertTrue(page_problems(cmake, page.replace("`KEDGE_MPI`", "`KEDGE_MPI2`")))

    def test_page_and_cmake_have_its_versions(self):
        page, cmake = ((ROOT / name).read_text() for name in ("share/doc/install.md", "share/cmake/dependencies.cmake"))
        self.assertEqual(version_problems(self.recipe, page, cmake), [])
        isa_l = "| ISA-L | 2.30 | `libisal-dev` | `isa-l` |\n"
        for old, new, problem in (("| fmt | 9 |", "| fmt | 8 |", "fmt is 8 on the page"),
                                  ("| 12 or 14 |", "| 11 or 14 |", "gcc is 11 on the page"),
                                  (isa_l, isa_l + "| zlib | 1.2 | `zlib1g-dev` | `zlib` |\n", "zlib1g-dev is on the page alone"),
                                  ("`libisal-dev`", "libisal-dev", "libisal-dev is not on the page")):
            self.assertIn(old, page)
            self.assertIn(problem, " ".join(version_problems(self.recipe, page.replace(old, new), cmake)))
        self.assertEqual(len(version_problems(self.recipe, page, cmake.replace("(fmt 9 ", "(fmt 8 "))), 1)

    def test_floors_are_not_above_debian(self):
        self.assertEqual(floor_problems(self.recipe), [])

    def test_debians_packages_are_installed_by_the_script(self):
        script = (ROOT / "share/kedge/install-dependencies").read_text()
        for package, _ in (DEPENDENCIES | FOR_TESTS).values():
            self.assertIn(f" {package} ", script.replace("\n", " "))

    def test_says_licence_and_languages(self):
        self.assertIn('license("BSD-3-Clause")', self.recipe)
        self.assertEqual({name for name, *_ in dependencies(self.recipe)} & LANGUAGES, LANGUAGES)

    def test_lies_where_spack_looks_for_it(self):
        repo = RECIPE.parents[2]
        self.assertIn("namespace: " + repo.name, (repo / "repo.yaml").read_text())
        self.assertRegex((repo / "repo.yaml").read_text(), r"api: v2\.\d+")
        self.assertEqual(repo.parent.name, "spack_repo")

    def test_takes_the_source_tree_it_lies_in(self):
        depth = re.search(r"parents\[(\d+)\]", self.recipe)
        self.assertEqual(RECIPE.parents[int(depth.group(1))], ROOT)


class Archive(unittest.TestCase):
    def archive(self, tree, *words):
        return subprocess.run([tree / "share/kedge/archive", *words], capture_output=True, text=True)

    def test_is_named_with_its_checksum_in_the_recipe_beside_it(self):
        if not (ROOT / ".git").exists():
            self.skipTest("not a git clone: there is no commit to make an archive of")
        with tempfile.TemporaryDirectory() as directory:
            sums = set()
            for name in ("a", "b"):
                done = self.archive(ROOT, f"{directory}/{name}")
                self.assertEqual(done.returncode, 0, done.stderr)
                sums.add(done.stdout.split()[0])
            self.assertEqual(len(sums), 1, "the same commit gave two archives")
            file = Path(done.stdout.split()[1])
            with tarfile.open(file) as archive:
                stem = file.name[: -len(".tar.gz")]
                self.assertIn(f"{stem}/CMakeLists.txt", archive.getnames())
            recipe = (file.parent / RECIPE.relative_to(ROOT)).read_text()
            versions = [(words, keywords) for _, words, keywords in calls(recipe, "version")]
            self.assertEqual(versions, [([stem.split("-")[1]], {"sha256": sums.pop()})])
            self.assertIn(f'url = (SOURCE_TREE / "{file.name}")', recipe)
            self.assertNotIn("    git = ", recipe)

    def test_is_not_made_where_nothing_is_committed(self):
        with tempfile.TemporaryDirectory() as directory:
            tree = Path(directory) / "tree/share/kedge"
            tree.mkdir(parents=True)
            (tree / "archive").write_bytes((ROOT / "share/kedge/archive").read_bytes())
            (tree / "archive").chmod(0o755)
            done = self.archive(tree.parents[1], f"{directory}/out")
            self.assertEqual(done.returncode, 1)
            self.assertIn("is not a git clone", done.stderr)


class Check(unittest.TestCase):
    def run_check(self, *words, **variables):
        script = ROOT / "mpi_tests/interop/spack/check.sh"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KEDGE_")} | variables
        return subprocess.run([script, *words], env=environment, capture_output=True, text=True)

    def test_says_what_is_missing_and_where_to_get_it(self):
        for variables, words in (
            ({}, "SPACK_CHECK_ROOT is not set"),
            ({"SPACK_CHECK_ROOT": "/nonexistent"}, "/nonexistent/bin/spack is not there"),
        ):
            done = self.run_check(**variables)
            self.assertEqual(done.returncode, 77, done.stderr)
            self.assertIn(f"skipped: {words}", done.stdout)
            self.assertIn("share/doc/spack.md says how to get a Spack", done.stdout)

    def test_has_every_mpi_with_every_hdf5_and_kind_of_library(self):
        listed = self.run_check("--list").stdout.split()
        for mpi in ("openmpi", "mpich"):
            for hdf5 in ("serial", "parallel"):
                for libraries in ("shared", "static"):
                    name = f"{mpi}-{hdf5}-{libraries}-"
                    self.assertTrue(any(line in (name + "tree", name + "archive") for line in listed), name)


class Rules(unittest.TestCase):
    def test_see_every_kind_of_difference(self):
        cmake = 'option(KEDGE_A "a" ON)\noption(KEDGE_B "b" OFF)\nset(KEDGE_C "" CACHE STRING "c")\n'
        recipe = (
            'variant("a", default=True)\nvariant("b", default=False)\n'
            'x.define_from_variant("KEDGE_A", "a")\nx.define_from_variant("KEDGE_B", "b")\nx.define("KEDGE_C", "")\n'
        )
        self.assertEqual(differences(cmake, recipe), [])
        for changed_cmake, changed_recipe in (
            (cmake + 'option(KEDGE_D "d" ON)\n', recipe),
            (cmake + 'set(KEDGE_D "" CACHE STRING "d")\n', recipe),
            (cmake, recipe + 'x.define("KEDGE_D", "")\n'),
            (cmake, recipe + 'variant("d", default=True)\n'),
            (cmake, recipe.replace('variant("b", default=False)\n', "")),
            (cmake, recipe.replace('"a", default=True', '"a", default=False')),
        ):
            self.assertEqual(len(differences(changed_cmake, changed_recipe)), 1)

    def test_see_a_floor_a_variant_or_a_package_that_debian_does_not_have(self):
        recipe = RECIPE.read_text()
        for old, new, problem in (
            ("cli11@2.1:", "cli11@2.3:", "cli11@2.3: refuses Debian 12's 2.1.2"),
            ("spdlog@1.10:", "spdlog@1.10:+fmt_external", "spdlog is asked for +fmt_external"),
            ("fmt@9:", "fmt@9.1.1:", "fmt@9.1.1: refuses"),
            ("isa-l@2.30:", "isal@2.30:", "isal is not known"),
            ('+gmock", type="test"', '+gmock"', "googletest has type ''"),
        ):
            self.assertIn(old, recipe)
            self.assertIn(problem, " ".join(floor_problems(recipe.replace(old, new))))


if __name__ == "__main__":
    unittest.main()
