// Wrong arguments in C are the same error on all ranks, a NULL engine is one on its rank alone; no exception crosses
// into C, and error texts belong to the thread.
#include <gmock/gmock.h>

#include <array>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/failure.hpp"
#include "c_api/c_engines.hpp"
#include "c_api/out_of_memory.hpp"
#include "harness/testing_world.hpp"
#include "kedge/kedge_device.h"

namespace kedge::faults::c_api_misuse_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::uint64_t kOne = 1;

void expect_refused(kedge_error error, const char* call) {
  EXPECT_EQ(error, KEDGE_INVALID_ARGUMENT) << call;
  EXPECT_EQ(kedge_last_failure()->code, KEDGE_INVALID_ARGUMENT);
  EXPECT_THAT(kedge_last_error(), StartsWith("invalid_argument"));
}

TEST(CApiMisuse, EveryCallRefusesANullEngine) {
  int number = 5;
  double real = 5;
  std::int64_t integer = 5;
  char letter = 'x';
  std::size_t count = 5;
  kedge_level level{};
  kedge_info info{};
  kedge_region region{};
  const auto refused = [](kedge_error error, const char* call) {
    expect_refused(error, call);
    EXPECT_THAT(kedge_last_error(), HasSubstr("engine must not be NULL")) << call;
  };
  refused(kedge_finalize(nullptr), "finalize");
  refused(kedge_finalize_for(nullptr, 1, &number), "finalize_for");
  refused(kedge_need_checkpoint(nullptr, &number), "need_checkpoint");
  refused(kedge_should_exit(nullptr, &number), "should_exit");
  refused(kedge_create(nullptr, "a", nullptr, 0), "create");
  refused(kedge_create_output(nullptr, "a", nullptr, 0), "create_output");
  refused(kedge_save(nullptr, "a", &number, KEDGE_INT32, 0, nullptr), "save");
  refused(kedge_save_shard(nullptr, "a", &number, KEDGE_INT32, 1, &kOne, &kOne, &kOne, 0), "save_shard");
  refused(kedge_save_replicated(nullptr, "a", &number, KEDGE_INT32, 0, nullptr), "save_replicated");
  refused(kedge_route_out(nullptr, "a", 0, &letter, 1, &count), "route_out");
  refused(kedge_route_in(nullptr, "a", &letter, 1, &count), "route_in");
  refused(kedge_refuse(nullptr, "a", "b"), "refuse");
  refused(kedge_commit(nullptr), "commit");
  refused(kedge_abandon(nullptr), "abandon");
  refused(kedge_get_level(nullptr, "a", &level), "get_level");
  refused(kedge_get_counters(nullptr, nullptr), "get_counters");
  refused(kedge_wait(nullptr, "a", KEDGE_LEVEL_LOCAL), "wait");
  refused(kedge_wait_for(nullptr, "a", KEDGE_LEVEL_LOCAL, 1, nullptr), "wait_for");
  refused(kedge_on_complete(nullptr, "a", KEDGE_LEVEL_LOCAL, nullptr, nullptr), "on_complete");
  refused(kedge_pin(nullptr, "a"), "pin");
  refused(kedge_unpin(nullptr, "a"), "unpin");
  refused(kedge_pause(nullptr), "pause");
  refused(kedge_resume(nullptr), "resume");
  refused(kedge_set_stream(nullptr, nullptr), "set_stream");
  refused(kedge_unset_stream(nullptr), "unset_stream");
  refused(kedge_open(nullptr, "a", KEDGE_KEEP_NEWER, &number), "open");
  refused(kedge_open_before(nullptr, "a", KEDGE_KEEP_NEWER, &number), "open_before");
  refused(kedge_open_source(nullptr, "p", "r", "a", &number), "open_source");
  refused(kedge_get_info(nullptr, &info), "get_info");
  refused(kedge_get_attribute_int64(nullptr, "a", &integer, 1, nullptr), "get_attribute_int64");
  refused(kedge_get_attribute_double(nullptr, "a", &real, 1, nullptr), "get_attribute_double");
  refused(kedge_get_attribute_string(nullptr, "a", &letter, 1, nullptr), "get_attribute_string");
  refused(kedge_region_count(nullptr, &count), "region_count");
  refused(kedge_get_region(nullptr, 0, &region), "get_region");
  refused(kedge_find_region(nullptr, "a", &region), "find_region");
  refused(kedge_load(nullptr, "a", &number, KEDGE_INT32, 0, nullptr), "load");
  refused(kedge_load_all(nullptr, nullptr, 0), "load_all");
  refused(kedge_logical_ranks(nullptr, nullptr, 0, &count), "logical_ranks");
  refused(kedge_close(nullptr), "close");
  EXPECT_EQ(number, 5);
  EXPECT_EQ(count, 5U);
  kedge_engine_free(nullptr);
  kedge_options_free(nullptr);
}

