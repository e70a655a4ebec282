// Whole states through the engine and back: every type, shape and placement, by several threads, from memory that is
// freed before commit; every byte is checked, and damage is corrupt on all ranks.
#include <gmock/gmock.h>

#include <numeric>
#include <thread>

#include "base/text.hpp"
#include "harness/engine_checks.hpp"

namespace kedge::faults::state_test {
namespace {

constexpr std::array kAllTypes = {DataType::int8,          DataType::int16,      DataType::int32,   DataType::int64,
                                  DataType::uint8,         DataType::uint16,     DataType::uint32,  DataType::uint64,
                                  DataType::float16,       DataType::bfloat16,   DataType::float32, DataType::float64,
                                  DataType::complex64,     DataType::complex128, DataType::boolean, DataType::opaque,
                                  DataType::float8_e4m3fn, DataType::float8_e5m2};

/// Bytes that differ by seed and are not all alike.
std::vector<std::byte> bytes_of(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  unsigned x = seed * 2654435761U + 1;
  for (std::byte& byte : bytes) {
    x = x * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(x >> 24U);
  }
  return bytes;
}

/// A named array with memory of its own.
struct Array {
  std::string name;
  DataType dtype = DataType::float64;
  Shape shape;
  std::vector<std::byte> bytes;

  Array(std::string name_, DataType dtype_, Shape shape_, unsigned seed)
      : name(std::move(name_)), dtype(dtype_), shape(shape_) {
    std::uint64_t count = 0;
    EXPECT_TRUE(element_count(shape, count));
    bytes = bytes_of(count * size_bytes(dtype), seed);
    if (dtype == DataType::boolean) {
      for (std::byte& byte : bytes) byte &= std::byte{1};
    }
  }
};

State state_of(std::vector<Array>& arrays) {
  State state;
  for (Array& array : arrays) state.add(array.name, MutableRegion{array.bytes.data(), array.dtype, array.shape});
  return state;
}

void scramble(std::vector<Array>& arrays) {
  for (Array& array : arrays) std::fill(array.bytes.begin(), array.bytes.end(), std::byte{0xee});
}

/// Saves, overwrites the memory, restores, and looks at every byte.
void expect_round_trip(Engine& engine, const std::string& tag, std::vector<Array>& arrays) {
  SCOPED_TRACE(tag);
  const std::vector<Array> saved = arrays;
  const State state = state_of(arrays);
  engine.checkpoint(tag, state);
  scramble(arrays);
  EXPECT_EQ(engine.restore(state), tag);
  for (std::size_t i = 0; i < saved.size(); ++i) EXPECT_EQ(arrays[i].bytes, saved[i].bytes) << saved[i].name;
}

class StateTest : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static DiskOptions disk() {
    return GetParam() ? SimulatedJob::memory_disk() : SimulatedJob::block_disk();
  }
};

TEST_P(StateTest, ScalarsArraysShardsAndEmptyOnesComeBackToTheirRankAfterARestart) {
  for (const int ranks : {1, 2, 4}) {
    SimulatedJob job(ranks, disk());
    const auto body = [](RankScope& scope, bool first_start) {
      Engine engine = scope.make_engine();
      const auto rank = static_cast<std::uint64_t>(scope.rank);
      std::uint64_t step = first_start ? 41 + rank : 0;
      double time = first_start ? 0.5 * static_cast<double>(rank) : 0;
      bool flag = first_start && rank % 2 == 1;
      std::vector<double> block(12, first_start ? static_cast<double>(rank) + 0.25 : 0);
      std::vector<float> nothing;
      std::vector<std::int64_t> own(100 * rank, first_start ? -static_cast<std::int64_t>(rank) : 0);
      State state;
      state.add("progress/step", step).add("progress/time", time).add("flag", flag);
      state.add("field", mutable_region(block.data(), {3, 4}),
                Shard{{3 * static_cast<std::uint64_t>(scope.ranks), 4}, {3 * rank, 0}});
      state.add("nothing", nothing);
      state.add("iterator-of-" + std::to_string(rank), own);
      if (first_start) {
        engine.checkpoint("step-000041", state);
        return;
      }
      EXPECT_EQ(engine.restore(state), "step-000041");
      EXPECT_EQ(step, 41 + rank);
      EXPECT_EQ(time, 0.5 * static_cast<double>(rank));
      EXPECT_EQ(flag, rank % 2 == 1);
      EXPECT_THAT(block, testing::Each(static_cast<double>(rank) + 0.25));
      EXPECT_THAT(own, testing::Each(-static_cast<std::int64_t>(rank)));
    };
    expect_returned(job.start([&](RankScope& scope) { body(scope, true); }));
    expect_returned(job.start([&](RankScope& scope) { body(scope, false); }));
  }
}

TEST_P(StateTest, RestoreSaysWhatTheCheckpointHasAndNobodyLoads) {
  SimulatedJob job(2, disk());
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<double> values(10, 1.0);
    std::uint64_t step = 7;
    State state;
    state.add("values", values).add("step", step, Replicated{}).add("mesh/cells", values);
    engine.checkpoint("a", state);
    EXPECT_EQ(engine.restore(State().add("step", step, Replicated{})), "a");
    EXPECT_EQ(step, 7U);
    // What one rank alone has, which is not the one that writes the log.
    State uneven;
    uneven.add("step", step, Replicated{});
    if (scope.rank == 1) uneven.add("only on rank 1", values);
    engine.checkpoint("b", uneven);
    EXPECT_EQ(engine.restore(State().add("step", step, Replicated{})), "b");
  }));
  EXPECT_TRUE(job.logged("b has regions that this program's State does not have: only on rank 1"));
  EXPECT_TRUE(job.logged("a has regions that this program's State does not have: "));
  EXPECT_TRUE(job.logged("mesh/cells"));
}

