#include "recovery/execute_orders.hpp"

#include <vector>

#include "base/attempt.hpp"
#include "fs/copy.hpp"
#include "fs/transfer.hpp"
#include "store/verify_file.hpp"

namespace kedge::recovery {
namespace {

/// One container, from the prefix to the store.
struct Copy {
  const FetchOrder& order;
  persist::OpenedContainer source;
  store::UnsealedFile* draft = nullptr;
};

void fetch_one(const Copy& copy, std::uint64_t piece_bytes, Recovered& recovered) {
  const persist::OpenedContainer& source = copy.source;
  const std::uint64_t bytes = source.row.size_bytes;
  if (fs::copy(*source.bytes, *copy.draft, bytes, piece_bytes) != source.row.crc) {
    throw Error(Failure{ErrorCode::corrupt, "the container on the prefix is not what was flushed", -1, source.path, 0});
  }
  // The file's checksum does not cover the superblock, which has its own: check its fields, too.
  store::ExpectedFile expected;
  expected.kind = store::FileKind::container;
  expected.logical_rank = copy.order.logical_rank;
  expected.key = copy.order.key;
  expected.generation = copy.order.generation;
  (void)store::require_intact_file(*copy.draft, bytes, copy.draft->file().path(), expected, Verify::headers);
  recovered.source = RecoverySource::fetched;
  recovered.container_bytes = bytes;
}

}  // namespace

void fetch(const comm::Group& group, store::NodeStore& store, std::span<const FetchOrder> fetches,
           const RecoverySettings& settings, Recovered& recovered) {
  if (!group.any(!fetches.empty())) return;
  store::SealTransaction seal_transaction(group, store, settings.durable);
  std::vector<Copy> copies;
  std::vector<store::PlannedFile> planned;
  comm::throw_if(seal_transaction.vote(attempt([&] {
    for (const FetchOrder& order : fetches) {
      copies.push_back(
          {order, settings.prefix_storage->open_container(settings.directory, settings.commit, order.logical_rank)});
      planned.push_back({store::FileKind::container, copies.back().source.row.size_bytes});
    }
  })));
  comm::throw_if(seal_transaction.begin_on_all_ranks(planned, [&] {
    for (Copy& copy : copies) {
      copy.draft =
          &seal_transaction.begin_file(store::FileKind::container, copy.order.key, copy.order.generation,
                                       copy.source.row.size_bytes, store::SealTransaction::Storage::as_written);
    }
  }));
  // Between two files in memory, pieces should stay in the cache between reading and writing.
  const std::uint64_t piece_bytes = store.directory.memory_backed() ? fs::kCachedPieceBytes : fs::kCopyPieceBytes;
  comm::throw_if(seal_transaction.seal(attempt([&] {
    for (const Copy& copy : copies) fetch_one(copy, piece_bytes, recovered);
  })));
}

}  // namespace kedge::recovery