/// Rank 1 of two makes `wrong` call, rank 0 a right one: both must get the same code, and the job goes on.
void expect_refused_on_all_ranks(const std::function<kedge_error(kedge_engine*, bool wrong)>& call) {
  SimulatedJob job(2);
  run_in_c(job, [&](int rank, kedge_engine* engine) {
    ASSERT_EQ(commit_value_in_c(engine, "before", 1), KEDGE_OK);
    expect_refused(call(engine, rank == 1), "collective");
    EXPECT_THAT(kedge_last_error(), HasSubstr(rank == 1 ? "" : "on rank 1"));
    EXPECT_EQ(commit_value_in_c(engine, "after", 1), KEDGE_OK) << kedge_last_error();
    EXPECT_EQ(opened(engine), "after");
    EXPECT_EQ(kedge_close(engine), KEDGE_OK);
  });
}

TEST(CApiMisuse, CollectiveCallsWithNullArgumentsFailOnAllRanks) {
  expect_refused_on_all_ranks([](auto* e, bool wrong) { return kedge_create(e, wrong ? nullptr : "a", nullptr, 0); });
  expect_refused_on_all_ranks([](auto* e, bool wrong) { return kedge_create(e, "a", nullptr, wrong ? 1 : 0); });
  expect_refused_on_all_ranks(
      [](auto* e, bool wrong) { return kedge_create_output(e, wrong ? nullptr : "a", nullptr, 0); });
  expect_refused_on_all_ranks([](auto* e, bool wrong) {
    int found = 0;
    return kedge_open(e, nullptr, KEDGE_KEEP_NEWER, wrong ? nullptr : &found);
  });
  expect_refused_on_all_ranks([](auto* e, bool wrong) {
    int found = 0;
    return kedge_open(e, "before", wrong ? static_cast<kedge_newer>(2) : KEDGE_KEEP_NEWER, &found);
  });
  expect_refused_on_all_ranks([](auto* e, bool wrong) {
    int found = 0;
    return kedge_open_before(e, wrong ? nullptr : "before", KEDGE_KEEP_NEWER, &found);
  });
  expect_refused_on_all_ranks(
      [](auto* e, bool wrong) { return kedge_wait(e, wrong ? nullptr : "before", KEDGE_LEVEL_LOCAL); });
  expect_refused_on_all_ranks(
      [](auto* e, bool wrong) { return kedge_wait(e, "before", wrong ? KEDGE_LEVEL_NONE : KEDGE_LEVEL_LOCAL); });
  expect_refused_on_all_ranks([](auto* e, bool wrong) {
    int reached = 0;
    return kedge_wait_for(e, "before", KEDGE_LEVEL_LOCAL, 1, wrong ? nullptr : &reached);
  });
  expect_refused_on_all_ranks([](auto* e, bool wrong) {
    int reached = 0;
    return kedge_wait_for(e, "before", KEDGE_LEVEL_LOCAL, wrong ? std::nan("") : 1, &reached);
  });
}

TEST(CApiMisuse, NobodyIsCalledBackWithoutATagALevelOrACallback) {
  SimulatedJob job(2);
  run_in_c(job, [](int, kedge_engine* engine) {
    const auto callback = [](void*, kedge_error, const char*) {};
    expect_refused(kedge_on_complete(engine, nullptr, KEDGE_LEVEL_LOCAL, callback, nullptr), "no tag");
    expect_refused(kedge_on_complete(engine, "a", KEDGE_LEVEL_NONE, callback, nullptr), "no level");
    expect_refused(kedge_on_complete(engine, "a", KEDGE_LEVEL_LOCAL, nullptr, nullptr), "no callback");
    EXPECT_EQ(kedge_on_complete(engine, "a", KEDGE_LEVEL_LOCAL, callback, nullptr), KEDGE_NOT_FOUND);
  });
}

