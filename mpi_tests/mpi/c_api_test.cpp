// The C API over MPI and POSIX: how engines begin and end, and that all ranks learn the same.
#include <gmock/gmock.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/simulated_nodes.hpp"
#include "kedge/kedge.h"
#include "kedge/kedge_mpi.h"
#include "mpi/shared_directory.hpp"

namespace kedge::c_api_test {
namespace {

using testing::HasSubstr;

/// In a directory that all ranks share and that is removed at the end.
class CApiOverMpi : public testing::Test {
 protected:
  void SetUp() override {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    directory_ = make_shared_directory("/tmp");
    ASSERT_FALSE(directory_.empty());
    ASSERT_EQ(kedge_options_load(&options_), KEDGE_OK);
    set("open.chained", "true");  // starts one after the other in one launch
    set("store.path", directory_ + "/store/{node}");
    set("persistent.path", directory_ + "/prefix");
    set("comm.timeout_s", "30");
    set("log.level", "warning");
  }
  void TearDown() override {
    kedge_options_free(options_);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0 && !directory_.empty()) std::filesystem::remove_all(directory_);
  }

  void set(const char* name, const std::string& value) {
    EXPECT_EQ(kedge_options_set(options_, name, value.c_str()), KEDGE_OK) << kedge_last_error();
  }
  [[nodiscard]] bool is_last() const { return rank_ + 1 == size_; }

