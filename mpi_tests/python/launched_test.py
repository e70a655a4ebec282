"""Which processes an engine works with, by how this one was launched: MPI is initialized only if a launcher says so,
and an mpi4py of another MPI is named."""

import sys
import types
import unittest
from unittest import mock

import kedge
from kedge import _kedge, communicators
from kedge._errors import BadState


class Launched(unittest.TestCase):
    def test_a_launcher_of_mpi_is_known_by_its_variables(self):
        self.assertFalse(communicators.started_by_mpi({}))
        self.assertFalse(communicators.started_by_mpi({"SLURM_NTASKS": "4"}))  # set in every job script
        self.assertTrue(communicators.started_by_mpi({"OMPI_COMM_WORLD_SIZE": "4"}))
        self.assertTrue(communicators.started_by_mpi({"PMI_SIZE": "1"}))
        self.assertTrue(communicators.started_by_mpi({"PMIX_RANK": "0"}))
        # torchrun started by mpirun: its workers are no processes of that MPI.
        self.assertFalse(communicators.started_by_mpi({"OMPI_COMM_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "x"}))

    def test_without_a_launcher_mpi_is_never_initialized(self):
        with mock.patch.dict("os.environ", clear=True):
            self.assertEqual(communicators.default().size, 1)
            if _kedge.has_mpi:
                with self.assertRaisesRegex(BadState, "mpirun"):
                    communicators.mpi()
                self.assertFalse(_kedge.mpi_is_running())
            with self.assertRaisesRegex(BadState, "init_process_group"):
                communicators.torch_distributed()

    def test_a_job_never_falls_apart_into_single_processes(self):
        with mock.patch.dict("os.environ", {"PMIX_RANK": "0"}, clear=True), mock.patch.object(_kedge, "has_mpi", False):
            with self.assertRaisesRegex(BadState, "KEDGE_MPI=ON.*single_process"):
                communicators.default()

    def test_an_mpi4py_of_another_mpi_is_named(self):
        if not _kedge.has_mpi:
            self.skipTest("built without MPI")
        ours, theirs = _kedge.mpi_library(), "Some MPI v9.9, of elsewhere"
        for library, refused in ((ours + "\0", False), (theirs, True)):
            fake = types.SimpleNamespace(Get_library_version=lambda text=library: text)
            with mock.patch.dict(sys.modules, {"mpi4py.MPI": fake}):
                if refused:
                    with self.assertRaisesRegex(BadState, "Some MPI v9.9.*" + ours.split(",")[0]):
                        communicators.check_mpi4py()
                else:
                    communicators.check_mpi4py()

    def test_what_is_no_communicator_and_what_are_no_options_is_said(self):
        class Comm:
            pass

        fake = types.SimpleNamespace(Comm=Comm, Get_library_version=lambda: _kedge.mpi_library() if _kedge.has_mpi else "")
        with mock.patch.dict(sys.modules, {"mpi4py.MPI": fake}):
            for given in (Comm(), communicators.single_process()):
                with self.assertRaisesRegex(kedge.InvalidArgument, r"kedge\.Engine\(communicator=MPI\.COMM_WORLD\)"):
                    kedge.Engine(given)
            with mock.patch.object(communicators, "mpi", lambda comm: (_ for _ in ()).throw(LookupError(type(comm).__name__))):
                with self.assertRaisesRegex(LookupError, "Comm"):  # it is asked for this one's ranks
                    kedge.Engine(communicator=Comm())
        for given in ("kedge.toml", 3, [("run", "a")]):
            with self.assertRaisesRegex(kedge.InvalidArgument, f"not a {type(given).__name__}.*kedge.toml"):
                kedge.Engine(given)
            with self.assertRaisesRegex(kedge.InvalidArgument, f"is a {type(given).__name__}: give what kedge.communicators makes"):
                kedge.Engine(communicator=given)


if __name__ == "__main__":
    unittest.main()
