// Arguments that cannot be (tags, names, shapes, memory, texts with a NUL): refused on the rank that gave them with
// both sides, or the space needed and free, and thrown on all by the closing call.
#include <gmock/gmock.h>

#include <array>
#include <limits>

#include "harness/engine_checks.hpp"

namespace kedge::faults::misuse_arguments_test {
namespace {

using testing::HasSubstr;

/// Saves on rank 1 with `save` and good memory on the others; the failure that commit throws on all. What save
/// returned must be the same. Then the next checkpoint must work.
Failure commit_throws(const std::function<Status(Engine&)>& save) {
  SimulatedJob job(2);
  OnEachRank thrown(2);
  std::optional<Failure> returned;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "before", 1);
    engine.create("bad");
    const std::int32_t value = 2;
    EXPECT_TRUE(engine.save("good", {&value, DataType::int32, {}}).ok());
    if (scope.rank == 1) {
      const Status status = save(engine);
      if (!status.ok()) returned = status.failure();
    }
    thrown.put(scope.rank, failure_of([&] { engine.commit(); }));
    EXPECT_EQ(engine.level("before"), Level::local);
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("before"), 1));
    commit_value(engine, "after", 3);
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("after"), 3));
  }));
  const auto failure = thrown.same();
  EXPECT_TRUE(failure) << "commit threw nothing";
  EXPECT_EQ(text_of(returned), text_of(failure)) << "save says the same as commit";
  return failure.value_or(Failure{});
}

Failure refused_region(const std::string& name, const Region& region, const Placement& placement = {}) {
  return commit_throws([&](Engine& engine) { return engine.save(name, region, placement); });
}

TEST(Misuse, ABadRegionNameIsRefusedAndTheRunGoesOn) {
  const std::int32_t value = 0;
  const Region region{&value, DataType::int32, {}};
  const std::string too_long(100'000, 'n');
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("/a"), std::string("a/"), std::string("a//b"),
        std::string("a/./b"), std::string("a/../b"), std::string(".kedge/x"), std::string(".kedge"),
        std::string("ranks/x"), std::string("ranks"), std::string("a\xff"), std::string("\xc0\xaf"),
        std::string("\xed\xa0\x80"), std::string("a\0b", 3), too_long}) {
    SCOPED_TRACE(name.substr(0, 40));
    const Failure failure = refused_region(name, region);
    EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
    EXPECT_EQ(failure.rank, 1);
    EXPECT_THAT(failure.message, HasSubstr("invalid region name"));
  }
}

TEST(Misuse, TheRegionOfAttributesIsNotTheApplicationsToSave) {
  const std::array<std::byte, 8> bytes{};
  const Failure failure = refused_region(".kedge/attributes", {bytes.data(), DataType::opaque, {bytes.size()}});
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_THAT(failure.message, HasSubstr("give attributes to create"));
}

TEST(Misuse, ARegionMayNotBeSavedTwiceNorBeAGroupOfAnother) {
  const std::int32_t value = 0;
  const Region region{&value, DataType::int32, {}};
  const auto saved_after = [&](const std::string& first, const std::string& second) {
    return commit_throws([&](Engine& engine) {
      EXPECT_TRUE(engine.save(first, region).ok());
      return engine.save(second, region);
    });
  };
  EXPECT_EQ(saved_after("a", "a").code, ErrorCode::invalid_argument);
  EXPECT_EQ(saved_after("a", "a/b").code, ErrorCode::invalid_argument);
  EXPECT_EQ(saved_after("a/b", "a").code, ErrorCode::invalid_argument);
  EXPECT_EQ(saved_after("a/b/c", "a/b").code, ErrorCode::invalid_argument);
  EXPECT_THAT(saved_after("twice", "twice").message, HasSubstr("twice"));
}

TEST(Misuse, ARegionMayNotBeSavedTwiceWhenTheStructureIsThatOfLastTime) {
  SimulatedJob job(2);
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "a", 1);
    engine.create("b");
    const std::int32_t value = 2;
    EXPECT_TRUE(engine.save("value", {&value, DataType::int32, {}}).ok());
    EXPECT_EQ(code_of_status(engine.save("value", {&value, DataType::int32, {}})), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { engine.commit(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("a"), 1));
  }));
}