TEST(CApiMisuse, APinWithoutATagIsRefusedOnAllRanks) {
  expect_refused_on_all_ranks([](auto* e, bool wrong) { return kedge_pin(e, wrong ? nullptr : "before"); });
  expect_refused_on_all_ranks([](auto* e, bool wrong) { return kedge_unpin(e, wrong ? nullptr : "before"); });
}

TEST(CApiMisuse, OpeningASourceWithoutAPlaceIsRefused) {
  SimulatedJob job(2);
  run_in_c(job, [](int, kedge_engine* engine) {
    int found = 0;
    expect_refused(kedge_open_source(engine, nullptr, nullptr, nullptr, &found), "no prefix");
    expect_refused(kedge_open_source(engine, "/prefix", nullptr, nullptr, nullptr), "no place");
  });
}

TEST(CApiMisuse, AttributesThatCannotBeAreRefusedOnAllRanks) {
  static const double kNumber = 1;
  const std::vector<std::vector<kedge_attribute>> wrong = {
      {{nullptr, KEDGE_ATTRIBUTE_DOUBLE, 1, &kNumber}},
      {{"a", KEDGE_ATTRIBUTE_DOUBLE, 1, nullptr}},
      {{"a", KEDGE_ATTRIBUTE_INT64, 2, nullptr}},
      {{"a", KEDGE_ATTRIBUTE_STRING, 0, nullptr}},
      {{"a", static_cast<kedge_attribute_type>(9), 1, &kNumber}},
      {{"a", KEDGE_ATTRIBUTE_DOUBLE, 1, &kNumber}, {"a", KEDGE_ATTRIBUTE_DOUBLE, 1, &kNumber}}};
  for (const auto& attributes : wrong) {
    expect_refused_on_all_ranks([&](auto* engine, bool is_wrong) {
      return kedge_create(engine, "a", is_wrong ? attributes.data() : nullptr, is_wrong ? attributes.size() : 0);
    });
  }
}

TEST(CApiMisuse, ARegionThatCannotBeSavedFailsTheCommitOnAllRanks) {
  const std::int32_t value = 1;
  const std::array<std::uint64_t, 9> ones = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  const std::vector<std::function<kedge_error(kedge_engine*)>> calls = {
      [&](auto* e) { return kedge_save(e, nullptr, &value, KEDGE_INT32, 0, nullptr); },
      [&](auto* e) { return kedge_save(e, "a", nullptr, KEDGE_INT32, 0, nullptr); },
      [&](auto* e) { return kedge_save(e, "a", &value, KEDGE_INT32, 1, nullptr); },
      [&](auto* e) { return kedge_save(e, "a", &value, KEDGE_INT32, -1, ones.data()); },
      [&](auto* e) { return kedge_save(e, "a", &value, KEDGE_INT32, 9, ones.data()); },
      [&](auto* e) { return kedge_save(e, "a", &value, static_cast<kedge_dtype>(258), 0, nullptr); },
      [&](auto* e) { return kedge_save_shard(e, "a", &value, KEDGE_INT32, 1, &kOne, nullptr, &kOne, 0); },
      [&](auto* e) { return kedge_save_shard(e, "a", &value, KEDGE_INT32, 1, &kOne, &kOne, nullptr, 0); },
      [&](auto* e) { return kedge_save_replicated(e, nullptr, &value, KEDGE_INT32, 0, nullptr); }};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(i);
    expect_refused_on_all_ranks([&](auto* engine, bool wrong) {
      EXPECT_EQ(kedge_create(engine, "a", nullptr, 0), KEDGE_OK);
      if (wrong) expect_refused(calls[i](engine), "save");
      return kedge_commit(engine);
    });
  }
}

