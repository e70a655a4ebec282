#include "recovery/rebuild.hpp"

#include <algorithm>
#include <optional>
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
using redundancy::Part;
using redundancy::Stripe;
using store::FileKind;
using store::SealTransaction;
using store::UnsealedFile;

/// The rebuild of one set, on one of its members.
class SetRebuild {
 public:
  SetRebuild(const comm::Group& group, store::NodeStore& store, SealTransaction& seal_transaction,
             const SetOrder& order, const redundancy::PieceSettings& pieces)
      : group_(group), store_(store), sealing_(seal_transaction), order_(order), pieces_(pieces) {
    shape_.scheme = order.set.scheme;
    shape_.parities = order.set.parities;
    for (const format::SetMember& member : order.set.members) {
      shape_.sizes.push_back(member.size_bytes);
      membership_.ranks.push_back(owner_of(member.logical_rank, group));
    }
    membership_.me = order.set.position;
  }

  /// Local. Adds the files that begin() will begin; a container only once, even if several sets rebuild it.
  void plan(std::vector<store::PlannedFile>& planned) const {
    const std::uint32_t me = order_.set.position;
    const auto is_container = [](const store::PlannedFile& file) { return file.kind == FileKind::container; };
    if (!store_.has(FileKind::descriptor, me_member().logical_rank, order_.key())) {
      planned.push_back({FileKind::descriptor, format::kSuperblockBytes});
    }
    if (!order_.rebuild) return;
    if (!order_.present.container[me] && std::ranges::none_of(planned, is_container)) {
      planned.push_back({FileKind::container, me_member().size_bytes});
    }
    if (!order_.present.parity[me]) planned.push_back({FileKind::parity, parity_file_bytes()});
  }

  /// Local. `made` is the container that this rank rebuilds, null until the first set needs it: ranks that were lost
  /// together may use sets of two protections, which rebuild the same container.
  void begin(UnsealedFile*& made) {
    const std::uint32_t me = order_.set.position;
    if (!store_.has(FileKind::descriptor, me_member().logical_rank, order_.key())) {
      descriptor_ =
          &sealing_.begin(FileKind::descriptor, order_.key(), order_.set.generation, format::kSuperblockBytes);
      descriptor_->head() = format::encode(order_.set);
    }
    if (!order_.rebuild) return;
    if (order_.present.container[me]) use(container_file_, FileKind::container, {order_.set.commit_id, {}});
    else {
      if (made == nullptr) {
        made = &sealing_.begin(FileKind::container, {order_.set.commit_id, {}}, order_.set.generation,
                               me_member().size_bytes, SealTransaction::Storage::as_written);
      }
      container_ = made;
    }
    if (order_.present.parity[me]) use(parity_file_, FileKind::parity, order_.key());
    else {
      parity_ = &sealing_.begin(FileKind::parity, order_.key(), order_.set.generation, parity_file_bytes(),
                                SealTransaction::Storage::as_written);
    }
  }

  [[nodiscard]] std::optional<Failure> run() {
    if (!order_.rebuild) return std::nullopt;
    const std::vector<Stripe> stripes = redundancy::decode_stripes(shape_, order_.present);
    const auto passed = redundancy::exchange(group_, membership_, stripes, container_part(), parity_part(),
                                             {redundancy::route_for(stripes), pieces_});
    if (passed.failure) return passed.failure;
    return attempt([&] { check(stripes, passed); });
  }

  [[nodiscard]] bool makes_container() const { return container_ != nullptr; }

  /// "rank 2: container rebuilt from ranks 0 4 6 (xor)".
  [[nodiscard]] std::string summary() const {
    std::string others;
    for (std::size_t i = 0; i < order_.set.members.size(); ++i) {
      // In a pair that lost both containers, the parity of each member is the other's copy.
      const bool helped = i != order_.set.position && (order_.present.container[i] || order_.present.parity[i]);
      if (helped) others += compose(" {}", order_.set.members[i].logical_rank.value);
    }
    return compose("rank {}: container rebuilt from rank{}{} ({})", me_member().logical_rank.value,
                   others.find(' ', 1) == std::string::npos ? "" : "s", others, to_string(order_.set.scheme));
  }

 private:
  [[nodiscard]] const format::SetMember& me_member() const { return order_.set.members[order_.set.position]; }

  [[nodiscard]] std::uint64_t parity_file_bytes() const {
    return format::kSuperblockBytes + redundancy::parity_bytes(shape_, order_.set.position);
  }

  void use(store::StoreFile*& file, FileKind kind, const store::FileKey& key) {
    file = &sealing_.pin(kind, me_member().logical_rank, key);
  }

  [[nodiscard]] store::ExpectedFile expected(FileKind kind) const {
    store::ExpectedFile file;
    file.kind = kind;
    file.run_id = order_.set.run_id;
    file.logical_rank = me_member().logical_rank;
    file.key = kind == FileKind::container ? store::FileKey{order_.set.commit_id, {}} : order_.key();
    file.generation = order_.set.generation;
    file.world_size = order_.set.world_size;
    return file;
  }

