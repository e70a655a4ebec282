#include "redundancy/protect.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "base/attempt.hpp"
#include "base/invariant.hpp"
#include "base/text.hpp"
#include "format/container_reader.hpp"
#include "format/set_descriptor.hpp"
#include "store/seal_transaction.hpp"
#include "store/verify_file.hpp"

namespace kedge::redundancy {
namespace {

using store::FileKind;

/// Sent between members of a set, never stored.
struct SizeAndCrc {
  std::uint64_t size_bytes = 0;
  std::uint64_t crc = 0;  ///< a 32-bit value, widened to leave no padding in the message
};
static_assert(std::has_unique_object_representations_v<SizeAndCrc>);

class Protector {
 public:
  Protector(const comm::Group& group, store::NodeStore& store, const ProtectRequest& subject,
            const Membership& membership, bool durable, const ExchangeSettings& traffic)
      : group_(group), subject_(subject), membership_(membership), traffic_(traffic), sealing_(group, store, durable) {
    invariant(subject.container != nullptr, "who protects a container has pinned it");
    invariant(membership.own_position < membership.ranks.size(), "a rank is a member of its redundancy set");
  }

  ProtectResult run() {
    if (auto failure = sealing_.vote(attempt([&] { check_container(); }))) return {failure, 0, 0};
    exchange_sizes();
    const std::array planned{store::PlannedFile{FileKind::parity, parity_file_bytes()},
                             store::PlannedFile{FileKind::descriptor, format::kSuperblockBytes}};
    if (auto failure = sealing_.begin_on_all_ranks(planned, [&] { begin_files(); })) return {failure, 0, 0};
    const std::vector<Stripe> stripes = encode_stripes(shape_);
    const std::array local_members{LocalMember{membership_.own_position, container(), parity()}};
    const ExchangeResult result = exchange_stripes(group_, membership_.ranks, local_members, stripes, traffic_);
    std::optional<Failure> local = result.failure;
    if (!local) local = attempt([&] { check_and_describe(stripes, result.member_checksums.front()); });
    const std::uint64_t bytes = parity_bytes(shape_, membership_.own_position);
    return {sealing_.seal(local), bytes, result.sent_bytes};
  }

 private:
  [[nodiscard]] static bool is_possible(const SizeAndCrc& record) {
    return record.size_bytes >= format::kSuperblockBytes && record.crc <= std::numeric_limits<std::uint32_t>::max();
  }

  [[nodiscard]] store::FileKey key() const { return {subject_.commit.id, subject_.protection_id}; }

  /// Computes the whole file's checksum from the stored checksums.
  void check_container() {
    file_->require_present();
    store::ExpectedFile expected;
    expected.kind = FileKind::container;
    expected.run_id = subject_.commit.run_id;
    expected.logical_rank = group_.logical_rank();
    expected.key = store::FileKey{subject_.commit.id, {}};
    expected.generation = subject_.commit.generation;
    (void)store::require_intact_file(file_->bytes(), file_->size_bytes(), file_->path(), expected, Verify::headers);
    reader_ = std::make_unique<format::ContainerReader>(file_->bytes(), file_->size_bytes(), file_->path());
    mine_ = {file_->size_bytes(), reader_->file_crc()};
  }

  void exchange_sizes() {
    invariant(is_possible(mine_), "this container has a size and a checksum of 32 bits");
    std::vector<comm::Addressed<SizeAndCrc>> records;
    for (const int rank : membership_.ranks) records.push_back({rank, mine_});
    std::vector<SizeAndCrc> reported(membership_.ranks.size());
    std::size_t count = 0;
    for (const auto& [peer, record] : group_.exchange(records)) {
      const auto member = std::ranges::find(membership_.ranks, peer);
      invariant(member != membership_.ranks.end(), "sizes come from members of the redundancy set alone");
      invariant(is_possible(record), "a member's container has a size and a checksum of 32 bits");
      reported[static_cast<std::size_t>(member - membership_.ranks.begin())] = record;
      ++count;
    }
    invariant(count == reported.size(), "every member of the redundancy set sends its size once");
    shape_.scheme = subject_.scheme;
    shape_.parity_count = subject_.parity_count;
    for (std::size_t i = 0; i < reported.size(); ++i) {
      shape_.sizes.push_back(reported[i].size_bytes);
      // Logical ranks equal ranks here, since their numbers are equal.
      members_.push_back({LogicalRank{static_cast<std::uint32_t>(membership_.ranks[i])},
                          static_cast<std::uint32_t>(reported[i].crc), reported[i].size_bytes});
    }
  }

  [[nodiscard]] std::uint64_t parity_file_bytes() const {
    return format::kSuperblockBytes + parity_bytes(shape_, membership_.own_position);
  }

  void begin_files() {
    parity_ = &sealing_.begin_file(FileKind::parity, key(), subject_.commit.generation, parity_file_bytes());
    descriptor_ =
        &sealing_.begin_file(FileKind::descriptor, key(), subject_.commit.generation, format::kSuperblockBytes);
  }

  [[nodiscard]] MemberFile container() const { return {&file_->bytes(), file_->mapped(), 0}; }
  [[nodiscard]] MemberFile parity() const { return {parity_, {}, format::kSuperblockBytes}; }

  void check_and_describe(std::span<const Stripe> stripes, const StripeChecksums& checksums) {
    file_->require_present();  // the container was sent from where it lies
    // Every byte of the container went into somebody's parity.
    if (!matches_recorded(membership_.own_position, MemberPart::container,
                          {mine_.size_bytes, static_cast<std::uint32_t>(mine_.crc)}, stripes, checksums, container())) {
      const auto damages = reader_->verify();
      const std::string what = damages.empty() ? "the container" : damages.front().description;
      refuse(
          ErrorCode::corrupt,
          compose("{} changed after it was committed, so it is not protected; check this node's memory or disk", what),
          file_->path());
    }
    format::SetDescriptor set;
    set.run_id = subject_.commit.run_id;
    set.commit_id = subject_.commit.id;
    set.protection_id = subject_.protection_id;
    set.generation = subject_.commit.generation;
    set.world_size = subject_.commit.world_size;
    set.scheme = subject_.scheme;
    set.parity_count = subject_.parity_count;
    set.set_number = subject_.set_number;
    set.position = membership_.own_position;
    set.members = members_;
    descriptor_->head() = format::encode_set_descriptor(set);
    set.kind = format::SetFileKind::parity;
    set.parity_bytes = parity_bytes(shape_, membership_.own_position);
    set.parity_crc = written_crc(membership_.own_position, MemberPart::parity, stripes, checksums);
    parity_->head() = format::encode_set_descriptor(set);
  }

  const comm::Group& group_;
  const ProtectRequest& subject_;
  const Membership& membership_;
  const ExchangeSettings& traffic_;
  store::SealTransaction sealing_;
  store::StoreFile* file_ = subject_.container;
  std::unique_ptr<format::ContainerReader> reader_;
  SizeAndCrc mine_;
  SetShape shape_;
  std::vector<format::SetMember> members_;
  store::UnsealedFile* parity_ = nullptr;
  store::UnsealedFile* descriptor_ = nullptr;
};

}  // namespace

ProtectResult protect(const comm::Group& group, store::NodeStore& store, const ProtectRequest& subject,
                      const Membership& membership, bool durable, const ExchangeSettings& traffic) {
  return Protector(group, store, subject, membership, durable, traffic).run();
}

}  // namespace kedge::redundancy