TEST(CApiMisuse, WhyARegionCouldNotEvenBePassedIsToldByCommitAndCloseOnAllRanks) {
  SimulatedJob job(2);
  run_in_c(job, [](int rank, kedge_engine* engine) {
    EXPECT_EQ(kedge_refuse(engine, "a", "of no use"), KEDGE_BAD_STATE) << "no commit follows that would tell";
    EXPECT_EQ(kedge_create(engine, "a", nullptr, 0), KEDGE_OK);
    if (rank == 1) expect_refused(kedge_save(engine, "field", nullptr, KEDGE_INT32, 99, &kOne), "save");
    EXPECT_EQ(kedge_commit(engine), KEDGE_INVALID_ARGUMENT);
    EXPECT_THAT(kedge_last_error(), HasSubstr("on rank 1: field: the number of dimensions must not exceed"));
    EXPECT_EQ(commit_value_in_c(engine, "a", 1), KEDGE_OK);
    EXPECT_EQ(opened(engine), "a");
    if (rank == 0) expect_refused(kedge_refuse(engine, "field", "of no use"), "load");
    EXPECT_EQ(kedge_close(engine), KEDGE_INVALID_ARGUMENT);
    EXPECT_THAT(kedge_last_error(), HasSubstr("on rank 0: field: of no use"));
    expect_refused(kedge_refuse(engine, nullptr, "of no use"), "no name");
    expect_refused(kedge_refuse(engine, "field", nullptr), "no reason");
    EXPECT_EQ(kedge_refuse(engine, "field", "late"), KEDGE_BAD_STATE);
  });
}

TEST(CApiMisuse, LocalCallsRefuseNullPlaces) {
  SimulatedJob job(1);
  run_in_c(job, [](int, kedge_engine* engine) {
    EXPECT_EQ(commit_value_in_c(engine, "a", 1), KEDGE_OK);
    EXPECT_EQ(opened(engine), "a");
    kedge_level level{};
    kedge_region region{};
    expect_refused(kedge_need_checkpoint(engine, nullptr), "need_checkpoint");
    expect_refused(kedge_should_exit(engine, nullptr), "should_exit");
    expect_refused(kedge_get_level(engine, nullptr, &level), "get_level");
    expect_refused(kedge_get_level(engine, "a", nullptr), "get_level");
    expect_refused(kedge_get_counters(engine, nullptr), "get_counters");
    expect_refused(kedge_get_info(engine, nullptr), "get_info");
    expect_refused(kedge_region_count(engine, nullptr), "region_count");
    expect_refused(kedge_get_region(engine, 0, nullptr), "get_region");
    expect_refused(kedge_find_region(engine, nullptr, &region), "find_region");
    expect_refused(kedge_find_region(engine, "value", nullptr), "find_region");
    expect_refused(kedge_get_attribute_int64(engine, nullptr, nullptr, 0, nullptr), "get_attribute_int64");
    expect_refused(kedge_get_attribute_double(engine, "a", nullptr, 1, nullptr), "get_attribute_double");
    expect_refused(kedge_get_attribute_string(engine, "a", nullptr, 1, nullptr), "get_attribute_string");
    expect_refused(kedge_load(engine, "value", nullptr, KEDGE_INT32, 0, nullptr), "load");
    EXPECT_EQ(kedge_close(engine), KEDGE_INVALID_ARGUMENT);
  });
}

TEST(CApiMisuse, ALoadWithoutANameOrShapeIsToldByClose) {
  SimulatedJob job(2);
  run_in_c(job, [](int rank, kedge_engine* engine) {
    EXPECT_EQ(commit_value_in_c(engine, "a", 1), KEDGE_OK);
    std::int32_t value = 0;
    for (const int turn : {0, 1, 2, 3}) {
      EXPECT_EQ(opened(engine), "a");
      if (rank == 1) {
        const char* name = turn == 0 ? nullptr : "value";
        expect_refused(kedge_load(engine, name, &value, KEDGE_INT32,
                                  turn == 2   ? -1
                                  : turn == 3 ? 9
                                              : 1,
                                  nullptr),
                       "load");
      }
      EXPECT_EQ(kedge_close(engine), KEDGE_INVALID_ARGUMENT) << "the same on all ranks";
      EXPECT_THAT(kedge_last_error(), HasSubstr("name and shape must not be NULL"));
    }
  });
}

