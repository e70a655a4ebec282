// Random arrays that N ranks saved in random blocks, loaded by M ranks in other blocks that overlap: from the stores,
// with a node lost, from the prefix, and from both. Every element is compared.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "harness/engine_checks.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/random_choices.hpp"
#include "harness/seeds.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::other_ranks_blocks_test {
namespace {

using Extents = std::vector<std::uint64_t>;

struct Box {
  Extents offset;
  Extents extents;

  [[nodiscard]] std::uint64_t elements() const {
    std::uint64_t count = 1;
    for (const std::uint64_t extent : extents) count *= extent;
    return count;
  }
};

Shape shape_of(const Extents& extents) { return Shape(std::span(extents)); }

/// Cuts the box into so many, some of them empty.
void cut(RandomChoices& choices, const Box& box, int parts, std::vector<Box>& boxes) {
  if (parts == 1) return boxes.push_back(box);
  const int left_parts = 1 + choices.int_below(parts - 1);
  const std::size_t along = choices.below(box.extents.size());
  Box left = box;
  Box right = box;
  const std::uint64_t at = choices.one_in(2) ? box.extents[along] * static_cast<std::uint64_t>(left_parts) /
                                                   static_cast<std::uint64_t>(parts)
                                             : choices.below(box.extents[along] + 1);
  left.extents[along] = at;
  right.offset[along] += at;
  right.extents[along] -= at;
  cut(choices, left, left_parts, boxes);
  cut(choices, right, parts - left_parts, boxes);
}

struct Array {
  std::string name;
  DataType dtype = DataType::uint8;
  Box whole;
  std::vector<Box> shards;  ///< by rank

  [[nodiscard]] std::size_t width() const { return size_bytes(dtype); }

  /// What an element holds depends on its index and the array.
  void element(const Extents& index, std::byte* bytes) const {
    std::uint64_t number = std::hash<std::string>()(name);
    for (std::size_t d = 0; d < index.size(); ++d) number = (number * 1315423911U) ^ (index[d] + 0x9e3779b9U);
    for (std::size_t i = 0; i < width(); ++i) bytes[i] = static_cast<std::byte>(number >> (8 * (i % 7)) ^ i);
  }

  [[nodiscard]] std::vector<std::byte> block(const Box& box) const {
    std::vector<std::byte> bytes(box.elements() * width());
    Extents index(box.extents.size(), 0);
    for (std::uint64_t n = 0; n < box.elements(); ++n) {
      std::uint64_t rest = n;
      for (std::size_t d = index.size(); d-- > 0;) {
        index[d] = box.offset[d] + rest % box.extents[d];
        rest /= box.extents[d];
      }
      element(index, bytes.data() + n * width());
    }
    return bytes;
  }
};

/// Bytes that differ for each rank, in size too.
std::vector<std::byte> own_bytes(int rank) {
  return std::vector<std::byte>(static_cast<std::size_t>(rank * 37 % 11), static_cast<std::byte>(rank + 1));
}

class Decomposition {
 public:
  explicit Decomposition(std::uint64_t seed)
      : choices_(seed), saved_by_(draw_ranks()), now_(draw_ranks()), job_(saved_by_) {
    if (now_ == saved_by_) ++now_;
    for (int i = 1 + choices_.int_below(3); i > 0; --i) draw_array();
    one_ = choices_.int_below(saved_by_);
  }

  void run() {
    configure();
    save();
    harm();
    load();
  }

  [[nodiscard]] std::string story() const {
    std::string text = compose("{} to {} ranks", saved_by_, now_);
    for (const Array& array : arrays_)
      text += compose("; {} of {}", array.name, to_string(shape_of(array.whole.extents)));
    for (const std::string& line : job_.log()) text += "\n    " + line;
    return text + "\n";
  }

 private:
  [[nodiscard]] int draw_ranks() { return choices_.one_of({1, 2, 3, 4, 5, 6, 7, 8, 11, 13}); }

