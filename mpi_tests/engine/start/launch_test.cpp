// Which launch, which part of it, which task of an array and which job of a batch system a start belongs to, by the
// variables that say so; a store says which job used it last.
#include "start/launch.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/start/variables.hpp"
#include "harness/engine_checks.hpp"
#include "harness/several_starts.hpp"
#include "kedge/error.hpp"
#include "persist/prefix_runs.hpp"

namespace kedge::faults::launch_test {
namespace {

persist::LaunchInfo launch_info(const Variables& variables, const std::string& process = "vm/17@5",
                                const std::string& daemon = "") {
  return start::find_launch_info(from(variables), {process, "vm/3@1", daemon}, 2);
}

TEST(Launch, IsWhatTheLauncherSays) {
  const Variables mpirun{{"OMPI_MCA_orte_precondition_transports", "a-b"},
                         {"OMPI_COMM_WORLD_RANK", "2"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"PMIX_NAMESPACE", "x"},
                         {"SLURM_JOB_ID", "7"}};
  persist::LaunchInfo found = launch_info(mpirun);
  EXPECT_EQ(found, (persist::LaunchInfo{"OMPI_MCA_orte_precondition_transports a-b, job 7", 2, 4, 2, "", "", {}}));
  EXPECT_EQ(launch_info(mpirun, "vm/18@5"), found);

  const Variables srun{
      {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}};
  found = launch_info(srun);
  EXPECT_EQ(found, (persist::LaunchInfo{"Slurm step 0, job 7", 3, 8, 2, "", "", {}}));
  Variables again = srun;
  again["SLURM_RESTART_COUNT"] = "1";
  EXPECT_NE(launch_info(again).launch_id, found.launch_id) << "a job that was queued again is another launch";
  again["PMIX_NAMESPACE"] = "slurm.pmix.7.0";
  const std::string first = launch_info(again).launch_id;
  again["SLURM_RESTART_COUNT"] = "2";
  EXPECT_NE(launch_info(again).launch_id, first);
}

TEST(Launch, TheBatchSystemsJobHasOneNameWhereverItIsAskedFor) {
  const auto job = [](const Variables& variables) { return start::batch_job(from(variables)); };
  EXPECT_EQ(job({}), "");
  EXPECT_EQ(job({{"SLURM_JOB_ID", "7"}, {"FLUX_JOB_ID", "f2U"}}), "7");
  EXPECT_EQ(job({{"PBS_JOBID", "12[3].server"}}), "12[3].server");
  EXPECT_EQ(job({{"LSB_JOBID", "9"}, {"LSB_JOBINDEX", "0"}}), "9") << "of no array";
  EXPECT_EQ(job({{"LSB_JOBID", "9"}, {"LSB_JOBINDEX", "4"}}), "9[4]");
  EXPECT_EQ(job({{"FLUX_JOB_ID", "f2U"}}), "f2U");
  EXPECT_EQ(job({{"FLUX_JOB_ID", "f2U"}, {"FLUX_ENCLOSING_ID", "f1"}}), "f1") << "a step of that";
  EXPECT_EQ(job({{"PBS_JOBID", "../a b"}}), ".._a_b") << "part of a file's name";
}

TEST(Launch, AStoreSaysWhichJobUsedItLast) {
  SimulatedJob job(4);
  job.ranks_per_node = 2;
  const auto start_in = [&](const Variables& variables, bool is_drain = false) {
    job.surroundings = [=](int rank, start::Environment& environment) {
      if (rank == 0) environment.find_variable = from(variables);  // of the other node's processes nobody says it
      environment.is_drain = is_drain;
    };
    expect_all_returned(job.start([](RankScope& scope) { const Engine engine = scope.make_engine(); }));
  };
  const auto notes = [&] {
    std::vector<std::string> found;
    for (const auto& [path, entry] : job.disk.snapshot()) {
      if (path.find("/job-") != std::string::npos) found.push_back(path.substr(0, 13) + path.substr(path.rfind('/')));
    }
    return found;
  };
  start_in({{"SLURM_JOB_ID", "7"}});
  EXPECT_EQ(notes(), (std::vector<std::string>{"/nodes/node0//job-7", "/nodes/node1//job-7"}));
  start_in({{"SLURM_JOB_ID", "8"}});
  EXPECT_EQ(notes(), (std::vector<std::string>{"/nodes/node0//job-8", "/nodes/node1//job-8"}));
  start_in({{"SLURM_JOB_ID", "9"}}, true);
  EXPECT_EQ(notes(), (std::vector<std::string>{"/nodes/node0//job-8", "/nodes/node1//job-8"}))
      << "a drain uses nothing";
  start_in({});
  EXPECT_TRUE(notes().empty());
}

TEST(Launch, IsTheProcessWhereNobodyLaunchesIt) {
  EXPECT_EQ(launch_info({}), (persist::LaunchInfo{"process vm/17@5", -1, -1, 2, "", "", {}}));
  // In a Slurm script, beside srun: variables of the job, but of no step.
  EXPECT_EQ(launch_info({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).launch_id,
            "process vm/17@5, job 7");
  EXPECT_EQ(launch_info({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}),
            (persist::LaunchInfo{"process vm/3@1", 1, 2, 2, "", "", {}}));
  EXPECT_EQ(launch_info({{"OMPI_MCA_orte_precondition_transports", "a-b"}}, "").launch_id, "")
      << "no identity asked for";
}

TEST(Launch, ByMpichsDaemonIsKnownByItWhateverSlurmSays) {
  const Variables hydra{{"SLURM_JOB_ID", "7"},         {"SLURM_STEP_ID", "1"}, {"SLURM_PROCID", "0"},
                        {"SLURM_STEP_NUM_TASKS", "2"}, {"PMI_RANK", "3"},      {"PMI_SIZE", "8"}};
  EXPECT_EQ(launch_info(hydra, "vm/17@5", "vm/9@2"),
            (persist::LaunchInfo{"process vm/9@2, job 7", 3, 8, 2, "", "", {}}));
  EXPECT_EQ(launch_info(hydra), (persist::LaunchInfo{"Slurm step 1, job 7", 3, 8, 2, "", "", {}})) << "srun --mpi=pmi2";
}

TEST(Launch, IsNotWhatSomebodySetByHand) {
  const Variables constant{{"OMPI_MCA_orte_precondition_transports", "0-0"},
                           {"SLURM_JOB_ID", "7"},
                           {"SLURM_STEP_ID", "1"},
                           {"SLURM_PROCID", "2"},
                           {"SLURM_STEP_NUM_TASKS", "4"}};
  EXPECT_EQ(launch_info(constant), (persist::LaunchInfo{"Slurm step 1, job 7", 2, 4, 2, "", "", {}}));
}

TEST(Launch, InAShellThatSrunStartedIsTheProcess) {
  Variables shell{{"SLURM_JOB_ID", "7"},         {"SLURM_STEP_ID", "0"},     {"SLURM_PROCID", "0"},
                  {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PTY_PORT", "4711"}, {"PMIX_NAMESPACE", "slurm.pmix.7.0"}};
  EXPECT_EQ(launch_info(shell).launch_id, "process vm/17@5, job 7");
  shell["PMI_RANK"] = "0";
  EXPECT_EQ(launch_info(shell).launch_id, "process vm/3@1, job 7");
}

TEST(Launch, ByPmixOutsideOfSlurmHasOpenMpisSize) {
  const Variables prterun{{"PMIX_NAMESPACE", "prterun-vm-5@1"}, {"PMIX_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  EXPECT_EQ(launch_info(prterun), (persist::LaunchInfo{"PMIX_NAMESPACE prterun-vm-5@1", 2, 4, 2, "", "", {}}));
}

TEST(Launch, OfTorchrunIsEachOfItsRestarts) {
  Variables torchrun{{"TORCHELASTIC_RUN_ID", "none"},     {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"},
                     {"TORCHELASTIC_RESTART_COUNT", "0"}, {"RANK", "1"},        {"WORLD_SIZE", "3"}};
  const persist::LaunchInfo found = launch_info(torchrun);
  EXPECT_TRUE(says(found.launch_id, {"process vm/3@1", "restart 0"})) << found.launch_id;
  EXPECT_EQ((std::pair{found.first_process, found.process_count}), (std::pair{1, 3}));
  torchrun["TORCHELASTIC_RESTART_COUNT"] = "1";
  EXPECT_NE(launch_info(torchrun).launch_id, found.launch_id);
}

TEST(Launch, ArrayTasksOfAllBatchSystems) {
  for (const std::string name :
       {"SLURM_ARRAY_TASK_ID", "PBS_ARRAY_INDEX", "PBS_ARRAYID", "LSB_JOBINDEX", "SGE_TASK_ID"})
    EXPECT_EQ(launch_info({{name, "12"}}).array_task, "12") << name;
  EXPECT_EQ(launch_info({{"SLURM_ARRAY_TASK_ID", "0"}}).array_task, "0");
  EXPECT_EQ(launch_info({{"LSB_JOBINDEX", "0"}}).array_task, "") << "no array";
  EXPECT_EQ(launch_info({{"SGE_TASK_ID", "undefined"}}).array_task, "") << "no array";
}

TEST(RunOfPart, IsTheRunsNameAndTheCommunicators) {
  EXPECT_EQ(persist::run_name_of_part("a", ""), "a");
  EXPECT_EQ(persist::run_name_of_part("a", "MPI_COMM_WORLD"), "a");
  EXPECT_EQ(persist::run_name_of_part("a", "MPI_COMM_SELF"), "a");
  EXPECT_EQ(persist::run_name_of_part("a", "a"), "a");
  EXPECT_EQ(persist::run_name_of_part("a", "ocean 1"), "a.ocean-1");
  EXPECT_EQ(persist::run_name_of_part(std::string(32, 'a'), std::string(31, 'b')).size(), 64U);
  EXPECT_THROW((void)persist::run_name_of_part(std::string(32, 'a'), std::string(32, 'b')), Error);
}

}  // namespace
}  // namespace kedge::faults::launch_test
