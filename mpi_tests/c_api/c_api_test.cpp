// The C API call by call: a round trip, regions and attributes, the schedule and the end of a job, outputs, levels,
// completions, counters, and failures with their codes on all ranks.
#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "bindings/c/attributes.hpp"
#include "c_api/c_engines.hpp"

namespace kedge::faults::c_api_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::array<std::uint64_t, 2> kBlock = {3, 4};

std::vector<double> block_of(int rank) {
  std::vector<double> block(12);
  std::iota(block.begin(), block.end(), 100.0 * rank);
  return block;
}

void save_all(kedge_engine* engine, int rank, const char* tag) {
  const std::array<std::uint64_t, 2> whole = {6, 4};
  const std::array<std::uint64_t, 2> offset = {static_cast<std::uint64_t>(3 * rank), 0};
  const std::vector<double> block = block_of(rank);
  const std::int64_t step = 7;
  const char letter = static_cast<char>('a' + rank);
  ASSERT_EQ(kedge_create(engine, tag, nullptr, 0), KEDGE_OK) << kedge_last_error();
  EXPECT_EQ(kedge_save_shard(engine, "field/t", block.data(), KEDGE_FLOAT64, 2, kBlock.data(), whole.data(),
                             offset.data(), 0),
            KEDGE_OK);
  EXPECT_EQ(kedge_save_replicated(engine, "step", &step, KEDGE_INT64, 0, nullptr), KEDGE_OK);
  EXPECT_EQ(kedge_save(engine, "letter", &letter, KEDGE_OPAQUE, 0, nullptr), KEDGE_OK);
  EXPECT_EQ(kedge_commit(engine), KEDGE_OK) << kedge_last_error();
}