TEST_P(StateTest, RestoreTakesNoBlockForAnother) {
  SimulatedJob job(2, disk());
  const auto place = [](int rank) { return Shard{Shape{20}, Shape{10 * static_cast<std::uint64_t>(rank)}}; };
  std::vector<std::optional<Failure>> met(10);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<double> values(10, scope.rank), same(10, 7);
    State saved;
    saved.add("u", values, place(scope.rank)).add("r", same, Replicated{});
    engine.checkpoint("a", saved);
    const std::vector<State> wanted{
        State().add("u", values, place(1 - scope.rank)),
        State().add("u", values, Shard{Shape{200}, place(scope.rank).offset}),
        State().add("u", values, Replicated{}),
        State().add("r", same, place(scope.rank)),
        State().add("u", values).add("r", same),  // says nothing of a place
    };
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      met[2 * i + static_cast<std::size_t>(scope.rank)] = failure_of([&] { (void)engine.restore(wanted[i]); });
    }
    EXPECT_EQ(engine.restore(saved), "a");
  }));
  for (std::size_t i = 0; i < met.size(); ++i) {
    ASSERT_EQ(met[i].has_value(), i < 8) << i;
    if (i >= 8) continue;
    EXPECT_EQ(met[i]->code, ErrorCode::mismatch) << i;
    EXPECT_EQ(met[i]->message, met[i / 2 * 2]->message);
  }
  EXPECT_THAT(met[0]->message, testing::HasSubstr("the block at 0 of a global array of shape 20 and is loaded as "
                                                  "the block at 10 of a global array of shape 20"));
}

TEST_P(StateTest, StructureIsToldBeforeLoading) {
  SimulatedJob job(2, disk());
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    const auto rank = static_cast<std::uint64_t>(scope.rank);
    const std::vector<float> values(6, 1.5F);
    engine.create("a");
    engine.save("model/weights", region(values.data(), {2, 3}), Shard{{4, 3}, {2 * rank, 0}});
    engine.save("model/scale", region(values.data(), Shape{}), Replicated{});
    engine.save("empty", region(values.data(), {0, 7}));
    engine.commit();
    EXPECT_EQ(engine.open(), "a");
    const auto regions = engine.regions();
    ASSERT_EQ(regions.size(), 3U);
    EXPECT_EQ(regions[0].name, "model/weights");
    EXPECT_EQ(regions[0].dtype, DataType::float32);
    EXPECT_EQ(regions[0].shape, (Shape{2, 3}));
    EXPECT_EQ(std::get<Shard>(regions[0].placement), (Shard{{4, 3}, {2 * rank, 0}}));
    EXPECT_EQ(regions[0].size_bytes, 24U);
    EXPECT_EQ(regions[1].shape, Shape{});
    EXPECT_TRUE(std::holds_alternative<Replicated>(regions[1].placement));
    EXPECT_EQ(regions[2].shape, (Shape{0, 7}));
    EXPECT_EQ(regions[2].size_bytes, 0U);
    // One item alone can be loaded.
    std::vector<float> loaded(6);
    EXPECT_TRUE(engine.load("model/weights", mutable_region(loaded.data(), {2, 3})).ok());
    EXPECT_EQ(loaded, values);
    engine.close();
    const CheckpointInfo info = engine.info();
    EXPECT_EQ(info.tag, "a");
    EXPECT_EQ(info.world_size, 2U);
    EXPECT_EQ(info.logical_rank.value, rank);
  }));
}