  void draw_array() {
    Array array;
    array.name = compose("group/array{}", arrays_.size());
    array.dtype =
        choices_.one_of({DataType::uint8, DataType::int16, DataType::float32, DataType::float64, DataType::complex128});
    const std::size_t dimensions = 1 + choices_.below(4);
    for (std::size_t d = 0; d < dimensions; ++d) {
      array.whole.offset.push_back(0);
      array.whole.extents.push_back(choices_.one_of<std::uint64_t>({0, 1, 2, 3, 5, 7, 7, 11, 13, 17}));
      if (choices_.one_in(3) && array.whole.extents.back() == 0) array.whole.extents.back() = 4;
    }
    cut(choices_, array.whole, saved_by_, array.shards);
    std::ranges::shuffle(array.shards, choices_.generator());
    arrays_.push_back(array);
  }

  void configure() {
    job_.ranks_per_node = 1;
    job_.options.open.buffer_bytes = choices_.one_of<std::uint64_t>({1U << 20U, 16U << 20U});
    job_.options.open.verify = choices_.one_of({Verify::all, Verify::loaded, Verify::headers});
    job_.options.redundancy.scheme = Scheme::single;
    how_ = choices_.int_below(3);
    job_.options.persistent.every = how_ == 1 ? 0 : 1;
    if (how_ != 1 || saved_by_ == 1) return;
    job_.options.redundancy.scheme = choices_.one_of({Scheme::partner, Scheme::xor_, Scheme::rs});
    job_.options.redundancy.parity = 1;
    job_.options.redundancy.set_size = choices_.one_of<std::uint32_t>({2, 3, 4, 8});
  }

