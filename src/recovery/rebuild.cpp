#include "recovery/execute_orders.hpp"

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "redundancy/exchange.hpp"
#include "store/verify_file.hpp"

namespace kedge::recovery {
namespace {

using redundancy::MemberFile;
using redundancy::MemberPart;
using redundancy::Stripe;
using store::FileKind;
using store::SealTransaction;
using store::UnsealedFile;

/// Containers that this process rebuilds, by logical rank: ranks that are lost together may ask sets of two
/// protections, and these make one container once each.
using RebuiltContainers = std::map<std::uint32_t, UnsealedFile*>;

/// One member of a set, on the process that has its files.
class MemberRebuild {
 public:
  MemberRebuild(store::NodeStore& store, SealTransaction& seal_transaction, const SetOrder& order,
                const redundancy::SetShape& shape)
      : store_(store), sealing_(seal_transaction), order_(order), shape_(shape) {}

  /// Local. Adds the files that begin() will begin; `containers` are those that are planned already.
  void plan(std::vector<store::PlannedFile>& planned, std::set<std::uint32_t>& containers) const {
    if (!store_.files.has_file(FileKind::descriptor, member().logical_rank, order_.key())) {
      planned.push_back({FileKind::descriptor, format::kSuperblockBytes, member().logical_rank});
    }
    if (!order_.rebuild) return;
    if (!has_container() && containers.insert(member().logical_rank.value).second) {
      planned.push_back({FileKind::container, member().size_bytes, member().logical_rank});
    }
    if (!has_parity()) planned.push_back({FileKind::parity, parity_file_bytes(), member().logical_rank});
  }

  /// Local.
  void begin(RebuiltContainers& rebuilt) {
    if (!store_.files.has_file(FileKind::descriptor, member().logical_rank, order_.key())) {
      descriptor_ =
          &make(FileKind::descriptor, order_.key(), format::kSuperblockBytes, SealTransaction::Storage::before);
      descriptor_->head() = format::encode_set_descriptor(order_.set);
    }
    if (!order_.rebuild) return;
    constexpr auto kAsWritten = SealTransaction::Storage::as_written;
    if (has_container()) use(container_file_, FileKind::container, {order_.set.commit_id, {}});
    else {
      UnsealedFile*& made = rebuilt[member().logical_rank.value];
      if (made == nullptr) {
        made = &make(FileKind::container, {order_.set.commit_id, {}}, member().size_bytes, kAsWritten);
      }
      container_ = made;
    }
    if (has_parity()) use(parity_file_, FileKind::parity, order_.key());
    else parity_ = &make(FileKind::parity, order_.key(), parity_file_bytes(), kAsWritten);
  }

  [[nodiscard]] redundancy::LocalMember files() const {
    return {position(), part(container_, container_file_, 0), part(parity_, parity_file_, format::kSuperblockBytes)};
  }

  /// Checks that the rebuilt file is the lost one: by its recorded checksum, and by its superblock.
  void check(std::span<const Stripe> stripes, const redundancy::StripeChecksums& checksums) {
    check_inputs(stripes, checksums);
    if (container_ != nullptr) {
      if (redundancy::written_crc(position(), MemberPart::container, stripes, checksums) != member().crc) {
        throw Error(Failure{ErrorCode::corrupt, "the rebuilt container does not have its recorded checksum", -1,
                            container_->file().path(), 0});
      }
      // That checksum says nothing of the superblock, which ends with its own: of another commit it would fit, too.
      (void)store::require_intact_file(*container_, member().size_bytes, container_->file().path(),
                                       expected(FileKind::container), Verify::headers);
    }
    if (parity_ == nullptr) return;
    format::SetDescriptor set = order_.set;
    set.kind = format::SetFileKind::parity;
    set.parity_bytes = redundancy::parity_bytes(shape_, position());
    set.parity_crc = redundancy::written_crc(position(), MemberPart::parity, stripes, checksums);
    parity_->head() = format::encode_set_descriptor(set);
  }

  /// Bytes of the container that this process rebuilds; 0 if it rebuilds none here.
  [[nodiscard]] std::uint64_t container_bytes() const { return container_ == nullptr ? 0 : member().size_bytes; }

