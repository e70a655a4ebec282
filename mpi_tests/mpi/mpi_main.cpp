// main for GoogleTest under mpirun: every rank runs every test; all ranks end with the same exit code, non-zero
// if a test failed on any. Rank 0 prints as usual, the others print failures only.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace {

class FailuresOnly final : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}
  void OnTestStart(const testing::TestInfo& test) override { test_ = &test; }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s.%s: %s:%d: %s\n", rank_, test_ == nullptr ? "" : test_->test_suite_name(),
                 test_ == nullptr ? "" : test_->name(), result.file_name() == nullptr ? "" : result.file_name(),
                 result.line_number(), result.message());
  }

 private:
  int rank_;
  const testing::TestInfo* test_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) return EXIT_FAILURE;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  testing::InitGoogleTest(&argc, argv);
  GTEST_FLAG_SET(shuffle, false);  // the order must be the same on all ranks
  if (rank != 0) {
    GTEST_FLAG_SET(output, "");
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());      // GoogleTest hands it over raw
    listeners.Append(std::make_unique<FailuresOnly>(rank).release());  // and takes this one
  }
  const int mine = RUN_ALL_TESTS();
  int worst = 1;
  MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && mine == 0 && worst != 0) std::fprintf(stderr, "a test failed on another rank\n");
  MPI_Finalize();
  return worst == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