TEST(Misuse, NamesThatLookOddAndAreFine) {
  SimulatedJob job(1);
  const std::vector<std::string> names = {"...", "a/.kedge", "a/ranks", "rank",  "däta/日本/🙂",  " ",
                                          "a b", "-",        "~",       "C:\\x", std::string(200, 'x')};
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const std::int32_t value = 5;
    engine.create("odd");
    for (const auto& name : names) EXPECT_TRUE(engine.save(name, {&value, DataType::int32, {}}).ok()) << name;
    engine.commit();
    EXPECT_EQ(engine.open(), "odd");
    for (const auto& name : names) {
      std::int32_t loaded = 0;
      EXPECT_TRUE(engine.load(name, {&loaded, DataType::int32, {}}).ok()) << name;
      EXPECT_EQ(loaded, 5) << name;
    }
    engine.close();
  }));
}

TEST(Misuse, MemoryThatCannotBeSavedIsRefused) {
  const std::array<double, 4> memory{};
  const auto four = Shape{4};
  EXPECT_THAT(refused_region("null", {nullptr, DataType::float64, four}).message, HasSubstr("null pointer"));
  const std::array<std::uint64_t, 9> ones = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_THAT(refused_region("deep", {memory.data(), DataType::float64, Shape(ones)}).message,
              HasSubstr("more than 8 dimensions"));
  constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(refused_region("huge", {memory.data(), DataType::float64, {huge, 2}}).message, HasSubstr("too large"));
  EXPECT_THAT(refused_region("huge", {memory.data(), DataType::float64, {huge / 4}}).message, HasSubstr("too large"));
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): the misuse that is tested
  EXPECT_THAT(refused_region("dtype", {memory.data(), static_cast<DataType>(99), four}).message, HasSubstr("dtype"));
  const Region region{memory.data(), DataType::float64, four};
  EXPECT_THAT(refused_region("s", region, Shard{{8, 8}, {0, 0}}).message, HasSubstr("numbers of dimensions"));
  EXPECT_THAT(refused_region("s", region, Shard{{8}, {5}}).message, HasSubstr("the global array has 8"));
  EXPECT_THAT(refused_region("s", region, Shard{{8}, {huge}}).message, HasSubstr("the global array has 8"));
  EXPECT_EQ(refused_region("s", region, Shard{{8}, {5}}).code, ErrorCode::invalid_argument);
}

TEST(Misuse, ARegionThatNoStoreHoldsIsNoSpaceWithNumbers) {
  const std::byte memory{};
  // Checked before a byte is touched: there is no such memory.
  const Failure failure = refused_region("vast", {&memory, DataType::opaque, {std::uint64_t{1} << 45U}});
  EXPECT_EQ(failure.code, ErrorCode::no_space);
  EXPECT_THAT(failure.message, testing::ContainsRegex("needs .* more in the node-local store, but .* is free"));
}

TEST(Misuse, BadTagsAreRefusedByCreateAndOpen) {
  SimulatedJob job(3);
  const std::vector<std::string> tags = {"",    std::string(129, 'x'),  ".a", ".", "..",  "latest", "a b", "a/b",
                                         "a\n", std::string("a\0b", 3), "ä",  "*", "a:b", "a\\b"};
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (const std::string& tag : tags) {
      SCOPED_TRACE(tag);
      EXPECT_EQ(code_of([&] { engine.create(tag); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { engine.wait(tag, Level::local); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { engine.pin(tag); }), ErrorCode::invalid_argument);
      if (tag != "latest") {
        EXPECT_EQ(code_of([&] { (void)engine.open(tag); }), ErrorCode::invalid_argument);
      }
      EXPECT_EQ(code_of([&] { (void)engine.open(Before{tag}); }), ErrorCode::invalid_argument);
    }
    EXPECT_THAT(text_of(failure_of([&] { engine.create("a b"); })), HasSubstr("A-Z a-z 0-9 . _ -"));
    // One rank alone has it wrong: all say so.
    const auto failure = failure_of([&] { engine.create(scope.rank == 2 ? "bad tag" : "good"); });
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
    EXPECT_EQ(failure->rank, 2);
    for (const std::string& tag :
         {std::string(128, 'x'), std::string("A-z_0.9"), std::string("Latest"), std::string("-")}) {
      commit_value(engine, tag, 4);
      EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>(tag), 4));
    }
  }));
}

TEST(Misuse, ASourceWhosePrefixHasANulIsNotThePrefixBeforeIt) {
  SimulatedJob job(2);
  OnEachRank thrown(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    commit_value(engine, "a", 1);
    engine.wait("a", Level::persistent);
    const std::string prefix = job.options.persistent.path + std::string("\0b", 2);
    thrown.put(scope.rank, failure_of([&] { (void)engine.open(Source{prefix, "", "a"}); }));
    engine.finalize();
  }));
  const auto failure = thrown.same();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, ErrorCode::invalid_argument);
  EXPECT_THAT(failure->message, HasSubstr("contains a NUL byte"));
}