TEST(CApiMisuse, OptionsByName) {
  kedge_options* options = nullptr;
  expect_refused(kedge_options_load(nullptr), "load");
  ASSERT_EQ(kedge_options_load(&options), KEDGE_OK);
  std::array<char, 8> text{};
  std::size_t length = 0;
  EXPECT_EQ(kedge_options_set(options, "store.path", "/local/{node}"), KEDGE_OK);
  EXPECT_EQ(kedge_options_get(options, "store.path", text.data(), text.size(), &length), KEDGE_OK);
  EXPECT_STREQ(text.data(), "/local/");
  EXPECT_EQ(length, 13U);
  EXPECT_EQ(kedge_options_get(options, "store.path", nullptr, 0, nullptr), KEDGE_OK);
  EXPECT_FALSE(options->options.load_failure);

  expect_refused(kedge_options_set(options, "store.keep", "0"), "out of range");
  EXPECT_EQ(options->options.store.keep, 1U);
  EXPECT_THAT(kedge_last_error(), HasSubstr("store.keep must be"));
  ASSERT_TRUE(options->options.load_failure) << "kedge_engine_new tells all ranks";
  EXPECT_THAT(options->options.load_failure->message, HasSubstr("store.keep must be"));
  expect_refused(kedge_options_set(options, "store.pth", "x"), "no such option");
  EXPECT_THAT(kedge_last_error(), HasSubstr("did you mean store.path?"));
  EXPECT_THAT(options->options.load_failure->message, HasSubstr("store.keep")) << "the first stays";

  expect_refused(kedge_options_set(nullptr, "store.path", "x"), "set");
  expect_refused(kedge_options_set(options, nullptr, "x"), "set");
  expect_refused(kedge_options_set(options, "store.path", nullptr), "set");
  expect_refused(kedge_options_get(nullptr, "store.path", text.data(), 1, nullptr), "get");
  expect_refused(kedge_options_get(options, nullptr, text.data(), 1, nullptr), "get");
  expect_refused(kedge_options_get(options, "store.path", nullptr, 1, nullptr), "get");
  expect_refused(kedge_options_get(options, "nothing", text.data(), 1, nullptr), "get");
  kedge_options_free(options);
}

TEST(CApiMisuse, TheLastFailureIsTheThreadsOwnAndSurvivesSuccess) {
  std::thread([] {
    EXPECT_EQ(kedge_last_failure()->code, KEDGE_OK);
    EXPECT_EQ(kedge_exit_status(kedge_last_failure()->code), 0);
    EXPECT_EQ(kedge_exit_status(KEDGE_MISMATCH), 78);
    EXPECT_EQ(kedge_exit_status(KEDGE_NO_SPACE), 75);
    EXPECT_STREQ(kedge_last_error(), "");
    EXPECT_STREQ(kedge_last_failure()->path, "");
  }).join();
  EXPECT_EQ(kedge_commit(nullptr), KEDGE_INVALID_ARGUMENT);
  const std::string mine = kedge_last_error();
  std::thread([] { EXPECT_EQ(kedge_close(nullptr), KEDGE_INVALID_ARGUMENT); }).join();
  EXPECT_EQ(kedge_last_error(), mine);
  kedge_options* options = nullptr;
  ASSERT_EQ(kedge_options_load(&options), KEDGE_OK);
  kedge_options_free(options);
  EXPECT_EQ(kedge_last_error(), mine);
  EXPECT_THAT(mine, HasSubstr("kedge_commit"));
}

