// kedge_load_all and kedge_logical_ranks: what some ranks saved is loaded by more and by fewer, and a want that cannot
// be is the same error on all ranks.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "c_api/c_engines.hpp"

namespace kedge::faults::c_api_load_all_test {
namespace {

using testing::HasSubstr;

constexpr int kSavedBy = 4;
constexpr std::uint64_t kColumns = 3;
constexpr std::array<std::uint64_t, 2> kWhole = {29, kColumns};

std::uint64_t first_row(int rank, int ranks) {
  return kWhole[0] * static_cast<std::uint64_t>(rank) / static_cast<std::uint64_t>(ranks);
}

/// Rows of the array, whose elements are their positions in it.
struct Rows {
  Rows(std::uint64_t begin, std::uint64_t end) : shape{end - begin, kColumns}, offset{begin, 0} {
    values.resize(shape[0] * kColumns, -1);
  }

  [[nodiscard]] std::vector<double> positions() const {
    std::vector<double> all(values.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<double>(offset[0] * kColumns + i);
    return all;
  }
  [[nodiscard]] kedge_want want() {
    kedge_want want{};
    want.name = "field";
    want.data = values.data();
    want.shape = shape.data();
    want.dtype = KEDGE_FLOAT64;
    want.dimensions = 2;
    want.placement = KEDGE_PLACEMENT_SHARD;
    want.global_shape = kWhole.data();
    want.offset = offset.data();
    return want;
  }

  std::array<std::uint64_t, 2> shape;
  std::array<std::uint64_t, 2> offset;
  std::vector<double> values;
};

Rows rows_of(int rank, int ranks) { return {first_row(rank, ranks), first_row(rank + 1, ranks)}; }

kedge_want want_number(const char* name, std::int32_t* number, kedge_placement placement = KEDGE_PLACEMENT_OWN) {
  kedge_want want{};
  want.name = name;
  want.data = number;
  want.dtype = KEDGE_INT32;
  want.placement = placement;
  return want;
}

void save(kedge_engine* engine, int rank, int ranks) {
  Rows rows = rows_of(rank, ranks);
  rows.values = rows.positions();
  const std::int32_t step = 7, own = 100 + rank, box = 42;
  ASSERT_EQ(kedge_create(engine, "a", nullptr, 0), KEDGE_OK) << kedge_last_error();
  kedge_save_shard(engine, "field", rows.values.data(), KEDGE_FLOAT64, 2, rows.shape.data(), kWhole.data(),
                   rows.offset.data(), 0);
  kedge_save_replicated(engine, "step", &step, KEDGE_INT32, 0, nullptr);
  kedge_save(engine, "own", &own, KEDGE_INT32, 0, nullptr);
  if (rank == 1) kedge_save(engine, "box", &box, KEDGE_INT32, 0, nullptr);
  ASSERT_EQ(kedge_commit(engine), KEDGE_OK) << kedge_last_error();
}

/// What four ranks saved is there for so many.
class CApiLoadAll : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { save_by_four(); }

  void save_by_four() {
    job_.ranks = kSavedBy;
    run_in_c(job_, [](int rank, kedge_engine* engine) {
      save(engine, rank, kSavedBy);
      EXPECT_EQ(kedge_wait(engine, "a", KEDGE_LEVEL_PERSISTENT), KEDGE_OK) << kedge_last_error();
    });
    job_.ranks = GetParam();
  }

