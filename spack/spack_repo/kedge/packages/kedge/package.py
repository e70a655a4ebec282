# SPDX-License-Identifier: BSD-3-Clause

import os
import re
import shutil
import subprocess
from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *

SOURCE_TREE = Path(__file__).resolve().parents[5]


def checked_out(tree):
    """The commit that is checked out, whatever its branch is called here; without git, the branch main."""
    command = ["git", "-C", str(tree), "rev-parse", "HEAD"]
    if (tree / ".git").exists() and shutil.which("git"):
        found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if found.returncode == 0:
            return {"commit": found.stdout.decode().strip()}
    return {"branch": "main"}


class Kedge(CMakePackage):
    """Checkpoint engine for MPI jobs: node-local containers that are HDF5 files, recovery to the newest
    step that every rank can recover."""

    # No maintainers(): it takes public accounts, and there is none yet.
    license("BSD-3-Clause")

    # begin of the source: share/kedge/archive writes a copy in which these lines name the archive that it made.
    # What is committed in the source tree that contains this recipe.
    git = SOURCE_TREE.as_uri()
    version("main", **checked_out(SOURCE_TREE))
    # end of the source

    # mpi_tests/unit/structure/spack_recipe_test.py holds variants and dependencies in step with CMakeLists.txt,
    # README.md and Debian 12.
    variant("mpi", default=True, description="Build kedge::kedge, the engine over MPI, and what needs it")
    variant("shared", default=True, description="Build shared libraries")
    variant("tools", default=True, description="Build the kedge command")
    variant("examples", default=True, description="Build the examples")
    variant("fortran", default=False, description="Build the Fortran module")
    variant("python", default=False, description="Build the Python package")

    variant("cuda", default=False, description="Take memory of GPUs into checkpoints")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.25:", type="build")

    depends_on("boost@1.74:+filesystem")
    depends_on("cli11@2.1:", when="+tools")
    depends_on("fmt@9:")
    depends_on("hdf5@1.10.8:")
    depends_on("hdf5~mpi", when="~mpi")
    depends_on("isa-l@2.30:")
    depends_on("liburing@2.3:")
    depends_on("cuda@11.3:", type="build", when="+cuda")
    depends_on("mpi@3:", when="+mpi")
    depends_on("nlohmann-json@3.11:")
    depends_on("spdlog@1.10:")
    depends_on("tomlplusplus@3.3:")
    depends_on("py-nanobind@2.4:", type="build", when="+python")
    depends_on("py-numpy@1.24:", type=("build", "run"), when="+python")
    depends_on("python@3.10:", when="+python")
    depends_on("googletest@1.12:+gmock", type="test")
    depends_on("benchmark@1.7:", type="test")

    conflicts("%gcc@:11", msg="Kedge requires C++20: use gcc@12: or llvm@14:")
    conflicts("%clang@:13", msg="Kedge requires C++20: use gcc@12: or llvm@14:")
    extends("python", when="+python")
    conflicts("+fortran", when="~mpi", msg="the Fortran module is for programs that use MPI")

    # The product alone: the tests take several times as long to compile, and check_quickly builds those that it runs.
    build_targets = ["kedge_product"]
    test_requires_compiler = True

    def cmake_args(self):
        spec = self.spec
        args = [
            self.define_from_variant("KEDGE_MPI", "mpi"),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("KEDGE_TOOLS", "tools"),
            self.define_from_variant("KEDGE_EXAMPLES", "examples"),
            self.define_from_variant("KEDGE_FORTRAN", "fortran"),
            self.define_from_variant("KEDGE_PYTHON", "python"),
            self.define_from_variant("KEDGE_CUDA", "cuda"),
            self.define("KEDGE_TESTS", self.run_tests),
            self.define("KEDGE_WARNINGS_AS_ERRORS", False),
            self.define("KEDGE_BATCHES", True),
            self.define("KEDGE_SANITIZE", ""),
            self.define("CMAKE_SKIP_INSTALL_ALL_DEPENDENCY", True),
            # Without it the header of another HDF5 may be found before that of this library.
            self.define("HDF5_ROOT", spec["hdf5"].prefix),
        ]
        if spec.satisfies("+python"):
            args += [
                self.define("Python_EXECUTABLE", spec["python"].command.path),
                # Set by Spack: where `spack load` makes Python look.
                "-DKEDGE_PYTHON_INSTALL_DIR=" + os.path.relpath(python_platlib, self.prefix),
            ]
        if spec.satisfies("+mpi"):
            args += self.mpi_args()
        return args

    def mpi_args(self):
        mpi = self.spec["mpi"]
        args = [self.define("MPI_C_COMPILER", mpi.mpicc), self.define("MPI_CXX_COMPILER", mpi.mpicxx)]
        if self.spec.satisfies("+fortran"):
            args.append(self.define("MPI_Fortran_COMPILER", mpi.mpifc))
        if os.path.exists(mpi.prefix.bin.mpiexec):
            args.append(self.define("MPIEXEC_EXECUTABLE", mpi.prefix.bin.mpiexec))
        return args

    def check(self):
        """Nothing between build and install: the tests were not built."""

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_quickly(self):
        """With `spack install --test=root`: the tests with the label quick, with this HDF5 and this MPI."""
        with working_dir(self.build_directory):
            cmake = Executable(self.spec["cmake"].prefix.bin.cmake)
            cmake("--build", ".", "--target", "kedge_quick_tests", "--parallel", str(make_jobs))
            ctest = Executable(self.spec["cmake"].prefix.bin.ctest)
            ctest("-L", "quick", "--no-tests=error", "--output-on-failure", "--timeout", "120")

    @run_after("install")
    def keep_test_sources(self):
        cache_extra_test_sources(self, ["mpi_tests/interop/consumer", "mpi_tests/interop/golden/v1"])

    # Stand-alone tests: `spack test run kedge`. They know of Kedge only what was installed.

    def test_consumer(self):
        """compile a user's project with find_package(kedge) and run it"""
        self.forget_options()
        project = Path(install_test_root(self)) / "mpi_tests/interop/consumer"
        self.compile_project(project, "core", "-DCONSUMER_MPI=OFF")
        for program in ("without_mpi", "without_mpi_c"):
            Executable(f"core/{program}")()
        with test_part(self, "test_consumer_killed_rank", purpose="kill simulated ranks and lose their nodes"):
            Executable("core/killed_rank")(os.path.abspath("killed_rank"))
        if self.spec.satisfies("+mpi"):
            with test_part(self, "test_consumer_mpi", purpose="the same with MPI, started three times"):
                self.compile_project(project, "mpi", "-DCONSUMER_MPI=ON")
                self.set_run("consumer_run")
                assert "was none, is 1" in self.launch(2, "mpi/with_mpi")
                assert "was step-1, is 2" in self.launch(2, "mpi/with_mpi")
                assert "is 3: well" in self.launch(2, "mpi/with_mpi_c")

    def test_heat2d(self):
        """heat2d is killed, resumes, and ends with the result of a run that was not killed"""
        if self.spec.satisfies("~mpi"):
            raise SkipTest("heat2d needs the variant mpi")
        examples = Path(self.prefix.share) / "kedge/examples"
        self.compile_project(examples, "examples", target="heat2d")
        job = (4, "examples/heat2d/heat2d", "--steps", "400", "--every", "50")
        self.set_run("undisturbed")
        expected = self.checksum(self.launch(*job))
        self.set_run("killed")
        self.launch(*job, "--die-at", "270", "--die-rank", "2", dies=True)
        with test_part(self, "test_heat2d_resumed", purpose="resume from step 250"):
            resumed = self.launch(*job)
            assert "resumed step-000250" in resumed, resumed
            assert self.checksum(resumed) == expected
        if self.spec.satisfies("+tools"):
            with test_part(self, "test_heat2d_verify", purpose="kedge verify: every checksum of what it wrote"):
                self.command("verify", *(str(store) for store in Path("killed/store").glob("kedge-*")))
                self.command("verify", "killed/prefix")

    def test_python(self):
        """import kedge; with MPI a program in Python is killed, resumes, and ends as one that was not killed"""
        if self.spec.satisfies("~python"):
            raise SkipTest("needs the variant python")
        python = self.spec["python"].command.path
        self.set_run("single")
        save = "import kedge, numpy\nwith kedge.Engine() as e:\n  with e.checkpoint('t') as c: c.save('x', numpy.arange(9))\n"
        load = "  with e.restart() as r: assert (r.load('x') == numpy.arange(9)).all()\n"
        Executable(python)("-c", save + load)
        if self.spec.satisfies("+mpi"):
            job = (2, python, str(Path(self.prefix.share) / "kedge/examples/train_numpy.py"), "--steps", "100")
            self.set_run("python_undisturbed")
            expected = self.last_loss(self.launch(*job))
            self.set_run("python_killed")
            self.launch(*job, "--die-at", "87", dies=True)
            resumed = self.launch(*job)
            assert "resumed at step 80" in resumed, resumed
            assert self.last_loss(resumed) == expected

    def test_verify(self):
        """kedge verify on golden files of the format, and on one that was damaged"""
        if self.spec.satisfies("~tools"):
            raise SkipTest("the kedge command needs the variant tools")
        good = Path(install_test_root(self)) / "mpi_tests/interop/golden/v1/data/0/rank-0.h5"
        self.command("verify", str(good))
        damaged = bytearray(good.read_bytes())
        damaged[-1] ^= 1
        Path("damaged.h5").write_bytes(damaged)
        self.command("verify", "damaged.h5", code=1)

    # What the stand-alone tests are made of.

    def compile_project(self, project, build, *args, target="all"):
        """Configures with the prefixes of what Kedge links, as an environment of Spack would."""
        cmake = Executable(self.spec["cmake"].prefix.bin.cmake)
        needs = self.spec.traverse(root=True, deptype="link")
        prefixes = ";".join(str(node.prefix) for node in needs if str(node.prefix) != "/usr")
        cmake("-S", str(project), "-B", build, "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={prefixes}", *args)
        cmake("--build", build, "--target", target)

    def forget_options(self):
        """Whatever Kedge's options are in this environment."""
        for name in [name for name in os.environ if name.startswith("KEDGE_")]:
            del os.environ[name]

    def set_run(self, directory):
        """A run of its own, every other checkpoint of which is flushed."""
        self.forget_options()
        os.environ["KEDGE_STORE_PATH"] = os.path.abspath(f"{directory}/store")
        os.environ["KEDGE_PERSISTENT_PATH"] = os.path.abspath(f"{directory}/prefix")
        os.environ["KEDGE_PERSISTENT_EVERY"] = "2"
        os.makedirs(directory)

    def launch(self, ranks, *words, dies=False):
        """Output of a job; with this MPI's own launcher, and the flags that it needs where cores are few."""
        mpi = self.spec["mpi"]
        if not os.path.exists(mpi.prefix.bin.mpiexec):
            raise SkipTest(f"{mpi.name} has no mpiexec in {mpi.prefix.bin}")
        flags = []
        if mpi.name == "openmpi":
            flags = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
            os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        mpiexec = Executable(mpi.prefix.bin.mpiexec)
        output = mpiexec(*flags, "-n", str(ranks), *words, output=str, error=str, timeout=120, fail_on_error=False)
        print(output)
        assert (mpiexec.returncode != 0) == dies, f"exit status {mpiexec.returncode}"
        return output

    def checksum(self, output):
        found = re.search(r"^checksum (\S+)", output, re.M)
        assert found, f"no checksum: {output}"
        return found.group(1)

    def last_loss(self, output):
        return re.findall(r"^step 100: loss \S+", output, re.M)[0]

    def command(self, *words, code=0):
        kedge = Executable(self.prefix.bin.kedge)
        print(kedge(*words, output=str, error=str, fail_on_error=False))
        assert kedge.returncode == code, f"kedge {' '.join(words)} exited with {kedge.returncode}, not {code}"
