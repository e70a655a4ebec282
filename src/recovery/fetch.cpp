#include "recovery/fetch.hpp"

#include "base/attempt.hpp"
#include "comm/vote.hpp"
#include "fs/copy.hpp"

namespace kedge::recovery {
namespace {

void fetch_one(redundancy::Drafts& drafts, const Fetch& order, const RecoverySettings& settings, Recovered& recovered) {
  const persist::OpenedContainer source = settings.tier->open(settings.directory, settings.commit, order.logical_rank);
  const std::uint64_t bytes = source.row.size_bytes;
  redundancy::Draft& draft = drafts.begin(store::FileKind::container, order.key, order.generation, bytes);
  if (fs::copy(*source.bytes, draft, bytes) != source.row.crc) {
    throw Error(Failure{ErrorCode::corrupt, "the container on the prefix is not what was flushed", -1, source.path, 0});
  }
  recovered.source = RecoverySource::fetched;
  recovered.container_bytes = bytes;
}

}  // namespace

void fetch(Communicator& communicator, store::NodeStore& store, std::span<const Fetch> fetches,
           const RecoverySettings& settings, Recovered& recovered) {
  std::uint64_t any = fetches.size();
  communicator.all_reduce(std::span(&any, 1), Reduction::max, Deadline::after(settings.patience));
  if (any == 0) return;
  redundancy::Drafts drafts(communicator, store, settings.durable, settings.patience);
  comm::throw_if(drafts.seal(attempt([&] {
    for (const Fetch& order : fetches) fetch_one(drafts, order, settings, recovered);
  })));
}

}  // namespace kedge::recovery