  SimulatedJob job_{kSavedBy};
};

TEST_P(CApiLoadAll, BlocksThatOverlapReplicatedNumbersAndRegionsOfSingleRanks) {
  run_in_c(job_, [&](int rank, kedge_engine* engine) {
    ASSERT_EQ(opened(engine), "a");
    const Rows own_rows = rows_of(rank, job_.ranks);
    const std::uint64_t begin = own_rows.offset[0];
    Rows rows(begin == 0 ? 0 : begin - 1, std::min(kWhole[0], begin + own_rows.shape[0] + 1));
    std::int32_t step = 0, box = 0, own = 0, old = 0;
    const std::uint32_t of = static_cast<std::uint32_t>(rank) % kSavedBy;
    const std::uint32_t third = 3;
    std::array<kedge_want, 5> wants = {rows.want(), want_number("step", &step, KEDGE_PLACEMENT_REPLICATED),
                                       want_number("box", &box), want_number("own", &own), want_number("own", &old)};
    wants[3].of = &of;
    wants[4].of = &third;
    ASSERT_EQ(kedge_load_all(engine, wants.data(), wants.size()), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(rows.values, rows.positions());
    EXPECT_EQ(step, 7);
    EXPECT_EQ(box, 42);
    EXPECT_EQ(own, 100 + static_cast<int>(of));
    EXPECT_EQ(old, 103);
    EXPECT_EQ(kedge_close(engine), KEDGE_OK) << kedge_last_error();
  });
}

TEST_P(CApiLoadAll, SomeRanksOrAllMayWantNothing) {
  run_in_c(job_, [&](int rank, kedge_engine* engine) {
    ASSERT_EQ(opened(engine), "a");
    EXPECT_EQ(kedge_load_all(engine, nullptr, 0), KEDGE_OK) << kedge_last_error();
    Rows rows(0, kWhole[0]);
    const kedge_want want = rows.want();
    const bool wants = rank == job_.ranks - 1;
    EXPECT_EQ(kedge_load_all(engine, wants ? &want : nullptr, wants ? 1 : 0), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(rows.values == rows.positions(), wants);
    Rows none(5, 5);
    kedge_want empty = none.want();
    empty.data = nullptr;
    EXPECT_EQ(kedge_load_all(engine, &empty, 1), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(kedge_close(engine), KEDGE_OK) << kedge_last_error();
  });
}

TEST_P(CApiLoadAll, TheProcessesTogetherHaveEachRankOnce) {
  std::mutex mutex;
  std::vector<std::uint32_t> all;
  run_in_c(job_, [&](int /*rank*/, kedge_engine* engine) {
    std::array<std::uint32_t, kSavedBy> ranks = {9, 9, 9, 9};
    std::size_t count = 77;
    EXPECT_EQ(kedge_logical_ranks(engine, ranks.data(), ranks.size(), &count), KEDGE_BAD_STATE);
    EXPECT_EQ(count, 77U);
    ASSERT_EQ(opened(engine), "a");
    EXPECT_EQ(kedge_logical_ranks(engine, nullptr, 1, &count), KEDGE_INVALID_ARGUMENT);
    ASSERT_EQ(kedge_logical_ranks(engine, nullptr, 0, &count), KEDGE_OK) << kedge_last_error();
    ASSERT_LE(count, ranks.size());
    ASSERT_EQ(kedge_logical_ranks(engine, ranks.data(), count, nullptr), KEDGE_OK);
    EXPECT_TRUE(std::is_sorted(ranks.begin(), ranks.begin() + static_cast<long>(count)));
    EXPECT_TRUE(count == ranks.size() || ranks.at(count) == 9U) << "no more than capacity";
    {
      const std::lock_guard guard(mutex);
      all.insert(all.end(), ranks.begin(), ranks.begin() + static_cast<long>(count));
    }
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
  });
  EXPECT_THAT(all, testing::UnorderedElementsAre(0, 1, 2, 3));
}

/// The last rank makes `change` to a good want, the others ask for nothing: all get this code, the checkpoint stays
/// open and usable, and the text says why, and on which rank.
void expect_refused(SimulatedJob& job, kedge_error code, const char* why,
                    const std::function<void(kedge_want&)>& change) {
  SCOPED_TRACE(why);
  run_in_c(job, [&](int rank, kedge_engine* engine) {
    ASSERT_EQ(opened(engine), "a");
    Rows rows(3, 5);
    kedge_want want = rows.want();
    change(want);
    const bool is_wrong = rank == job.ranks - 1;
    EXPECT_EQ(kedge_load_all(engine, is_wrong ? &want : nullptr, is_wrong ? 1 : 0), code);
    EXPECT_EQ(kedge_last_failure()->code, code);
    EXPECT_THAT(kedge_last_error(), HasSubstr(why));
    const kedge_want good = rows.want();
    EXPECT_EQ(kedge_load_all(engine, &good, 1), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(rows.values, rows.positions());
    EXPECT_EQ(kedge_close(engine), KEDGE_OK) << kedge_last_error();
  });
}

TEST_P(CApiLoadAll, AWantThatCannotBeIsTheSameErrorOnAllRanks) {
  const auto refused = [&](const char* why, const std::function<void(kedge_want&)>& change) {
    expect_refused(job_, KEDGE_INVALID_ARGUMENT, why, change);
  };
  const std::uint32_t first = 0;
  refused("the name of a want must not be NULL", [](kedge_want& want) { want.name = nullptr; });
  refused("field: the number of dimensions", [](kedge_want& want) { want.dimensions = -1; });
  refused("field: the number of dimensions", [](kedge_want& want) { want.dimensions = 9; });
  refused("field: dtype is not a type", [](kedge_want& want) { want.dtype = static_cast<kedge_dtype>(0); });
  refused("field: dtype is not a type", [](kedge_want& want) { want.dtype = static_cast<kedge_dtype>(19); });
  refused("field: shape must not be NULL", [](kedge_want& want) { want.shape = nullptr; });
  refused("field: global_shape and offset", [](kedge_want& want) { want.global_shape = nullptr; });
  refused("field: global_shape and offset", [](kedge_want& want) { want.offset = nullptr; });
  refused("field: placement is unknown", [](kedge_want& want) { want.placement = static_cast<kedge_placement>(3); });
  refused("field: only KEDGE_PLACEMENT_OWN has", [&](kedge_want& want) { want.of = &first; });
  refused("field: of no use", [](kedge_want& want) { want.refused = "of no use"; });
  refused("field: reserved must be zero", [](kedge_want& want) { want.reserved[3] = 1; });
  refused("'field': no memory is given", [](kedge_want& want) { want.data = nullptr; });
}

TEST_P(CApiLoadAll, AWantOfWhatWasNotSavedSoIsTheSameErrorOnAllRanks) {
  const auto mismatch = [&](const char* why, const std::function<void(kedge_want&)>& change) {
    expect_refused(job_, KEDGE_MISMATCH, why, change);
  };
  const std::array<std::uint64_t, 2> last = {28, 0};
  const std::array<std::uint64_t, 2> other = {30, kColumns};
  const std::uint32_t beyond = kSavedBy;
  std::int32_t number = 0;
  mismatch("float32", [](kedge_want& want) { want.dtype = KEDGE_FLOAT32; });
  mismatch("reaches over the edge", [&](kedge_want& want) { want.offset = last.data(); });
  mismatch("30 x 3", [&](kedge_want& want) { want.global_shape = other.data(); });
  mismatch("field", [](kedge_want& want) { want.placement = KEDGE_PLACEMENT_REPLICATED; });
  mismatch("own", [&](kedge_want& want) { want = want_number("own", &number); });
  mismatch("step", [&](kedge_want& want) { want = want_number("step", &number, KEDGE_PLACEMENT_OWN); });
  expect_refused(job_, KEDGE_NOT_FOUND, "nothing", [](kedge_want& want) { want.name = "nothing"; });
  expect_refused(job_, KEDGE_NOT_FOUND, "own", [&](kedge_want& want) {
    want = want_number("own", &number);
    want.of = &beyond;
  });
}

TEST_P(CApiLoadAll, TwoWantsOfOneRankNeedMemoryOfTheirOwn) {
  run_in_c(job_, [&](int /*rank*/, kedge_engine* engine) {
    ASSERT_EQ(opened(engine), "a");
    Rows rows(3, 5);
    const std::array<kedge_want, 2> wants = {rows.want(), rows.want()};
    EXPECT_EQ(kedge_load_all(engine, wants.data(), wants.size()), KEDGE_INVALID_ARGUMENT);
    EXPECT_THAT(kedge_last_error(), HasSubstr("into the same memory"));
    EXPECT_EQ(kedge_load_all(engine, nullptr, 1), KEDGE_INVALID_ARGUMENT);
    EXPECT_THAT(kedge_last_error(), HasSubstr("wants must not be NULL if count is 1"));
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
  });
}

TEST_P(CApiLoadAll, OnlyBetweenOpenAndClose) {
  run_in_c(job_, [&](int /*rank*/, kedge_engine* engine) {
    Rows rows(3, 5);
    const kedge_want want = rows.want();
    EXPECT_EQ(kedge_load_all(engine, &want, 1), KEDGE_BAD_STATE);
    ASSERT_EQ(opened(engine), "a");
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
    EXPECT_EQ(kedge_load_all(engine, &want, 1), KEDGE_BAD_STATE);
    EXPECT_EQ(kedge_load_all(engine, nullptr, 1), KEDGE_BAD_STATE);
    EXPECT_EQ(kedge_finalize(engine), KEDGE_OK);
    EXPECT_EQ(kedge_load_all(engine, &want, 1), KEDGE_BAD_STATE);
  });
}

TEST_P(CApiLoadAll, DamageIsToldOnAllRanksAndAgainByClose) {
  job_.options.open.verify = Verify::headers;
  job_.options.redundancy.scheme = Scheme::single;  // nothing is rebuilt, so that only loading finds it
  save_by_four();
  const double damaged = 3 * kColumns;  // the first element that is wanted, which rank 0 saved
  std::array<std::byte, sizeof damaged> bytes{};
  std::memcpy(bytes.data(), &damaged, sizeof damaged);
  int flipped = 0;
  for (const std::string& file : container_files(job_.disk, 0)) {  // one of them is unused
    const auto content = job_.disk.read_all(file);
    const auto found = std::ranges::search(content, bytes);
    if (found.empty()) continue;
    ++flipped;
    job_.disk.flip_bit(file, static_cast<std::uint64_t>(found.begin() - content.begin()), 0);
  }
  ASSERT_GE(flipped, 1);
  run_in_c(job_, [&](int rank, kedge_engine* engine) {
    ASSERT_EQ(opened(engine), "a");
    Rows rows(3, 5);
    const kedge_want want = rows.want();
    EXPECT_EQ(kedge_load_all(engine, rank == 0 ? &want : nullptr, rank == 0 ? 1 : 0), KEDGE_CORRUPT);
    EXPECT_EQ(kedge_close(engine), KEDGE_CORRUPT);
  });
}

INSTANTIATE_TEST_SUITE_P(On, CApiLoadAll, testing::Values(1, 3, kSavedBy, 6),
                         [](const auto& test) { return std::to_string(test.param) + "Ranks"; });

TEST(CApiOtherRanks, LoadsOfOneRankSayWhatToCallInstead) {
  SimulatedJob job(kSavedBy);
  run_in_c(job, [](int rank, kedge_engine* engine) { save(engine, rank, kSavedBy); });
  job.ranks = 3;
  job.nodes = {"node0", "node0", "node1"};
  run_in_c(job, [](int /*rank*/, kedge_engine* engine) {
    ASSERT_EQ(opened(engine), "a");
    std::size_t count = 0;
    std::int32_t step = 0;
    EXPECT_EQ(kedge_region_count(engine, &count), KEDGE_MISMATCH);
    EXPECT_EQ(kedge_load(engine, "step", &step, KEDGE_INT32, 0, nullptr), KEDGE_MISMATCH);
    EXPECT_THAT(kedge_last_error(), HasSubstr("saved by 4 ranks and this job has 3: load_all"));
    EXPECT_EQ(kedge_close(engine), KEDGE_MISMATCH);
  });
  job.options.open.other_ranks = OtherRanks::refuse;
  run_in_c(job, [](int /*rank*/, kedge_engine* engine) {
    int found = -1;
    EXPECT_EQ(kedge_open(engine, nullptr, KEDGE_KEEP_NEWER, &found), KEDGE_UNRECOVERABLE);
  });
}

TEST(CApiOtherRanks, OptionsByName) {
  kedge_options* options = nullptr;
  ASSERT_EQ(kedge_options_load(&options), KEDGE_OK);
  EXPECT_EQ(kedge_options_set(options, "open.other_ranks", "refuse"), KEDGE_OK) << kedge_last_error();
  EXPECT_EQ(kedge_options_set(options, "open.buffer_bytes", "33554432"), KEDGE_OK) << kedge_last_error();
  EXPECT_EQ(options->options.open.other_ranks, OtherRanks::refuse);
  EXPECT_EQ(options->options.open.buffer_bytes, 32U << 20U);
  EXPECT_EQ(kedge_options_set(options, "open.other_ranks", "maybe"), KEDGE_INVALID_ARGUMENT);
  kedge_options_free(options);
}

}  // namespace
}  // namespace kedge::faults::c_api_load_all_test