  static MemberFile part(UnsealedFile* draft, store::StoreFile* file, std::uint64_t begin) {
    if (draft != nullptr) return {draft, {}, begin};
    if (file == nullptr) return {nullptr, {}, begin};
    return {&file->bytes(), file->mapped(), begin};
  }

  [[nodiscard]] MemberFile container_part() const { return part(container_, container_file_, 0); }
  [[nodiscard]] MemberFile parity_part() const { return part(parity_, parity_file_, format::kSuperblockBytes); }

  /// Verifies every byte of the existing files, even those that the rebuild did not need: they were not verified
  /// earlier, and the set counts as complete afterwards.
  void check_inputs(std::span<const Stripe> stripes, const redundancy::ExchangeResult& passed) const {
    const std::uint32_t me = order_.set.position;
    if (container_file_ != nullptr) container_file_->require_present();  // messages were sent from its mapping
    if (parity_file_ != nullptr) parity_file_->require_present();
    const auto as_recorded = [&](Part which, const redundancy::Recorded& recorded, const MemberFile& file) {
      return redundancy::matches_recorded(me, which, recorded, stripes, passed, file);
    };
    if (container_file_ != nullptr &&
        !as_recorded(Part::container, {me_member().size_bytes, me_member().crc}, container_part())) {
      throw Error(Failure{ErrorCode::corrupt, "the container is damaged: its redundancy set cannot be rebuilt from it",
                          -1, container_file_->path(), 0});
    }
    if (parity_file_ == nullptr) return;
    const std::uint64_t size_bytes = redundancy::parity_bytes(shape_, me);
    const store::VerifiedFile parity =
        store::require_file(parity_file_->bytes(), format::kSuperblockBytes + size_bytes, parity_file_->path(),
                            expected(FileKind::parity), Verify::headers);
    if (!as_recorded(Part::parity, {size_bytes, parity.set->parity_crc}, parity_part())) {
      throw Error(Failure{ErrorCode::corrupt, "the parity is damaged: its redundancy set cannot be rebuilt from it", -1,
                          parity_file_->path(), 0});
    }
  }

  /// Compares the rebuilt file with the lost file's recorded checksum and superblock.
  void check(std::span<const Stripe> stripes, const redundancy::ExchangeResult& passed) {
    check_inputs(stripes, passed);
    if (container_ != nullptr) {
      if (redundancy::crc_written(order_.set.position, Part::container, stripes, passed) != me_member().crc) {
        throw Error(Failure{ErrorCode::corrupt, "the rebuilt container does not have its recorded checksum", -1,
                            container_->file().path(), 0});
      }
      // The file's checksum does not cover the superblock, which has its own: another commit's would fit.
      (void)store::require_file(*container_, me_member().size_bytes, container_->file().path(),
                                expected(FileKind::container), Verify::headers);
    }
    if (parity_ == nullptr) return;
    format::SetDescriptor set = order_.set;
    set.kind = format::SetFileKind::parity;
    set.parity_bytes = redundancy::parity_bytes(shape_, order_.set.position);
    set.parity_crc = redundancy::crc_written(order_.set.position, Part::parity, stripes, passed);
    parity_->head() = format::encode(set);
  }

  const comm::Group& group_;
  store::NodeStore& store_;
  SealTransaction& sealing_;
  const SetOrder& order_;
  redundancy::PieceSettings pieces_;
  redundancy::SetShape shape_;
  redundancy::Membership membership_;
  UnsealedFile* container_ = nullptr;
  UnsealedFile* parity_ = nullptr;
  UnsealedFile* descriptor_ = nullptr;
  store::StoreFile* container_file_ = nullptr;
  store::StoreFile* parity_file_ = nullptr;
};

}  // namespace

void rebuild(const comm::Group& group, store::NodeStore& store, std::span<const SetOrder> sets,
             const RecoverySettings& settings, Recovered& recovered) {
  if (!group.any(!sets.empty())) return;
  SealTransaction seal_transaction(group, store, settings.durable);
  std::vector<SetRebuild> rebuilds;
  for (const SetOrder& order : sets) rebuilds.emplace_back(group, store, seal_transaction, order, settings.pieces);
  std::vector<store::PlannedFile> planned;
  for (const SetRebuild& one : rebuilds) one.plan(planned);
  comm::throw_if(seal_transaction.begin_on_all_ranks(planned, [&] {
    UnsealedFile* made = nullptr;
    for (SetRebuild& one : rebuilds) one.begin(made);
  }));
  std::optional<Failure> local;
  for (SetRebuild& one : rebuilds) {
    auto failure = one.run();
    if (failure && !local) local = std::move(failure);
  }
  comm::throw_if(seal_transaction.seal(local));
  for (std::size_t i = 0; i < rebuilds.size(); ++i) {
    if (!rebuilds[i].makes_container()) continue;
    recovered.source = RecoverySource::rebuilt;
    recovered.container_bytes = sets[i].set.members[sets[i].set.position].size_bytes;
    recovered.summary = rebuilds[i].summary();
  }
}

}  // namespace kedge::recovery