  void save() {
    expect_all_returned(job_.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      engine.create("a");
      for (const Array& array : arrays_) {
        const Box& mine = array.shards[static_cast<std::size_t>(scope.rank)];
        const std::vector<std::byte> bytes = array.block(mine);
        EXPECT_TRUE(engine.save(array.name, {bytes.data(), array.dtype, shape_of(mine.extents)},
                                Shard{shape_of(array.whole.extents), shape_of(mine.offset)}));
      }
      const auto own = own_bytes(scope.rank);
      EXPECT_TRUE(engine.save("own", {own.data(), DataType::opaque, Shape{own.size()}}));
      const int same = 4711;
      EXPECT_TRUE(engine.save("same", {&same, DataType::int32, Shape{}}, Replicated{}));
      if (scope.rank == one_) {
        EXPECT_TRUE(engine.save("one", {&same, DataType::int32, Shape{}}));
      }
      engine.commit();
      engine.finalize();
    }));
  }

  /// A third from the stores, a third with a lost node, a third from the prefix and what is left in the stores.
  void harm() {
    std::vector<std::string> nodes;
    for (int rank = 0; rank < saved_by_; ++rank) nodes.push_back(compose("node{}", rank));
    const bool is_protected = how_ == 1 && saved_by_ > 1;
    if (is_protected) lose(nodes, 1);
    if (how_ == 2) lose(nodes, 1 + choices_.int_below(saved_by_));
    if (nodes.empty()) nodes.push_back("node0");
    // Everything that is left has to be on some node of the job.
    if (how_ != 2 && static_cast<int>(nodes.size()) > now_) {
      for (const std::string& node : std::vector(nodes.begin() + now_, nodes.end())) merge(node, nodes.front());
      nodes.resize(static_cast<std::size_t>(now_));
    }
    std::ranges::shuffle(nodes, choices_.generator());
    job_.nodes.clear();
    for (int rank = 0; rank < now_; ++rank) job_.nodes.push_back(nodes[static_cast<std::size_t>(rank) % nodes.size()]);
    job_.ranks = now_;
    job_.options.redundancy.scheme = Scheme::automatic;
  }

  void lose(std::vector<std::string>& nodes, int count) {
    std::ranges::shuffle(nodes, choices_.generator());
    for (int i = 0; i < count; ++i) {
      job_.disk.remove_all("/nodes/" + nodes.back());
      nodes.pop_back();
    }
  }

  /// Copies files of one node's store to another's.
  void merge(const std::string& from, const std::string& to) {
    const std::string source = run_directory_of(job_.disk, from);
    const std::string target = run_directory_of(job_.disk, to);
    for (const auto& [path, entry] : job_.disk.snapshot()) {
      if (!path.starts_with(source + "/")) continue;
      const std::string name = path.substr(source.size() + 1);
      if (name.starts_with("rank-") || name.starts_with("parity-") || name.starts_with("set-")) {
        job_.disk.write_all(target + "/" + name, entry.bytes);
      }
    }
  }

  /// What a rank asks for, and what it must get.
  struct Asked {
    Want want;
    std::vector<std::byte> memory;
    std::vector<std::byte> expected;
  };

  static Asked ask(std::string name, DataType dtype, const Shape& shape, std::vector<std::byte> expected) {
    Asked asked{
        {std::move(name), {nullptr, dtype, shape}}, std::vector<std::byte>(expected.size(), std::byte{0xee}), {}};
    asked.expected = std::move(expected);
    return asked;
  }

  static Asked ask(const Array& array, const Box& box) {
    Asked asked = ask(array.name, array.dtype, shape_of(box.extents), array.block(box));
    asked.want.placement = Shard{shape_of(array.whole.extents), shape_of(box.offset)};
    return asked;
  }

  static Box grown(const Box& box, const Box& whole, std::uint64_t by) {
    Box to = box;
    for (std::size_t d = 0; d < box.extents.size(); ++d) {
      to.offset[d] = box.offset[d] - std::min(by, box.offset[d]);
      to.extents[d] = std::min(box.offset[d] + box.extents[d] + by, whole.extents[d]) - to.offset[d];
    }
    return to;
  }

  [[nodiscard]] std::vector<Asked> draw_wants(const std::vector<std::vector<Box>>& blocks, int rank) {
    std::vector<Asked> wants;
    for (std::size_t a = 0; a < arrays_.size(); ++a) {
      const Array& array = arrays_[a];
      wants.push_back(ask(array, grown(blocks[a][static_cast<std::size_t>(rank)], array.whole, choices_.below(3))));
      for (int i = choices_.int_below(3); i > 0; --i) {
        Box box = array.whole;
        for (std::size_t d = 0; d < box.extents.size(); ++d) {
          box.offset[d] = choices_.below(array.whole.extents[d] + 1);
          box.extents[d] = choices_.below(array.whole.extents[d] - box.offset[d] + 1);
        }
        wants.push_back(ask(array, box));
      }
    }
    if (choices_.one_in(2)) {
      const int of = choices_.int_below(saved_by_);
      const auto own = own_bytes(of);
      wants.push_back(ask("own", DataType::opaque, Shape{own.size()}, own));
      wants.back().want.of = LogicalRank{static_cast<std::uint32_t>(of)};
    }
    const int same = 4711;
    std::vector<std::byte> number(sizeof same);
    std::memcpy(number.data(), &same, sizeof same);
    if (choices_.one_in(2)) {
      wants.push_back(ask("same", DataType::int32, Shape{}, number));
      wants.back().want.placement = Replicated{};
    }
    if (choices_.one_in(2)) wants.push_back(ask("one", DataType::int32, Shape{}, number));
    std::ranges::shuffle(wants, choices_.generator());
    if (choices_.one_in(5)) wants.clear();
    return wants;
  }

  void load() {
    std::vector<std::vector<Box>> blocks;
    for (const Array& array : arrays_) cut(choices_, array.whole, now_, blocks.emplace_back());
    std::vector<std::vector<Asked>> asked;
    for (int rank = 0; rank < now_; ++rank) asked.push_back(draw_wants(blocks, rank));
    expect_all_returned(job_.start([&](RankScope& scope) {
      Engine engine = scope.make_engine();
      ASSERT_EQ(engine.open(), "a");
      std::vector<Want> wants;
      for (Asked& one : asked[static_cast<std::size_t>(scope.rank)]) {
        one.want.region.data = one.memory.data();
        wants.push_back(one.want);
      }
      engine.load_all(wants);
      engine.close();
    }));
    for (const std::vector<Asked>& of_rank : asked) {
      for (const Asked& one : of_rank) {
        EXPECT_EQ(one.memory, one.expected) << one.want.name << ", " << to_string(one.want.region.shape);
      }
    }
  }

  RandomChoices choices_;
  int saved_by_;
  int now_;
  SimulatedJob job_;
  std::vector<Array> arrays_;
  int one_ = 0;  ///< that saved a region which no other rank has
  int how_ = 0;
};

TEST(OtherRanksBlocks, AreWhatWasSaved) {
  for_each_seed({150, 2000}, "engine_other_ranks", [](std::uint64_t seed) {
    Decomposition decomposition(seed);
    decomposition.run();
    if (testing::Test::HasFailure()) std::cout << decomposition.story();
  });
}

}  // namespace
}  // namespace kedge::faults::other_ranks_blocks_test
