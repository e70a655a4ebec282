#include "redundancy/protect.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/checksum.hpp"
#include "base/text.hpp"
#include "comm/records.hpp"
#include "format/container_reader.hpp"
#include "format/set_descriptor.hpp"

namespace kedge::redundancy {
namespace {

using store::FileKind;

/// On the wire between members of a set, never stored.
struct SizeAndCrc {
  std::uint64_t size_bytes = 0;
  std::uint32_t crc = 0;
};

class Protector {
 public:
  Protector(Communicator& communicator, store::NodeStore& store, const Subject& subject, const Membership& membership,
            bool durable, const Traffic& traffic)
      : communicator_(communicator),
        subject_(subject),
        membership_(membership),
        traffic_(traffic),
        drafts_(communicator, store, durable, traffic.patience) {}

  Protection run() {
    if (auto failure = drafts_.vote(attempt([&] { look_at_container(); }))) return {failure, 0, 0};
    tell_sizes();
    if (auto failure = drafts_.vote(attempt([&] { begin_files(); }))) return {failure, 0, 0};
    const std::vector<Stripe> stripes = encode_stripes(shape_);
    const Exchanged passed = exchange(communicator_, membership_, stripes, container(), parity(), traffic_);
    std::optional<Failure> local = passed.failure;
    if (!local) local = attempt([&] { check_and_describe(stripes, passed); });
    const std::uint64_t bytes = parity_bytes(shape_, membership_.me);
    return {drafts_.seal(local), bytes, passed.sent_bytes};
  }

 private:
  [[nodiscard]] store::FileKey key() const { return {subject_.commit.id, subject_.protection_id}; }

  /// What the whole file's checksum must be is known from the checksums in it.
  void look_at_container() {
    file_ = &drafts_.pin(FileKind::container, subject_.logical_rank, {subject_.commit.id, {}});
    reader_ = std::make_unique<format::ContainerReader>(file_->bytes(), file_->size_bytes(), file_->path());
    mine_ = {file_->size_bytes(), reader_->file_crc()};
  }

  void tell_sizes() {
    std::vector<comm::Addressed<SizeAndCrc>> records;
    for (const int rank : membership_.ranks) records.push_back({rank, mine_});
    std::vector<SizeAndCrc> told(membership_.ranks.size());
    for (const auto& [peer, record] :
         comm::exchange_records(communicator_, records, Deadline::after(traffic_.patience))) {
      const auto member = std::ranges::find(membership_.ranks, peer);
      if (member != membership_.ranks.end())
        told[static_cast<std::size_t>(member - membership_.ranks.begin())] = record;
    }
    shape_.scheme = subject_.scheme;
    shape_.parities = subject_.parities;
    for (std::size_t i = 0; i < told.size(); ++i) {
      shape_.sizes.push_back(told[i].size_bytes);
      // Same count of logical ranks and processes: the member's rank is whose container it is.
      members_.push_back(
          {LogicalRank{static_cast<std::uint32_t>(membership_.ranks[i])}, told[i].crc, told[i].size_bytes});
    }
  }

  void begin_files() {
    const std::uint64_t bytes = parity_bytes(shape_, membership_.me);
    parity_ = &drafts_.begin(FileKind::parity, key(), subject_.commit.generation, format::kSuperblockBytes + bytes);
    descriptor_ = &drafts_.begin(FileKind::descriptor, key(), subject_.commit.generation, format::kSuperblockBytes);
  }

  [[nodiscard]] PartFile container() const { return {&file_->bytes(), file_->mapped(), 0}; }
  [[nodiscard]] PartFile parity() const { return {parity_, {}, format::kSuperblockBytes}; }

  void check_and_describe(std::span<const Stripe> stripes, const Exchanged& passed) {
    // Every byte of the container went into somebody's parity.
    if (!read_as_recorded(membership_.me, Part::container, {mine_.size_bytes, mine_.crc}, stripes, passed,
                          container())) {
      const auto damages = reader_->verify();
      const std::string what = damages.empty() ? "the container" : damages.front().what;
      throw Error(Failure{ErrorCode::corrupt,
                          compose("{} changed after it was committed: it is not protected as it is; check this node's "
                                  "memory or disk",
                                  what),
                          -1, file_->path(), 0});
    }
    format::SetDescriptor set;
    set.run_id = subject_.commit.run_id;
    set.commit_id = subject_.commit.id;
    set.protection_id = subject_.protection_id;
    set.generation = subject_.commit.generation;
    set.world_size = subject_.commit.world_size;
    set.scheme = subject_.scheme;
    set.parities = subject_.parities;
    set.set_number = subject_.set_number;
    set.position = membership_.me;
    set.members = members_;
    descriptor_->head() = format::encode(set);
    set.kind = format::SetFileKind::parity;
    set.parity_bytes = parity_bytes(shape_, membership_.me);
    set.parity_crc = crc_written(membership_.me, Part::parity, stripes, passed);
    parity_->head() = format::encode(set);
  }

  Communicator& communicator_;
  const Subject& subject_;
  const Membership& membership_;
  const Traffic& traffic_;
  Drafts drafts_;
  store::StoreFile* file_ = nullptr;
  std::unique_ptr<format::ContainerReader> reader_;
  SizeAndCrc mine_;
  SetShape shape_;
  std::vector<format::SetMember> members_;
  Draft* parity_ = nullptr;
  Draft* descriptor_ = nullptr;
};

}  // namespace

Protection protect(Communicator& communicator, store::NodeStore& store, const Subject& subject,
                   const Membership& membership, bool durable, const Traffic& traffic) {
  return Protector(communicator, store, subject, membership, durable, traffic).run();
}

}  // namespace kedge::redundancy