TEST_P(StateTest, AllTypesInAllNumbersOfDimensions) {
  SimulatedJob job(2, disk());
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<Array> arrays;
    unsigned seed = static_cast<unsigned>(scope.rank) * 1000;
    for (const DataType dtype : kAllTypes) {
      const std::string name(to_string(dtype));
      std::vector<std::uint64_t> extents;
      for (std::size_t d = 0; d <= Shape::kMaxDimensions; ++d) {
        arrays.emplace_back(name + "/" + std::to_string(d), dtype, Shape(std::span<const std::uint64_t>(extents)),
                            ++seed);
        extents.push_back(d % 3 + 1);
      }
      arrays.emplace_back(name + "/empty", dtype, Shape{0}, ++seed);
      arrays.emplace_back(name + "/large", dtype, Shape{70'000}, ++seed);
    }
    expect_round_trip(engine, "first", arrays);
    expect_round_trip(engine, "again", arrays);
  }));
}

TEST_P(StateTest, ThousandsOfSmallRegionsAreOneFileAndCostWhatTheirBytesCost) {
  SimulatedJob job(1, disk());
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<Array> arrays;
    for (unsigned i = 0; i < 5000; ++i) {
      arrays.emplace_back("layer/" + std::to_string(i % 50) + "/" + std::to_string(i), DataType::float32, Shape{i % 17},
                          i);
    }
    const auto files_before = job.disk.snapshot().size();
    expect_round_trip(engine, "a", arrays);
    const std::size_t ready = GetParam() ? 1 : 0;  // on memory, a file for the next container
    EXPECT_EQ(job.disk.snapshot().size() - files_before, 3U + ready)
        << "a container, and the two notes of the first commit";
    for (Array& array : arrays) array.bytes = bytes_of(array.bytes.size(), 77);
    expect_round_trip(engine, "b", arrays);
  }));
}