TEST(CApiMisuse, AFailureIsToldWholeOrCutBetweenLetters) {
  EXPECT_EQ(bindings::remember(Failure{ErrorCode::io, "no", 3, "/some/path", ENOSPC}), KEDGE_IO);
  EXPECT_EQ(kedge_last_failure()->rank, 3);
  EXPECT_EQ(kedge_last_failure()->system_errno, ENOSPC);
  EXPECT_STREQ(kedge_last_failure()->path, "/some/path");
  EXPECT_STREQ(kedge_last_error(), "io on rank 3: no (/some/path: No space left on device)");
  std::string text;
  while (text.size() < 10'000) text += "ä";
  for (const char* begin : {"", "x"}) {
    bindings::refuse(begin + text);
    const std::string told = kedge_last_error();
    EXPECT_GT(told.size(), 4000U);
    EXPECT_LT(told.size(), 4096U);
    EXPECT_TRUE(told.ends_with("ä"));
  }
}

TEST(CApiMisuse, NoExceptionCrossesIntoC) {
  EXPECT_EQ(bindings::run_and_catch([] { throw Error(ErrorCode::busy, "held"); }), KEDGE_BUSY);
  EXPECT_EQ(bindings::run_and_catch([] { throw std::bad_alloc(); }), KEDGE_NO_SPACE);
  EXPECT_EQ(bindings::run_and_catch([] { throw std::logic_error("what"); }), KEDGE_IO);
  EXPECT_THAT(kedge_last_error(), HasSubstr("what"));
  // A simulated kill is no error: it goes through, as a kill does.
  EXPECT_THROW((void)bindings::run_and_catch([] { throw testing::SimulatedDeath{}; }), testing::SimulatedDeath);
}

/// Makes each allocation of the call fail in turn: it must end as out of memory, or do without; the number of turns.
long survive_without_memory(const std::function<kedge_error()>& call) {
  for (long after = 0;; ++after) {
    kedge_error error = KEDGE_OK;
    bool all_there = false;
    {
      const OutOfMemory here(after);
      error = call();
      all_there = OutOfMemory::still_some();
    }
    EXPECT_THAT(error, testing::AnyOf(KEDGE_OK, KEDGE_NO_SPACE)) << kedge_last_error();
    EXPECT_THAT(kedge_last_error(), HasSubstr(error == KEDGE_OK ? "" : "out of memory"));
    if (all_there || after == 10'000) return after;
  }
}

TEST(CApiMisuse, LocalCallsReportThatThereIsNoMemory) {
  SimulatedJob job(1);
  run_in_c(job, [](int, kedge_engine* engine) {
    EXPECT_EQ(commit_value_in_c(engine, "a-name-that-needs-memory-of-its-own", 1), KEDGE_OK);
    EXPECT_EQ(opened(engine), "a-name-that-needs-memory-of-its-own");
    kedge_info info{};
    kedge_region region{};
    EXPECT_GT(survive_without_memory([&] { return kedge_get_info(engine, &info); }), 0);
    EXPECT_GT(survive_without_memory([&] { return kedge_find_region(engine, "value", &region); }), 0);
    EXPECT_EQ(region.dtype, KEDGE_INT32);
    std::uint32_t saved_by = 9;
    EXPECT_GT(survive_without_memory([&] { return kedge_logical_ranks(engine, &saved_by, 1, nullptr); }), 0);
    EXPECT_EQ(saved_by, 0U);
    kedge_options* options = nullptr;
    ASSERT_EQ(kedge_options_load(&options), KEDGE_OK);
    EXPECT_GT(survive_without_memory([&] { return kedge_options_set(options, "store.path", "/a/path/that/is/long"); }),
              0);
    kedge_options_free(options);
    const OutOfMemory here(0);
    EXPECT_EQ(kedge_commit(nullptr), KEDGE_INVALID_ARGUMENT);
  });
  EXPECT_STREQ(kedge_error_name(KEDGE_OK), "ok");
}

TEST(CApiMisuse, NamesOfNumbers) {
  EXPECT_STREQ(kedge_error_name(KEDGE_BUSY), "busy");
  EXPECT_STREQ(kedge_error_name(KEDGE_RANK_FAILED), "rank_failed");
  EXPECT_STREQ(kedge_error_name(KEDGE_DEVICE_FAILED), "device_failed");
  EXPECT_STREQ(kedge_error_name(KEDGE_NO_SPACE), "no_space");
  EXPECT_STREQ(kedge_level_name(KEDGE_LEVEL_PERSISTENT), "persistent");
  EXPECT_STREQ(kedge_source_name(KEDGE_SOURCE_FETCHED), "fetched");
  EXPECT_EQ(kedge_dtype_size(KEDGE_COMPLEX128), 16U);
  EXPECT_EQ(kedge_dtype_size(KEDGE_FLOAT8_E4M3FN), 1U);
  EXPECT_EQ(kedge_dtype_size(KEDGE_FLOAT8_E5M2), 1U);
  EXPECT_STREQ(kedge_error_name(static_cast<kedge_error>(13)), "unknown");
  EXPECT_STREQ(kedge_level_name(static_cast<kedge_level>(5)), "unknown");
  EXPECT_STREQ(kedge_source_name(static_cast<kedge_source>(4)), "unknown");
  EXPECT_EQ(kedge_dtype_size(static_cast<kedge_dtype>(0)), 0U);
  EXPECT_EQ(kedge_dtype_size(static_cast<kedge_dtype>(KEDGE_FLOAT8_E5M2 + 1)), 0U);
}

}  // namespace
}  // namespace kedge::faults::c_api_misuse_test
