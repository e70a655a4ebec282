"""The Spack recipe and CMakeLists.txt know the same options. Standard library only; Spack is not needed."""

import ast
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RECIPE = ROOT / "spack/spack_repo/kedge/packages/kedge/package.py"


def cmake_options(text):
    """Name to default, of option(NAME "..." DEFAULT) and set(NAME "" CACHE STRING ...)."""
    options = dict(re.findall(r'^option\((KEDGE_\w+) "[^"]*" (\S+)\)', text, re.M))
    options.update(re.findall(r'^set\((KEDGE_\w+) (\S+) CACHE ', text, re.M))
    return options


def recipe_facts(text):
    """Declared variants with their defaults, options defined from a variant, options defined otherwise."""
    variants, from_variant, plain = {}, {}, set()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        words = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        if name == "variant":
            variants[words[0]] = {key.arg: ast.literal_eval(key.value) for key in node.keywords}["default"]
        elif name == "define_from_variant":
            from_variant[words[0]] = words[1]
        elif name == "define":
            plain.add(words[0])
    return variants, from_variant, plain


def differences(cmake_text, recipe_text):
    options = cmake_options(cmake_text)
    variants, from_variant, plain = recipe_facts(recipe_text)
    defined = set(from_variant) | plain
    found = [f"{name} is in CMakeLists.txt and not in the recipe" for name in sorted(set(options) - defined)]
    found += [f"{name} is in the recipe and not in CMakeLists.txt" for name in sorted(defined - set(options))]
    found += [f"variant {name} defines no option" for name in sorted(set(variants) - set(from_variant.values()))]
    for option, variant in from_variant.items():
        if variant not in variants:
            found.append(f"{option} comes from variant {variant}, which is not declared")
        elif options.get(option) in ("ON", "OFF") and variants[variant] != (options[option] == "ON"):
            found.append(f"variant {variant} has another default than {option}")
    return found


class SpackRecipe(unittest.TestCase):
    def test_knows_the_options_of_cmake(self):
        text = (ROOT / "CMakeLists.txt").read_text()
        self.assertGreaterEqual(len(cmake_options(text)), 5)
        self.assertEqual(differences(text, RECIPE.read_text()), [])

    def test_lies_where_spack_looks_for_it(self):
        repo = RECIPE.parents[2]
        self.assertIn("namespace: " + repo.name, (repo / "repo.yaml").read_text())
        self.assertRegex((repo / "repo.yaml").read_text(), r"api: v2\.\d+")
        self.assertEqual(repo.parent.name, "spack_repo")

    def test_takes_the_source_tree_it_lies_in(self):
        depth = re.search(r"parents\[(\d+)\]", RECIPE.read_text())
        self.assertEqual(RECIPE.parents[int(depth.group(1))], ROOT)

    def test_sees_every_kind_of_difference(self):
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


if __name__ == "__main__":
    unittest.main()