/// The arrays that a changed structure begins from: small and large ones.
std::vector<Array> five_arrays(unsigned seed) {
  return {{"a", DataType::float64, {9'000}, seed},
          {"b", DataType::int32, {3}, seed + 1},
          {"c", DataType::float64, {10, 1'000}, seed + 2},
          {"d", DataType::int32, {5}, seed + 3},
          {"e", DataType::float64, {20'000}, seed + 4}};
}

TEST_P(StateTest, StructuresThatChangeBetweenCheckpointsComeOutRight) {
  using Change = std::function<void(std::vector<Array>&)>;
  std::vector<std::pair<std::string, Change>> changes;
  for (const std::size_t at : {std::size_t{0}, std::size_t{2}, std::size_t{4}}) {
    const std::string place = std::to_string(at);
    changes.emplace_back("name-" + place, [at](auto& arrays) { arrays[at].name += "-renamed"; });
    changes.emplace_back("dtype-" + place, [at](auto& arrays) {
      const Shape shape = arrays[at].shape;
      arrays[at] = Array(arrays[at].name, DataType::uint64, shape, 5);
    });
    changes.emplace_back("shape-" + place, [at](auto& arrays) {
      arrays[at] = Array(arrays[at].name, DataType::int8, {2, 2}, 6);
    });
    changes.emplace_back("grown-" + place,
                         [at](auto& arrays) { arrays[at] = Array(arrays[at].name, DataType::float64, {50'000}, 7); });
    changes.emplace_back("fewer-" + place,
                         [at](auto& arrays) { arrays.erase(arrays.begin() + static_cast<std::ptrdiff_t>(at)); });
    changes.emplace_back("more-" + place, [at](auto& arrays) {
      arrays.insert(arrays.begin() + static_cast<std::ptrdiff_t>(at), Array("new", DataType::float32, {20'000}, 8));
    });
  }
  changes.emplace_back("one-more", [](auto& arrays) { arrays.emplace_back("z", DataType::int16, Shape{4}, 9U); });
  changes.emplace_back("reversed", [](auto& arrays) { std::reverse(arrays.begin(), arrays.end()); });
  changes.emplace_back("same", [](auto&) {});
  changes.emplace_back("none", [](auto& arrays) { arrays.clear(); });

  SimulatedJob job(2, disk());
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (const auto& [name, change] : changes) {
      std::vector<Array> arrays = five_arrays(static_cast<unsigned>(scope.rank) * 100);
      expect_round_trip(engine, "before-" + name, arrays);
      if (scope.rank == 1 || name == "same") change(arrays);  // rank 0 stays as it is
      expect_round_trip(engine, name, arrays);
      expect_round_trip(engine, "after-" + name, arrays);
    }
    std::vector<Array> growing;
    for (unsigned i = 0; i < 12; ++i) {
      growing.emplace_back(compose("g{}", i), DataType::float64, Shape{std::uint64_t{500} << (i % 6)}, i);
      expect_round_trip(engine, "growing-" + std::to_string(i), growing);
    }
  }));
}

TEST_P(StateTest, SaveAndLoadFromFourThreadsAtOnce) {
  SimulatedJob job(2, disk());
  expect_returned(job.start([](RankScope& scope) {
    Engine engine = scope.make_engine();
    for (unsigned round = 0; round < 4; ++round) {
      std::vector<Array> arrays;
      for (unsigned i = 0; i < 64 + 16 * (round / 2); ++i) {  // in rounds 1 and 3 the structure is as before
        arrays.emplace_back(compose("r{}", i), DataType::float64, Shape{i % 5 == 0 ? 12'000U : i}, round * 100 + i);
      }
      const std::vector<Array> saved = arrays;
      const auto on_four_threads = [&](const std::function<void(Array&)>& work) {
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < 4; ++t) {
          threads.emplace_back([&, t] {
            for (std::size_t i = t; i < arrays.size(); i += 4) work(arrays[i]);
          });
        }
        for (std::thread& thread : threads) thread.join();
      };
      const std::string tag = "round-" + std::to_string(round);
      engine.create(tag);
      on_four_threads([&](Array& array) {
        EXPECT_TRUE(engine.save(array.name, {array.bytes.data(), array.dtype, array.shape}).ok());
        (void)engine.level("round-0");
      });
      engine.commit();
      scramble(arrays);
      EXPECT_EQ(engine.open(), tag);
      on_four_threads([&](Array& array) {
        EXPECT_TRUE(engine.load(array.name, {array.bytes.data(), array.dtype, array.shape}).ok());
      });
      engine.close();
      for (std::size_t i = 0; i < saved.size(); ++i) EXPECT_EQ(arrays[i].bytes, saved[i].bytes) << saved[i].name;
    }
  }));
}

TEST_P(StateTest, TheTagAndTheStepInItAgreeOverManyRestarts) {
  SimulatedJob job(2, disk());
  std::uint64_t reached = 0;
  for (int start = 0; start < 6; ++start) {
    expect_returned(job.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      std::uint64_t step = 0;
      State state;
      state.add("step", step);
      const auto tag = engine.restore(state);
      EXPECT_EQ(tag.has_value(), start != 0);
      if (tag) {
        EXPECT_EQ(*tag, "step-" + std::to_string(step));
      }
      EXPECT_EQ(step, reached);
      for (int i = 0; i < 3; ++i) {
        ++step;
        engine.checkpoint("step-" + std::to_string(step), state);
      }
    }));
    reached += 3;
  }
}

TEST_P(StateTest, ALoadedRegionThatIsDamagedIsCorruptOnAllRanksAndTheOneBeforeIsTakenAndKept) {
  SimulatedJob job(2, disk());
  job.options.open.verify = Verify::headers;  // so that the damage is met while loading
  OnEachRank thrown(2);
  expect_returned(job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    std::vector<Array> arrays = five_arrays(1);
    const std::vector<Array> older = arrays;
    const State state = state_of(arrays);
    engine.checkpoint("older", state);
    arrays[0].bytes.assign(arrays[0].bytes.size(), std::byte{0x5a});
    engine.checkpoint("newer", state);
    scope.communicator.barrier(Deadline::never());
    if (scope.rank == 1) {
      for (const std::string& file : container_files(job.disk, 1)) {
        const auto bytes = job.disk.read_all(file);
        const std::vector<std::byte> pattern(64, std::byte{0x5a});
        const auto found = std::search(bytes.begin(), bytes.end(), pattern.begin(), pattern.end());
        if (found != bytes.end()) job.disk.flip_bit(file, static_cast<std::uint64_t>(found - bytes.begin()));
      }
    }
    scope.communicator.barrier(Deadline::never());
    EXPECT_EQ(engine.open(), "newer");
    (void)engine.load("a", {arrays[0].bytes.data(), DataType::float64, {9'000}});
    thrown.put(scope.rank, failure_of([&] { engine.close(); }));
    // A checkpoint that comes to nothing now must not cost the older one, the only good one.
    engine.create("next");
    engine.abandon();
    scramble(arrays);
    EXPECT_EQ(engine.restore(state), "older");
    for (std::size_t i = 0; i < arrays.size(); ++i) EXPECT_EQ(arrays[i].bytes, older[i].bytes);
    engine.checkpoint("next", state);
    EXPECT_EQ(engine.restore(state), "next");
  }));
  ASSERT_TRUE(thrown.same());
  EXPECT_EQ(thrown.same()->code, ErrorCode::corrupt);
  EXPECT_EQ(thrown.same()->rank, 1);
  EXPECT_THAT(thrown.same()->message, testing::HasSubstr("'a'"));
}

INSTANTIATE_TEST_SUITE_P(Storage, StateTest, testing::Values(true, false),
                         [](const auto& each) { return each.param ? "Memory" : "Block"; });

}  // namespace
}  // namespace kedge::faults::state_test
