// Files that move between processes: what arrives damaged is refused, and what arrives whole is not read again to find
// that out.
#include "recovery/execute_orders.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "comm/channels.hpp"
#include "harness/forwarding_communicator.hpp"
#include "unit/recovery/fixture.hpp"

namespace kedge::recovery::relocate_test {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{256} << 10U;

/// Flips one bit of what it sends: of byte `place` of the file; none if the file is shorter.
class FlippingSender final : public testing::ForwardingCommunicator {
 public:
  FlippingSender(Communicator& inner, std::uint64_t place) : ForwardingCommunicator(inner), place_(place) {}
  Request send(int to, int channel, std::span<const std::byte> bytes) override {
    if (channel != comm::channel::kRelocate) return ForwardingCommunicator::send(to, channel, bytes);
    const std::uint64_t begin = std::exchange(sent_, sent_ + bytes.size());
    if (place_ < begin || place_ >= begin + bytes.size()) return ForwardingCommunicator::send(to, channel, bytes);
    flipped_.assign(bytes.begin(), bytes.end());
    flipped_[place_ - begin] ^= std::byte{1};
    return ForwardingCommunicator::send(to, channel, flipped_);
  }

 private:
  std::uint64_t place_;
  std::uint64_t sent_ = 0;
  std::vector<std::byte> flipped_;
};

class Relocate : public RecoveryTest {
 protected:
  /// A file of this rank's, from process 1 to process 0.
  struct Moved {
    std::vector<testing::RankOutcome> outcomes;
    std::uint64_t read_bytes = 0;  ///< by process 0, of its store
  };
  Moved move(const MoveOrder& order, std::uint64_t flipped_place) {
    const std::uint64_t before = disk.bytes_read("/store-0");
    Moved moved;
    moved.outcomes = run_ranks([&](RankOfJob& rank) {
      rank.group.run_on_all_ranks([&] { (void)rank.store.files.scan(run.id, Verify::headers); });
      FlippingSender sender(rank.group.communicator(), flipped_place);
      Recovered recovered;
      relocate(comm::Group(sender, std::chrono::seconds(60)), rank.store, std::vector{order},
               {false, {}, CommitHead{}, &rank.prefix_storage, {}}, recovered);
    });
    moved.read_bytes = disk.bytes_read("/store-0") - before;
    return moved;
  }

  /// Every place of a file, about; behind its end it arrives whole.
  void expect_any_flip_is_refused(const MoveOrder& order) {
    std::vector<std::uint64_t> places = {0, 9, 100, 4095, 4096, kPieceBytes - 1, kPieceBytes, order.size_bytes - 1};
    for (std::uint64_t at = 5000; at < order.size_bytes; at += order.size_bytes / 16) places.push_back(at);
    for (const std::uint64_t place : places) {
      SCOPED_TRACE(compose("byte {}", place));
      for (const auto& outcome : move(order, place).outcomes) {
        ASSERT_TRUE(outcome.failure);
        EXPECT_EQ(outcome.failure->code, ErrorCode::corrupt) << to_string(*outcome.failure);
      }
    }
    const Moved whole = move(order, order.size_bytes);
    for (const auto& outcome : whole.outcomes) {
      EXPECT_TRUE(outcome.returned()) << (outcome.failure ? to_string(*outcome.failure) : "");
    }
    // The file is mapped as the attempt before left it and as it is now, and each counts as one read of it; beside that
    // there are heads and an index.
    EXPECT_LT(whole.read_bytes, 2 * order.size_bytes + order.size_bytes / 4);
  }
};

TEST_F(Relocate, AContainerThatArrivesDamagedAnywhereIsRefusedAndAWholeOneIsNotReadAgain) {
  const CommitHead head = commit(1, 10, "a");
  put(head);
  const std::string path = path_of(0, 1);
  const auto bytes = disk.read_all(path);
  disk.write_all("/store-1" + path.substr(path.rfind('/')), bytes);
  disk.remove_all(path);
  expect_any_flip_is_refused({store::FileKind::container, LogicalRank{0}, {head.id, {}}, 10, bytes.size(), 1, 0});
}

TEST_F(Relocate, ParityThatArrivesDamagedAnywhereIsRefusedAndWholeOneIsNotReadAgain) {
  put(commit(1, 10, "a"));  // so that there are stores
  std::vector<std::byte> parity(600'000);
  for (std::size_t i = 0; i < parity.size(); ++i) parity[i] = static_cast<std::byte>(i * 7 + i / 251);
  format::SetDescriptor set;
  set.run_id = run.id;
  set.commit_id = id_of(1);
  set.protection_id = id_of(5);
  set.generation = 10;
  set.world_size = kRanks;
  set.scheme = Scheme::xor_;
  set.parity_count = 1;
  for (const std::uint32_t rank : {0U, 1U}) set.members.push_back({LogicalRank{rank}, 1, 600'000});
  set.kind = format::SetFileKind::parity;
  set.parity_bytes = parity.size();
  set.parity_crc = crc32c(parity);
  const auto head = format::encode_set_descriptor(set);
  std::vector<std::byte> file(head.begin(), head.end());
  file.insert(file.end(), parity.begin(), parity.end());
  const store::FileName name{store::FileKind::parity, LogicalRank{0}, 3};
  disk.write_all(fs::join("/store-1", to_string(name)), file);
  expect_any_flip_is_refused(
      {store::FileKind::parity, LogicalRank{0}, {set.commit_id, set.protection_id}, 10, file.size(), 1, 0});
}

}  // namespace
}  // namespace kedge::recovery::relocate_test
