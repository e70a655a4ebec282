// Two MPI libraries in one process, a launcher of another one, and other programs in one launch: what an engine says of
// each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "base/loaded_libraries.hpp"
#include "comm/mpi/mpi_launcher.hpp"
#include "kedge/mpi.hpp"

namespace kedge::comm::mpi_signs_test {
namespace {

using ::testing::HasSubstr;

TEST(SignsOfAnotherMpi, OpenMpiAndMpichTogetherAreNamed) {
  const auto words = two_mpi_warning({"/a/libmpi.so.40", "/b/libmpich.so.12", "/c/libc.so.6"}, "Open MPI");
  ASSERT_TRUE(words);
  EXPECT_THAT(*words, HasSubstr("two MPI libraries, /a/libmpi.so.40 and /b/libmpich.so.12; compile"));
  EXPECT_THAT(*words, HasSubstr("that Kedge was built with, Open MPI"));
  EXPECT_TRUE(two_mpi_warning({"/a/libmpi.so.40", "/b/libmpi.so.12"}, "MPICH")) << "Intel MPI's name";
}

TEST(SignsOfAnotherMpi, OneMpiIsNoMixture) {
  EXPECT_FALSE(two_mpi_warning({"/a/libmpi.so.40", "/a/libmpi_mpifh.so.40", "/a/libmpi_cxx.so.40"}, "Open MPI"));
  EXPECT_FALSE(two_mpi_warning({"/b/libmpich.so.12", "/b/libmpichfort.so.12", "/b/libmpi.so.12"}, "MPICH"));
  EXPECT_FALSE(two_mpi_warning({"/b/libmpi.so", "libmpi.so.", ""}, "MPICH"));
  EXPECT_FALSE(two_mpi_warning(loaded_libraries(), "this one")) << "those of this program";
}

TEST(SignsOfAnotherMpi, ALauncherThatStartedMoreThanTheWorldHasIsNamed) {
  const auto says = [](std::string name, std::string value) {
    return
        [=](const std::string& asked) { return asked == name ? std::optional(value) : std::optional<std::string>(); };
  };
  const auto words = launcher_warning(1, says("PMI_SIZE", "4"), "Open MPI v4.1.4");
  ASSERT_TRUE(words);
  EXPECT_THAT(*words, HasSubstr("the launcher started 4 processes (PMI_SIZE), but Open MPI v4.1.4 sees only this one"));
  EXPECT_TRUE(launcher_warning(1, says("OMPI_COMM_WORLD_SIZE", "2"), "MPICH"));
  EXPECT_FALSE(launcher_warning(4, says("PMI_SIZE", "4"), "MPICH"));
  EXPECT_FALSE(launcher_warning(1, says("PMI_SIZE", "1"), "MPICH"));
  EXPECT_FALSE(launcher_warning(1, says("PMI_SIZE", "many"), "MPICH"));
  EXPECT_FALSE(launcher_warning(1, says("SLURM_NTASKS", "4"), "MPICH")) << "also set where a program is started alone";
  EXPECT_THAT(launcher_warning(1, says("SLURM_STEP_NUM_TASKS", "4"), "MPICH").value_or(""),
              HasSubstr("srun started 4 tasks"));
  EXPECT_FALSE(launcher_warning(4, says("SLURM_STEP_NUM_TASKS", "4"), "MPICH"));
  const auto started_by_srun_and_mpirun = [](const std::string& name) -> std::optional<std::string> {
    if (name == "SLURM_STEP_NUM_TASKS") return "2";  // mpirun's daemons, one on each node
    if (name == "OMPI_COMM_WORLD_SIZE") return "1";
    return std::nullopt;
  };
  EXPECT_FALSE(launcher_warning(1, started_by_srun_and_mpirun, "Open MPI"));
}

TEST(SignsOfAnotherMpi, OtherProgramsOfTheLaunchAreNamedByTheirRanks) {
  const auto counts = [](std::string value) {
    return [=](const std::string& asked) {
      return asked == "OMPI_APP_CTX_NUM_PROCS" ? std::optional(value) : std::optional<std::string>();
    };
  };
  EXPECT_EQ(ranks_of_other_programs(0, 4, counts("2 2")), "ranks 2 to 3");
  EXPECT_EQ(ranks_of_other_programs(3, 4, counts("2 2")), "ranks 0 to 1");
  EXPECT_EQ(ranks_of_other_programs(3, 7, counts("1 3 1 2")), "rank 0, rank 4, ranks 5 to 6");
  for (const char* others : {"4", "", "2 3", "2", "-1 5", "2 x", "2147483647 2147483647"}) {
    EXPECT_EQ(ranks_of_other_programs(0, 4, counts(others)), "") << others;
  }
}

TEST(SignsOfAnotherMpi, TheCommunicatorAsksTheProcessesOwnWorldAndVariables) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT_EQ(mpi(MPI_COMM_WORLD)->start_warning(), "");
  EXPECT_EQ(mpi(MPI_COMM_SELF)->start_warning(), "") << "a program may choose to have one engine per rank";
  ::setenv("OMPI_COMM_WORLD_SIZE", "7", 1);
  EXPECT_EQ(mpi(MPI_COMM_WORLD)->start_warning().empty(), size != 1);
}

}  // namespace
}  // namespace kedge::comm::mpi_signs_test