  /// The code is this one and the text is the same on all ranks; gives the text.
  static std::string expect_same(kedge_error code, kedge_error expected) {
    EXPECT_EQ(code, expected) << kedge_last_error();
    EXPECT_EQ(kedge_last_failure()->code, expected);
    std::array<char, 4096> of_rank_0{};
    std::string(kedge_last_error()).copy(of_rank_0.data(), of_rank_0.size() - 1);
    MPI_Bcast(of_rank_0.data(), static_cast<int>(of_rank_0.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    EXPECT_STREQ(kedge_last_error(), of_rank_0.data());
    return kedge_last_error();
  }

  int rank_ = 0;
  int size_ = 0;
  std::string directory_;
  kedge_options* options_ = nullptr;
  kedge::faults::SimulatedNodes nodes_{2};
};

TEST_F(CApiOverMpi, ARoundTripWithShardsOfUnevenSize) {
  const std::uint64_t mine = static_cast<std::uint64_t>(rank_) + 1;
  const std::uint64_t first = static_cast<std::uint64_t>(rank_) * mine / 2;
  const std::uint64_t whole = static_cast<std::uint64_t>(size_) * (static_cast<std::uint64_t>(size_) + 1) / 2;
  std::vector<double> values(mine, 1.5 * rank_);
  for (int start = 0; start < 2; ++start) {
    kedge_engine* engine = nullptr;
    const MPI_Fint comm = MPI_Comm_c2f(MPI_COMM_WORLD);
    const kedge_error begun =
        start == 0 ? kedge_engine_new(MPI_COMM_WORLD, options_, &engine) : kedge_engine_new_f(comm, options_, &engine);
    ASSERT_EQ(begun, KEDGE_OK) << kedge_last_error();
    int found = -1;
    EXPECT_EQ(kedge_open(engine, nullptr, KEDGE_KEEP_NEWER, &found), KEDGE_OK);
    EXPECT_EQ(found, start);
    if (found == 1) {
      kedge_region region{};
      ASSERT_EQ(kedge_find_region(engine, "values", &region), KEDGE_OK);
      EXPECT_EQ(region.shape[0], mine);
      EXPECT_EQ(region.global_shape[0], whole);
      std::vector<double> loaded(region.shape[0]);
      EXPECT_EQ(kedge_load(engine, "values", loaded.data(), region.dtype, region.dimensions, region.shape), KEDGE_OK);
      EXPECT_EQ(kedge_close(engine), KEDGE_OK);
      EXPECT_EQ(loaded, values);
    }
    const std::string tag = "start-" + std::to_string(start);
    const std::int64_t number = start;
    const kedge_attribute attribute{"start", KEDGE_ATTRIBUTE_INT64, 1, &number};
    EXPECT_EQ(kedge_create(engine, tag.c_str(), &attribute, 1), KEDGE_OK);
    EXPECT_EQ(kedge_save_shard(engine, "values", values.data(), KEDGE_FLOAT64, 1, &mine, &whole, &first, 0), KEDGE_OK);
    EXPECT_EQ(kedge_commit(engine), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(kedge_finalize(engine), KEDGE_OK);
    kedge_engine_free(engine);
  }
}

TEST_F(CApiOverMpi, AWrongLoadOnOneRankIsToldOnAll) {
  kedge_engine* engine = nullptr;
  ASSERT_EQ(kedge_engine_new(MPI_COMM_WORLD, options_, &engine), KEDGE_OK) << kedge_last_error();
  double value = 1;
  float wrong = 0;
  int found = 0;
  EXPECT_EQ(kedge_create(engine, "a", nullptr, 0), KEDGE_OK);
  EXPECT_EQ(kedge_save(engine, "value", &value, KEDGE_FLOAT64, 0, nullptr), KEDGE_OK);
  EXPECT_EQ(kedge_commit(engine), KEDGE_OK);
  EXPECT_EQ(kedge_open(engine, "a", KEDGE_KEEP_NEWER, &found), KEDGE_OK);
  if (is_last()) {
    EXPECT_EQ(kedge_load(engine, "value", &wrong, KEDGE_FLOAT32, 0, nullptr), KEDGE_MISMATCH);
  }
  EXPECT_THAT(expect_same(kedge_close(engine), KEDGE_MISMATCH), HasSubstr("float32"));
  EXPECT_EQ(kedge_last_failure()->rank, size_ - 1);
  kedge_engine_free(engine);  // without finalize: harmless
}

TEST_F(CApiOverMpi, AnEngineThatCannotBeginSaysSoOnAllRanks) {
  kedge_engine* engine = nullptr;
  if (is_last()) {
    EXPECT_EQ(kedge_options_set(options_, "store.keep", "many"), KEDGE_INVALID_ARGUMENT);
  }
  EXPECT_THAT(expect_same(kedge_engine_new(MPI_COMM_WORLD, options_, &engine), KEDGE_INVALID_ARGUMENT),
              HasSubstr("store.keep must be"));
  EXPECT_EQ(kedge_last_failure()->rank, size_ - 1);
  EXPECT_EQ(engine, nullptr);
}

TEST_F(CApiOverMpi, ANullPlaceForTheEngineIsToldOnAllRanks) {
  kedge_engine* engine = nullptr;
  kedge_engine** place = is_last() ? nullptr : &engine;
  EXPECT_THAT(expect_same(kedge_engine_new(MPI_COMM_WORLD, options_, place), KEDGE_INVALID_ARGUMENT),
              HasSubstr("must not be NULL"));
  EXPECT_EQ(engine, nullptr);
}

TEST_F(CApiOverMpi, OptionsThatDifferAreNamed) {
  if (size_ == 1) return;  // nobody to differ from
  kedge_engine* engine = nullptr;
  set("redundancy.every", is_last() ? "3" : "2");
  EXPECT_THAT(expect_same(kedge_engine_new(MPI_COMM_WORLD, options_, &engine), KEDGE_INVALID_ARGUMENT),
              HasSubstr("redundancy.every"));
}

TEST_F(CApiOverMpi, ACommunicatorThatIsNoneIsRefused) {
  kedge_engine* engine = nullptr;
  EXPECT_EQ(kedge_engine_new(MPI_COMM_NULL, options_, &engine), KEDGE_INVALID_ARGUMENT);
  EXPECT_THAT(kedge_last_error(), HasSubstr("MPI_COMM_NULL"));
  EXPECT_EQ(engine, nullptr);
}

TEST_F(CApiOverMpi, AStoreThatCannotBeTellsItsPathAndErrno) {
  kedge_engine* engine = nullptr;
  set("store.path", "/dev/null/store");
  (void)expect_same(kedge_engine_new(MPI_COMM_WORLD, options_, &engine), KEDGE_IO);
  EXPECT_THAT(kedge_last_failure()->path, HasSubstr("/dev/null"));
  EXPECT_EQ(kedge_last_failure()->system_errno, ENOTDIR);
}

}  // namespace
}  // namespace kedge::c_api_test
