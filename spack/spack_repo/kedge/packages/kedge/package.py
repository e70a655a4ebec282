# SPDX-License-Identifier: BSD-3-Clause

from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Kedge(CMakePackage):
    """Checkpoint engine for MPI jobs: node-local containers that are HDF5 files, recovery to the newest
    step that every rank can recover."""

    # The source tree that contains this recipe; commits only, not uncommitted changes.
    git = Path(__file__).resolve().parents[5].as_uri()

    license("BSD-3-Clause")

    version("main", branch="main")

    # mpi_tests/unit/structure/spack_recipe_test.py holds these in step with CMakeLists.txt.
    variant("mpi", default=True, description="Build kedge::kedge, the engine over MPI, and what needs it")
    variant("examples", default=True, description="Build the examples")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("boost@1.74:+filesystem")
    depends_on("cli11@2.3:")
    depends_on("fmt@9:")
    depends_on("hdf5@1.10.8:")
    depends_on("isa-l@2.30:")
    depends_on("liburing@2.3:")
    depends_on("nlohmann-json@3.11:")
    depends_on("spdlog@1.10:+fmt_external")
    depends_on("tomlplusplus@3.3:")
    depends_on("mpi", when="+mpi")
    depends_on("googletest@1.12:+gmock", type="test")
    depends_on("benchmark@1.7:", type="test")

    conflicts("%gcc@:11", msg="Kedge is C++20 as g++ 12 understands it")

    def cmake_args(self):
        return [
            self.define_from_variant("KEDGE_MPI", "mpi"),
            self.define_from_variant("KEDGE_EXAMPLES", "examples"),
            self.define("KEDGE_TESTS", self.run_tests),
            self.define("KEDGE_WARNINGS_AS_ERRORS", False),
            self.define("KEDGE_SANITIZE", ""),
        ]
