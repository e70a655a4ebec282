#include "recovery/fetch.hpp"

#include "base/attempt.hpp"
#include "fs/copy.hpp"
#include "store/verify_file.hpp"

namespace kedge::recovery {
namespace {

void fetch_one(store::Sealing& sealing, const Fetch& order, const RecoverySettings& settings, Recovered& recovered) {
  const persist::OpenedContainer source = settings.tier->open(settings.directory, settings.commit, order.logical_rank);
  const std::uint64_t bytes = source.row.size_bytes;
  store::Draft& draft = sealing.begin(store::FileKind::container, order.key, order.generation, bytes);
  if (fs::copy(*source.bytes, draft, bytes) != source.row.crc) {
    throw Error(Failure{ErrorCode::corrupt, "the container on the prefix is not what was flushed", -1, source.path, 0});
  }
  // That checksum says nothing of the superblock, which ends with its own: it may have changed since it was looked at.
  store::ExpectedFile expected;
  expected.kind = store::FileKind::container;
  expected.logical_rank = order.logical_rank;
  expected.key = order.key;
  expected.generation = order.generation;
  (void)store::require_file(draft, bytes, draft.file().path(), expected, Verify::headers);
  recovered.source = RecoverySource::fetched;
  recovered.container_bytes = bytes;
}

}  // namespace

void fetch(const comm::Group& group, store::NodeStore& store, std::span<const Fetch> fetches,
           const RecoverySettings& settings, Recovered& recovered) {
  if (!group.any(!fetches.empty())) return;
  store::Sealing sealing(group, store, settings.durable);
  comm::throw_if(sealing.seal(attempt([&] {
    for (const Fetch& order : fetches) fetch_one(sealing, order, settings, recovered);
  })));
}

}  // namespace kedge::recovery