  /// "rank 2: container rebuilt from ranks 0 4 6 (xor)".
  [[nodiscard]] std::string summary() const {
    std::string others;
    for (std::size_t i = 0; i < order_.set.members.size(); ++i) {
      // A member of a pair that lost both containers has the other's copy as its parity.
      const bool helped = i != position() && (order_.present.container[i] || order_.present.parity[i]);
      if (helped) others += compose(" {}", order_.set.members[i].logical_rank.value);
    }
    return compose("rank {}: container rebuilt from rank{}{} ({})", member().logical_rank.value,
                   others.find(' ', 1) == std::string::npos ? "" : "s", others, to_string(order_.set.scheme));
  }

 private:
  [[nodiscard]] std::uint32_t position() const { return order_.set.position; }
  [[nodiscard]] const format::SetMember& member() const { return order_.set.members[position()]; }
  [[nodiscard]] bool has_container() const { return order_.present.container[position()]; }
  [[nodiscard]] bool has_parity() const { return order_.present.parity[position()]; }

  [[nodiscard]] std::uint64_t parity_file_bytes() const {
    return format::kSuperblockBytes + redundancy::parity_bytes(shape_, position());
  }

  [[nodiscard]] UnsealedFile& make(FileKind kind, const store::FileKey& key, std::uint64_t size_bytes,
                                   SealTransaction::Storage storage) {
    return sealing_.begin_file(kind, key, order_.set.generation, size_bytes, storage, member().logical_rank);
  }

  void use(store::StoreFile*& file, FileKind kind, const store::FileKey& key) {
    file = &sealing_.pin(kind, member().logical_rank, key);
  }

  [[nodiscard]] store::ExpectedFile expected(FileKind kind) const {
    store::ExpectedFile file;
    file.kind = kind;
    file.run_id = order_.set.run_id;
    file.logical_rank = member().logical_rank;
    file.key = kind == FileKind::container ? store::FileKey{order_.set.commit_id, {}} : order_.key();
    file.generation = order_.set.generation;
    file.world_size = order_.set.world_size;
    return file;
  }

  static MemberFile part(UnsealedFile* unsealed, store::StoreFile* file, std::uint64_t begin) {
    if (unsealed != nullptr) return {unsealed, {}, begin};
    if (file == nullptr) return {nullptr, {}, begin};
    return {&file->bytes(), file->mapped(), begin};
  }

  /// Every byte of the files that are here, whether or not the rebuild needed it: nobody has to verify it before, and
  /// the set is whole afterwards. Nothing else would tell that parity was made from a flipped bit.
  void check_inputs(std::span<const Stripe> stripes, const redundancy::StripeChecksums& checksums) const {
    if (container_file_ != nullptr) container_file_->require_present();  // they were sent from where they lie
    if (parity_file_ != nullptr) parity_file_->require_present();
    const auto as_recorded = [&](MemberPart which, const redundancy::RecordedPart& recorded, const MemberFile& file) {
      return redundancy::matches_recorded(position(), which, recorded, stripes, checksums, file);
    };
    if (container_file_ != nullptr &&
        !as_recorded(MemberPart::container, {member().size_bytes, member().crc}, files().container)) {
      throw Error(Failure{ErrorCode::corrupt, "the container is damaged: its redundancy set cannot be rebuilt from it",
                          -1, container_file_->path(), 0});
    }
    if (parity_file_ == nullptr) return;
    const std::uint64_t size_bytes = redundancy::parity_bytes(shape_, position());
    const store::VerifiedFile parity =
        store::require_intact_file(parity_file_->bytes(), format::kSuperblockBytes + size_bytes, parity_file_->path(),
                                   expected(FileKind::parity), Verify::headers);
    if (!as_recorded(MemberPart::parity, {size_bytes, parity.set_descriptor->parity_crc}, files().parity)) {
      throw Error(Failure{ErrorCode::corrupt, "the parity is damaged: its redundancy set cannot be rebuilt from it", -1,
                          parity_file_->path(), 0});
    }
  }

