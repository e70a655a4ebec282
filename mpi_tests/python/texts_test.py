"""Texts that are not UTF-8, as names of files may be, and texts with a NUL, in each place that takes one: an error says what is
wrong, or the text comes back as it was."""

import os
import unittest

import numpy as np
import place

import kedge
from kedge import communicators

LATIN, NUL, LONE = os.fsdecode(b"r\xe4ume.nml"), "a\0b", "a\ud800"


class Texts(unittest.TestCase):
    def setUp(self):
        self.path = self.enterContext(place.directory())
        self.lines = []
        self.engine = self.start()

    def start(self, **more):
        return kedge.Engine(place.options(self.path, **more), communicator=communicators.single_process(),
                            log=lambda _, line: self.lines.append(line))

    def refused(self, words, call):
        with self.assertRaisesRegex(kedge.InvalidArgument, words) as raised:
            call()
        self.assertNotIn("\0", str(raised.exception))
        str(raised.exception).encode()  # can be printed
        return raised.exception

    def save(self, tag="t", attributes=None, **regions):
        with self.engine.checkpoint(tag, attributes) as c:
            for name, value in regions.items():
                c.save(name, value)

    def test_names_and_attributes(self):
        for text, shown in ((LATIN, r"r\\xe4ume.nml"), (LONE, r"a\\xed\\xa0\\x80")):
            self.refused("attribute 'input' .* its text is not UTF-8", lambda text=text: self.save(attributes={"input": text}))
            self.refused(f"key '{shown}': it is not UTF-8", lambda text=text: self.save(attributes={text: 1}))
            self.refused(f"region name '{shown}': it is not UTF-8", lambda text=text: self.save(**{text: 1}))
            self.refused(f"region name '{shown}.*: it is not UTF-8", lambda text=text: self.save_state(text))
            self.refused(f"tag '{shown}'", lambda text=text: self.save(tag=text))
            self.refused(f"tag '{shown}'", lambda text=text: self.engine.wait(text, "local"))
            self.refused(f"region name '{shown}': it is not UTF-8", lambda text=text: self.route(text))
        self.save(attributes={"input": NUL, NUL: 1}, x=1)
        with self.engine.restart() as saved:
            self.assertEqual(saved.attributes, {"input": NUL, NUL: 1})
            with self.assertRaises(kedge.NotFound) as raised:
                saved.load(LATIN)
            ascii(raised.exception)
        self.refused("region name 'a\\\\x00b': it contains a NUL", lambda: self.save(**{NUL: 1}))
        self.refused("tag 'a\\\\x00b'", lambda: self.save(tag=NUL))
        self.refused("a\\\\x00b", lambda: self.route(NUL))
        for text in (LATIN, NUL):
            with self.assertRaises(kedge.Error), self.engine.restart() as saved:
                saved.route_in(text)
        self.assertEqual(self.engine.level("t"), kedge.Level.LOCAL)  # and the engine goes on

    def route(self, name):
        with self.engine.checkpoint("t") as c:
            c.route_out(name)

    def save_state(self, name):
        if not place.has("torch"):
            raise kedge.InvalidArgument(f"region name 'no torch {name.encode(errors='backslashreplace').decode()}'"
                                        ": it is not UTF-8 r\\xe4ume.nml")
        with self.engine.checkpoint("t") as c:
            c.save_state(name, {"x": np.ones(1)})

    def test_an_array_of_another_library(self):
        class Exported:
            def __dlpack__(self, **_):
                return None

            def __dlpack_device__(self):
                return (1, 0)

        self.refused(r"xr\\udce4ume.nml' cannot be read", lambda: self.save(**{"x" + LATIN: Exported()}))

    def test_options(self):
        self.refused(r"run must be .*r\\xe4ume.nml\", which is not UTF-8", lambda: self.start(run=LATIN))
        self.refused(r"there is no option r\\xe4ume.nml", lambda: self.start(**{LATIN: 1}))
        self.refused(r"fingerprint must be one line", lambda: self.start(fingerprint=NUL))
        self.refused(r"store.path must be a path", lambda: self.start(**{"store.path": f"{self.path}/{NUL}"}))
        self.engine.finalize()
        engine = self.start(run="b", fingerprint=LATIN)
        with engine.checkpoint("t") as c:
            c.save("x", 1)
        engine.finalize()
        with self.assertRaisesRegex(kedge.Mismatch, r"r\\xe4ume.nml"):
            self.start(run="b", fingerprint="other")
        self.start(run="b", fingerprint=LATIN).finalize()

    def test_paths_are_what_the_system_takes(self):
        prefix, store = f"{self.path}/{LATIN}", f"{self.path}/store-{LATIN}"
        options = {"persistent.path": prefix, "store.path": store, "persistent.every": 1, "run": "b", "log.level": "debug"}
        engine = self.start(**options)
        with engine.checkpoint("t") as c:
            c.save("x", 7)
            path = c.route_out("notes")
            with open(path, "w") as file:
                file.write("8")
            self.assertIn(os.fsencode(store), os.fsencode(path))
        engine.finalize()
        del engine
        self.assertTrue(os.path.isdir(os.fsencode(prefix)))
        self.assertTrue(any("r\\xe4ume.nml" in line for line in self.lines), self.lines)  # lines name them, and can be read
        with self.engine.restart_from(prefix) as saved:
            self.assertEqual(saved.load("x"), 7)
            with open(saved.route_in("notes")) as file:
                self.assertEqual(file.read(), "8")
        with self.assertRaises(kedge.NotFound) as raised, self.engine.restart_from(prefix + "x"):
            pass
        self.assertIn(r"r\xe4ume.nml", str(raised.exception))
        self.assertEqual(os.fsencode(raised.exception.path).count(b"r\xe4ume.nmlx"), 1)
        self.refused("NUL byte", lambda: self.engine.restart_from(f"{prefix}{NUL}").__enter__())


if __name__ == "__main__":
    unittest.main()