TEST(CApi, WhatWasSavedComesBackInTheNextStart) {
  SimulatedJob job(2);
  run_in_c(job, [](int rank, kedge_engine* engine) {
    int found = -1;
    EXPECT_EQ(kedge_open(engine, nullptr, KEDGE_KEEP_NEWER, &found), KEDGE_OK);
    EXPECT_EQ(found, 0);
    save_all(engine, rank, "a");
    EXPECT_EQ(kedge_finalize(engine), KEDGE_OK);
    EXPECT_EQ(kedge_finalize(engine), KEDGE_BAD_STATE);
  });
  run_in_c(job, [](int rank, kedge_engine* engine) {
    EXPECT_EQ(opened(engine, "latest"), "a");
    std::vector<double> block(12);
    std::int64_t step = 0;
    char letter = 0;
    EXPECT_EQ(kedge_load(engine, "field/t", block.data(), KEDGE_FLOAT64, 2, kBlock.data()), KEDGE_OK);
    EXPECT_EQ(kedge_load(engine, "step", &step, KEDGE_INT64, 0, nullptr), KEDGE_OK);
    EXPECT_EQ(kedge_load(engine, "letter", &letter, KEDGE_OPAQUE, 0, nullptr), KEDGE_OK);
    EXPECT_EQ(kedge_close(engine), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(block, block_of(rank));
    EXPECT_EQ(step, 7);
    EXPECT_EQ(letter, 'a' + rank);
  });
}

TEST(CApi, FinalizeWithin) {
  SimulatedJob job(2);
  run_in_c(job, [](int rank, kedge_engine* engine) {
    save_all(engine, rank, "a");
    int done = -1;
    EXPECT_EQ(kedge_finalize_for(engine, 60, &done), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(done, 1);
    EXPECT_EQ(kedge_finalize_for(engine, 60, &done), KEDGE_BAD_STATE);
  });
  run_in_c(job, [](int /*rank*/, kedge_engine* engine) {
    EXPECT_EQ(opened(engine, "latest"), "a");
    EXPECT_EQ(kedge_finalize_for(engine, 60, nullptr), KEDGE_INVALID_ARGUMENT) << "it has ended all the same";
    EXPECT_EQ(kedge_finalize(engine), KEDGE_BAD_STATE);
  });
}

TEST(CApi, TellsWhatTheOpenCheckpointHolds) {
  SimulatedJob job(2);
  run_in_c(job, [](int rank, kedge_engine* engine) {
    kedge_info info{};
    kedge_region region{};
    std::size_t count = 0;
    EXPECT_EQ(kedge_get_info(engine, &info), KEDGE_BAD_STATE);
    EXPECT_EQ(kedge_region_count(engine, &count), KEDGE_BAD_STATE);
    save_all(engine, rank, "first");
    save_all(engine, rank, "second");
    EXPECT_EQ(opened(engine), "second");
    ASSERT_EQ(kedge_get_info(engine, &info), KEDGE_OK);
    EXPECT_STREQ(info.tag, "second");
    EXPECT_EQ(info.world_size, 2U);
    EXPECT_EQ(info.logical_rank, static_cast<std::uint32_t>(rank));
    EXPECT_EQ(info.source, KEDGE_SOURCE_IN_PLACE);
    EXPECT_EQ(std::strlen(info.commit_id), 32U);
    EXPECT_STRNE(info.commit_id, info.parent_commit_id);
    EXPECT_GT(info.total_bytes, 2U * 12U * 8U);
    EXPECT_GT(info.time_ns, 0);

    ASSERT_EQ(kedge_region_count(engine, &count), KEDGE_OK);
    EXPECT_EQ(count, 3U);
    ASSERT_EQ(kedge_find_region(engine, "field/t", &region), KEDGE_OK);
    EXPECT_STREQ(region.name, "field/t");
    EXPECT_EQ(region.dtype, KEDGE_FLOAT64);
    EXPECT_EQ(region.size_bytes, 96U);
    EXPECT_EQ(region.dimensions, 2);
    EXPECT_EQ(region.placement, KEDGE_PLACEMENT_SHARD);
    EXPECT_EQ(region.routed, 0);
    EXPECT_THAT(region.shape, ElementsAre(3, 4, 0, 0, 0, 0, 0, 0));
    EXPECT_THAT(region.global_shape, ElementsAre(6, 4, 0, 0, 0, 0, 0, 0));
    EXPECT_THAT(region.offset, ElementsAre(3 * rank, 0, 0, 0, 0, 0, 0, 0));
    ASSERT_EQ(kedge_find_region(engine, "step", &region), KEDGE_OK);
    EXPECT_EQ(region.placement, KEDGE_PLACEMENT_REPLICATED);
    EXPECT_EQ(region.dimensions, 0);
    EXPECT_EQ(kedge_find_region(engine, "stop", &region), KEDGE_NOT_FOUND);
    EXPECT_STREQ(region.name, "step") << "untouched on failure";
    EXPECT_EQ(kedge_get_region(engine, 2, &region), KEDGE_OK);
    EXPECT_EQ(kedge_get_region(engine, 3, &region), KEDGE_NOT_FOUND);
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
    EXPECT_EQ(kedge_get_region(engine, 0, &region), KEDGE_BAD_STATE);
    EXPECT_EQ(kedge_get_info(engine, &info), KEDGE_OK) << "of the one opened last";
  });
}

TEST(CApi, OpensWhatIsAskedForAndDiscardsWhatIsNewer) {
  SimulatedJob job(2);
  job.options.store.keep = 3;
  run_in_c(job, [](int, kedge_engine* engine) {
    for (const char* tag : {"a", "b", "c"}) EXPECT_EQ(commit_value_in_c(engine, tag, 1), KEDGE_OK);
    EXPECT_EQ(opened(engine), "c");
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
    EXPECT_EQ(opened(engine, "unknown"), "");
    int found = 0;
    EXPECT_EQ(kedge_open_before(engine, "c", KEDGE_KEEP_NEWER, &found), KEDGE_OK);
    EXPECT_EQ(found, 1);
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
    EXPECT_EQ(kedge_open(engine, "a", KEDGE_DISCARD_NEWER, &found), KEDGE_OK);
    EXPECT_EQ(found, 1);
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
    EXPECT_EQ(opened(engine), "a");
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
  });
}

TEST(CApi, WaitForAndOnComplete) {
  SimulatedJob job(2);
  run_in_c(job, [](int, kedge_engine* engine) {
    std::vector<std::string> heard;
    const auto hear = [](void* context, kedge_error outcome, const char* reason) {
      static_cast<std::vector<std::string>*>(context)->push_back(std::to_string(outcome) +
                                                                 (reason == nullptr ? "" : std::string(": ") + reason));
    };
    EXPECT_EQ(commit_value_in_c(engine, "a", 1), KEDGE_OK);
    EXPECT_EQ(kedge_on_complete(engine, "a", KEDGE_LEVEL_PERSISTENT, hear, &heard), KEDGE_OK);
    EXPECT_EQ(commit_value_in_c(engine, "b", 2), KEDGE_OK);
    EXPECT_EQ(kedge_on_complete(engine, "b", KEDGE_LEVEL_PERSISTENT, hear, &heard), KEDGE_OK);
    int reached = -1;
    EXPECT_EQ(kedge_wait_for(engine, "b", KEDGE_LEVEL_PERSISTENT, 1, &reached), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(reached, 1);
    ASSERT_EQ(heard.size(), 2U);
    EXPECT_EQ(heard[0].find(std::to_string(KEDGE_NOT_FOUND) + ": "), 0U) << heard[0];
    EXPECT_EQ(heard[1], "0");
  });
}

TEST(CApi, Counters) {
  SimulatedJob job(4);
  run_in_c(job, [](int, kedge_engine* engine) {
    EXPECT_EQ(commit_value_in_c(engine, "a", 1), KEDGE_OK);
    EXPECT_EQ(commit_value_in_c(engine, "b", 2), KEDGE_OK);
    EXPECT_EQ(kedge_wait(engine, "b", KEDGE_LEVEL_PERSISTENT), KEDGE_OK) << kedge_last_error();
    kedge_counters counters;
    std::memset(&counters, 0xff, sizeof counters);
    EXPECT_EQ(kedge_get_counters(engine, &counters), KEDGE_OK);
    EXPECT_EQ(counters.commits, 2U);
    EXPECT_EQ(counters.protections, 2U);
    EXPECT_EQ(counters.flushes, 1U);
    EXPECT_EQ(counters.pending, 0U);
    EXPECT_GT(counters.saved_bytes, 8192U);
    EXPECT_EQ(counters.flushed_bytes * 2, counters.saved_bytes);
    EXPECT_EQ(counters.persistent_max_s, 0);
    for (const std::uint64_t word : counters.reserved) EXPECT_EQ(word, 0U);
  });
}

TEST(CApi, AJobThatIsToEndIsToldSo) {
  SimulatedJob job(4);
  job.options.schedule = {0, 0, 0};
  job.options.deadline = "1699990000";  // the tests' clock begins later
  run_in_c(job, [](int, kedge_engine* engine) {
    int needed = -1, exit = -1;
    EXPECT_EQ(kedge_need_checkpoint(engine, &needed), KEDGE_OK);
    EXPECT_EQ(needed, 1);
    EXPECT_EQ(commit_value_in_c(engine, "a", 1), KEDGE_OK);
    EXPECT_EQ(kedge_should_exit(engine, &exit), KEDGE_OK);
    EXPECT_EQ(exit, 1);
    EXPECT_EQ(kedge_need_checkpoint(engine, &needed), KEDGE_OK);
    EXPECT_EQ(needed, 0);
  });
  SimulatedJob other(2);
  run_in_c(other, [](int, kedge_engine* engine) {
    int exit = -1;
    EXPECT_EQ(kedge_should_exit(engine, &exit), KEDGE_OK);
    EXPECT_EQ(exit, 0);
  });
}

TEST(CApi, LevelsAbandonAndTheSchedule) {
  SimulatedJob job(4);
  job.options.schedule.every = 2;
  run_in_c(job, [](int, kedge_engine* engine) {
    int needed = -1;
    EXPECT_EQ(kedge_need_checkpoint(engine, &needed), KEDGE_OK);
    EXPECT_EQ(needed, 0);
    EXPECT_EQ(kedge_need_checkpoint(engine, &needed), KEDGE_OK);
    EXPECT_EQ(needed, 1);
    kedge_level level = KEDGE_LEVEL_SNAPSHOT;
    EXPECT_EQ(kedge_get_level(engine, "a", &level), KEDGE_OK);
    EXPECT_EQ(level, KEDGE_LEVEL_NONE);
    EXPECT_EQ(commit_value_in_c(engine, "a", 1), KEDGE_OK);
    EXPECT_EQ(kedge_wait(engine, "a", KEDGE_LEVEL_PROTECTED), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(kedge_get_level(engine, "a", &level), KEDGE_OK);
    EXPECT_STREQ(kedge_level_name(level), "protected");
    EXPECT_EQ(kedge_wait(engine, "b", KEDGE_LEVEL_LOCAL), KEDGE_NOT_FOUND);
    EXPECT_EQ(kedge_create(engine, "b", nullptr, 0), KEDGE_OK);
    EXPECT_EQ(kedge_abandon(engine), KEDGE_OK);
    EXPECT_EQ(kedge_abandon(engine), KEDGE_BAD_STATE);
    EXPECT_EQ(opened(engine), "a");
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
  });
}

TEST(CApi, AttributesPinsAndSourcesGoThroughThePrefix) {
  SimulatedJob job(2);
  job.options.persistent.every = 1;
  run_in_c(job, [](int, kedge_engine* engine) {
    const double time = 2.0;
    const std::array<std::int64_t, 2> grid = {3, 4};
    const std::array<kedge_attribute, 3> attributes = {
        kedge_attribute{"time", KEDGE_ATTRIBUTE_DOUBLE, 1, &time},
        kedge_attribute{"grid", KEDGE_ATTRIBUTE_INT64, grid.size(), grid.data()},
        kedge_attribute{"code", KEDGE_ATTRIBUTE_STRING, 0, "v2"}};
    EXPECT_EQ(kedge_create(engine, "a", attributes.data(), attributes.size()), KEDGE_OK) << kedge_last_error();
    const int value = 7;
    EXPECT_EQ(kedge_save(engine, "value", &value, KEDGE_INT32, 0, nullptr), KEDGE_OK);
    EXPECT_EQ(kedge_commit(engine), KEDGE_OK);
    EXPECT_EQ(kedge_pause(engine), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(kedge_resume(engine), KEDGE_OK);
    EXPECT_EQ(kedge_create_output(engine, "plot", nullptr, 0), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(kedge_commit(engine), KEDGE_OK);
    int found = 0;
    EXPECT_EQ(kedge_open(engine, "latest", KEDGE_KEEP_NEWER, &found), KEDGE_OK);
    EXPECT_EQ(found, 1) << "the checkpoint before the output";
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
    EXPECT_EQ(kedge_pin(engine, "a"), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(kedge_unpin(engine, "a"), KEDGE_OK);
    EXPECT_EQ(kedge_pin(engine, "b"), KEDGE_NOT_FOUND);
  });
  job.options.run = "another";
  run_in_c(job, [](int, kedge_engine* engine) {
    int found = 0;
    EXPECT_EQ(kedge_open_source(engine, "/prefix", nullptr, "a", &found), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(found, 1);
    double time = 0;
    std::array<std::int64_t, 2> grid{};
    std::array<char, 8> code{};
    std::size_t count = 0;
    EXPECT_EQ(kedge_get_attribute_double(engine, "time", &time, 1, &count), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(time, 2.0);
    EXPECT_EQ(kedge_get_attribute_int64(engine, "grid", grid.data(), grid.size(), &count), KEDGE_OK);
    EXPECT_EQ(grid, (std::array<std::int64_t, 2>{3, 4}));
    EXPECT_EQ(kedge_get_attribute_string(engine, "code", code.data(), code.size(), &count), KEDGE_OK);
    EXPECT_STREQ(code.data(), "v2");
    EXPECT_EQ(kedge_get_attribute_double(engine, "grid", &time, 1, &count), KEDGE_MISMATCH);
    int value = 0;
    EXPECT_EQ(kedge_load(engine, "value", &value, KEDGE_INT32, 0, nullptr), KEDGE_OK);
    EXPECT_EQ(value, 7);
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
  });
}

TEST(CApi, ALoadOfTheWrongTypeIsToldByCloseOnAllRanks) {
  SimulatedJob job(3);
  std::array<std::string, 3> texts;
  run_in_c(job, [&](int rank, kedge_engine* engine) {
    EXPECT_EQ(commit_value_in_c(engine, "a", 5), KEDGE_OK);
    EXPECT_EQ(opened(engine), "a");
    double wrong = 0;
    const std::array<std::uint64_t, 1> one = {1};
    if (rank == 1) {
      EXPECT_EQ(kedge_load(engine, "value", &wrong, KEDGE_FLOAT64, 0, nullptr), KEDGE_MISMATCH);
      EXPECT_EQ(kedge_load(engine, "value", &wrong, KEDGE_INT32, 1, one.data()), KEDGE_MISMATCH);
      EXPECT_EQ(kedge_load(engine, "valve", &wrong, KEDGE_INT32, 0, nullptr), KEDGE_NOT_FOUND);
    }
    EXPECT_EQ(kedge_close(engine), KEDGE_MISMATCH);
    texts.at(static_cast<std::size_t>(rank)) = kedge_last_error();
    EXPECT_EQ(kedge_last_failure()->code, KEDGE_MISMATCH);
    EXPECT_EQ(kedge_last_failure()->rank, 1);
  });
  EXPECT_THAT(texts[0], HasSubstr("saved as int32 and is loaded as float64"));
  EXPECT_THAT(texts, testing::Each(texts[0]));
}

TEST(CApi, AFullStoreIsToldWithItsRankAndTheRunGoesOn) {
  SimulatedJob job(2);
  run_in_c(job, [](int rank, kedge_engine* engine) {
    EXPECT_EQ(commit_value_in_c(engine, "a", 5), KEDGE_OK);
    const std::uint64_t vast = std::uint64_t{1} << 45U;
    const char byte = 0;
    EXPECT_EQ(kedge_create(engine, "b", nullptr, 0), KEDGE_OK);
    EXPECT_EQ(kedge_save(engine, "vast", &byte, KEDGE_OPAQUE, 1, &vast), KEDGE_NO_SPACE);
    EXPECT_EQ(kedge_last_failure()->rank, rank);
    EXPECT_EQ(kedge_commit(engine), KEDGE_NO_SPACE);
    EXPECT_EQ(kedge_last_failure()->rank, 0);
    EXPECT_THAT(kedge_last_error(), StartsWith("no_space on rank 0: "));
    EXPECT_EQ(opened(engine), "a");
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
  });
}

TEST(CApi, AttributesGoIntoTheEngineAsTheyAre) {
  const std::array<std::int64_t, 2> numbers = {-1, 1};
  const double time_s = 0.5;
  const std::array<kedge_attribute, 5> given = {{{"n", KEDGE_ATTRIBUTE_INT64, 2, numbers.data()},
                                                 {"one", KEDGE_ATTRIBUTE_INT64, 1, numbers.data()},
                                                 {"none", KEDGE_ATTRIBUTE_DOUBLE, 0, nullptr},
                                                 {"t", KEDGE_ATTRIBUTE_DOUBLE, 1, &time_s},
                                                 {"code", KEDGE_ATTRIBUTE_STRING, 0, "v1"}}};
  const Attributes expected = {{"n", std::vector<std::int64_t>{-1, 1}},
                               {"one", std::int64_t{-1}},
                               {"none", std::vector<double>()},
                               {"t", 0.5},
                               {"code", std::string("v1")}};
  EXPECT_EQ(bindings::attributes_of(given.data(), given.size()), expected);
  EXPECT_EQ(bindings::attributes_of(nullptr, 0), Attributes());
}

TEST(CApi, AttributesComeBackByTypeAndCutToTheRoomThereIs) {
  const bindings::AttributeQuery asked{"the_call", "key"};
  std::array<std::int64_t, 2> numbers{};
  std::array<double, 2> reals{};
  std::array<char, 4> text{};
  std::size_t count = 99;
  bindings::copy_value(std::int64_t{5}, asked, numbers.data(), 2, &count);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(numbers[0], 5);
  bindings::copy_value(std::vector<double>{1, 2, 3}, asked, reals.data(), 2, &count);
  EXPECT_EQ(count, 3U);
  EXPECT_THAT(reals, ElementsAre(1, 2));
  bindings::copy_value(std::vector<double>{1, 2}, asked, static_cast<double*>(nullptr), 0, &count);
  EXPECT_EQ(count, 2U);
  bindings::copy_value(std::string("words"), asked, text.data(), text.size(), &count);
  EXPECT_EQ(count, 5U);
  EXPECT_STREQ(text.data(), "wor");
  bindings::copy_value(std::string("w"), asked, text.data(), text.size(), nullptr);
  EXPECT_STREQ(text.data(), "w");
  EXPECT_THROW(bindings::copy_value(1.5, asked, numbers.data(), 2, nullptr), Error);
  EXPECT_THROW(bindings::copy_value(std::int64_t{1}, asked, reals.data(), 2, nullptr), Error);
  EXPECT_THROW(bindings::copy_value(1.5, asked, text.data(), 2, nullptr), Error);
}

TEST(CApi, AnAttributeThatIsNotThereIsNotFound) {
  SimulatedJob job(1);
  run_in_c(job, [](int, kedge_engine* engine) {
    double value = 0;
    EXPECT_EQ(kedge_get_attribute_double(engine, "t", &value, 1, nullptr), KEDGE_BAD_STATE);
    EXPECT_EQ(commit_value_in_c(engine, "a", 5), KEDGE_OK);
    EXPECT_EQ(opened(engine), "a");
    EXPECT_EQ(kedge_get_attribute_double(engine, "t", &value, 1, nullptr), KEDGE_NOT_FOUND);
    EXPECT_EQ(kedge_get_attribute_int64(engine, "t", nullptr, 0, nullptr), KEDGE_NOT_FOUND);
    EXPECT_EQ(kedge_get_attribute_string(engine, "t", nullptr, 0, nullptr), KEDGE_NOT_FOUND);
    EXPECT_THAT(kedge_last_error(), HasSubstr("a has no attribute t"));
  });
}

}  // namespace
}  // namespace kedge::faults::c_api_test