  store::NodeStore& store_;
  SealTransaction& sealing_;
  const SetOrder& order_;
  const redundancy::SetShape& shape_;
  UnsealedFile* container_ = nullptr;
  UnsealedFile* parity_ = nullptr;
  UnsealedFile* descriptor_ = nullptr;
  store::StoreFile* container_file_ = nullptr;
  store::StoreFile* parity_file_ = nullptr;
};

/// One set, with all of its members whose files this process has: they take part in one exchange.
class SetRebuild {
 public:
  /// Orders for one set.
  SetRebuild(const comm::Group& group, store::NodeStore& store, SealTransaction& seal_transaction,
             std::span<const SetOrder> orders, const redundancy::PieceSettings& pieces)
      : group_(group), orders_(orders), pieces_(pieces) {
    const format::SetDescriptor& set = orders.front().set;
    ranks_ = orders.front().processes;
    shape_.scheme = set.scheme;
    shape_.parity_count = set.parity_count;
    for (const format::SetMember& member : set.members) {
      shape_.sizes.push_back(member.size_bytes);
    }
    for (const SetOrder& order : orders) members_.emplace_back(store, seal_transaction, order, shape_);
  }
  SetRebuild(const SetRebuild&) = delete;
  SetRebuild& operator=(const SetRebuild&) = delete;

  /// COLLECTIVE over the processes that have the set's members.
  [[nodiscard]] std::optional<Failure> run() {
    if (!orders_.front().rebuild) return std::nullopt;
    const std::vector<Stripe> stripes = redundancy::decode_stripes(shape_, orders_.front().present);
    std::vector<redundancy::LocalMember> local;
    for (const MemberRebuild& member : members_) local.push_back(member.files());
    const auto result =
        redundancy::exchange_stripes(group_, ranks_, local, stripes, {redundancy::route_for(stripes, ranks_), pieces_});
    if (result.failure) return result.failure;
    return attempt([&] {
      for (std::size_t i = 0; i < members_.size(); ++i) members_[i].check(stripes, result.member_checksums[i]);
    });
  }

  [[nodiscard]] std::span<MemberRebuild> members() { return members_; }

 private:
  const comm::Group& group_;
  std::span<const SetOrder> orders_;
  redundancy::PieceSettings pieces_;
  redundancy::SetShape shape_;
  std::vector<int> ranks_;  // by position
  std::vector<MemberRebuild> members_;
};

/// Orders for one set follow each other.
std::span<const SetOrder> orders_of_first_set(std::span<const SetOrder> orders) {
  const auto is_other = [&](const SetOrder& order) {
    return order.key() != orders.front().key() || order.set.set_number != orders.front().set.set_number;
  };
  return orders.first(static_cast<std::size_t>(std::ranges::find_if(orders, is_other) - orders.begin()));
}

}  // namespace

void rebuild(const comm::Group& group, store::NodeStore& store, std::span<const SetOrder> sets,
             const RecoverySettings& settings, Recovered& recovered) {
  if (!group.any(!sets.empty())) return;
  SealTransaction seal_transaction(group, store, settings.durable);
  std::list<SetRebuild> rebuilds;
  for (std::span<const SetOrder> left = sets; !left.empty(); left = left.subspan(orders_of_first_set(left).size())) {
    rebuilds.emplace_back(group, store, seal_transaction, orders_of_first_set(left), settings.pieces);
  }
  std::vector<store::PlannedFile> planned;
  std::set<std::uint32_t> containers;
  for (SetRebuild& set : rebuilds) {
    for (const MemberRebuild& member : set.members()) member.plan(planned, containers);
  }
  comm::throw_if(seal_transaction.begin_on_all_ranks(planned, [&] {
    RebuiltContainers rebuilt;
    for (SetRebuild& set : rebuilds) {
      for (MemberRebuild& member : set.members()) member.begin(rebuilt);
    }
  }));
  std::optional<Failure> local;
  for (SetRebuild& set : rebuilds) {
    auto failure = set.run();
    if (failure && !local) local = std::move(failure);
  }
  comm::throw_if(seal_transaction.seal(local));
  for (SetRebuild& set : rebuilds) {
    for (const MemberRebuild& member : set.members()) {
      if (member.container_bytes() == 0) continue;
      recovered.source = RecoverySource::rebuilt;
      recovered.container_bytes = member.container_bytes();
      recovered.summary = member.summary();
    }
  }
}

}  // namespace kedge::recovery