TEST(Misuse, TheWordLatestOpensTheNewest) {
  SimulatedJob job(2);
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open("latest"), std::nullopt);
    commit_value(engine, "first", 1);
    commit_value(engine, "second", 2);
    EXPECT_EQ(engine.open("latest"), "second");
    engine.close();
  }));
}

/// What load on rank 1 meets and close throws on all.
Failure close_throws(const std::string& name, const MutableRegion& target) {
  SimulatedJob job(2);
  OnEachRank thrown(2);
  std::optional<Failure> returned;
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    const std::array<double, 6> field = {1, 2, 3, 4, 5, 6};
    engine.create("a");
    engine.save("field", region(field.data(), {2, 3}));
    const std::int32_t value = 9;
    engine.save("value", {&value, DataType::int32, {}});
    engine.commit();
    EXPECT_EQ(engine.open(), "a");
    if (scope.rank == 1) {
      const Status status = engine.load(name, target);
      if (!status.ok()) returned = status.failure();
    }
    thrown.put(scope.rank, failure_of([&] { engine.close(); }));
    // No bit of it is damaged: the same checkpoint opens again.
    EXPECT_EQ(restore_value(engine), std::pair(std::optional<Tag>("a"), 9));
  }));
  const auto failure = thrown.same();
  EXPECT_TRUE(failure) << "close threw nothing";
  EXPECT_EQ(text_of(returned), text_of(failure)) << "load says the same as close";
  return failure.value_or(Failure{});
}

TEST(Misuse, LoadingWhatIsNotThereOrIsOtherwiseNamesBoth) {
  std::array<double, 8> memory{};
  const Failure unknown = close_throws("fields", {memory.data(), DataType::float64, {2, 3}});
  EXPECT_EQ(unknown.code, ErrorCode::not_found);
  EXPECT_EQ(unknown.rank, 1);
  EXPECT_THAT(unknown.message, testing::AllOf(HasSubstr("'fields'"), HasSubstr("a has no region")));

  const Failure dtype = close_throws("field", {memory.data(), DataType::int64, {2, 3}});
  EXPECT_EQ(dtype.code, ErrorCode::mismatch);
  EXPECT_THAT(dtype.message, testing::AllOf(HasSubstr("'field' of a "), HasSubstr("float64"), HasSubstr("int64")));

  const Failure shape = close_throws("field", {memory.data(), DataType::float64, {3, 2}});
  EXPECT_EQ(shape.code, ErrorCode::mismatch);
  EXPECT_THAT(shape.message, testing::AllOf(HasSubstr("'field' of a "), HasSubstr("2 x 3"), HasSubstr("3 x 2")));

  const Failure size = close_throws("field", {memory.data(), DataType::float64, {8}});
  EXPECT_EQ(size.code, ErrorCode::mismatch);
  EXPECT_THAT(size.message, testing::AllOf(HasSubstr("2 x 3"), HasSubstr("8")));

  EXPECT_EQ(close_throws("field", {nullptr, DataType::float64, {2, 3}}).code, ErrorCode::invalid_argument);
  const std::array<std::uint64_t, 9> ones = {2, 3, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(close_throws("field", {memory.data(), DataType::float64, Shape(ones)}).code, ErrorCode::mismatch);
  EXPECT_EQ(close_throws("", {memory.data(), DataType::float64, {}}).code, ErrorCode::not_found);
}

TEST(Misuse, ASelectionThatNamesNothingOpensNothing) {
  SimulatedJob job(2);
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    EXPECT_EQ(engine.open(), std::nullopt);
    EXPECT_EQ(engine.open("a"), std::nullopt);
    EXPECT_EQ(engine.open(Before{"a"}), std::nullopt);
    EXPECT_EQ(restore_value(engine).first, std::nullopt);
    commit_value(engine, "a", 1);
    EXPECT_EQ(engine.open("b"), std::nullopt);
    EXPECT_EQ(engine.open(Before{"a"}), std::nullopt);
    const auto failure = failure_of([&] { (void)engine.open(Before{"b"}); });
    EXPECT_TRUE(failure && failure->code == ErrorCode::not_found && failure->message.find("no commit 'b'") == 0)
        << text_of(failure);
    EXPECT_EQ(code_of([&] { engine.close(); }), ErrorCode::bad_state) << "nothing is open";
    EXPECT_EQ(engine.open("a"), "a");
  }));
}

}  // namespace
}  // namespace kedge::faults::misuse_arguments_test
