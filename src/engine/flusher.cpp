#include "engine/flusher.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>

#include "base/attempt.hpp"
#include "base/keep_forever.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "comm/records.hpp"
#include "engine/global_arrays.hpp"
#include "format/attributes.hpp"
#include "persist/flush.hpp"
#include "persist/tag_directory.hpp"
#include "redundancy/drafts.hpp"

namespace kedge::engine {
namespace {

constexpr int kManifestChannel = 4;

/// To rank 0, never stored.
struct RowRecord {
  std::uint64_t size_bytes = 0;
  std::uint64_t index_offset = 0;
  std::uint32_t index_size = 0;
  std::uint32_t index_crc = 0;
  std::uint32_t crc = 0;
};

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15U + (hash >> 29U);
}

std::uint64_t hash_of_shape(const Shape& shape) {
  std::uint64_t hash = shape.dimensions();
  for (const std::uint64_t extent : shape.extents()) hash = mixed(hash, extent);
  return hash;
}

/// Of everything that the manifest's view depends on.
std::uint64_t hash_of_structure(std::span<const format::PlacedRegion> regions) {
  std::uint64_t hash = regions.size();
  for (const auto& [spec, offset, bytes, first_checksum] : regions) {
    const auto* shard = std::get_if<Shard>(&spec.placement);
    if (shard == nullptr && !std::holds_alternative<Replicated>(spec.placement)) continue;
    hash = mixed(hash, hash_of(spec.name));
    hash = mixed(hash, static_cast<std::uint64_t>(spec.dtype));
    hash = mixed(hash, hash_of_shape(spec.shape));
    hash = mixed(hash, shard == nullptr ? 1 : 2);
    if (shard == nullptr) continue;
    hash = mixed(hash, hash_of_shape(shard->global_shape));
    hash = mixed(hash, hash_of_shape(shard->offset));
  }
  return hash;
}

}  // namespace

std::optional<Failure> Flusher::flush(const commits::Entry& commit) {
  Container container;
  std::optional<Failure> failure = context_.vote(attempt([&] { look_at(commit, container); }));
  if (!failure) failure = flush_pinned(commit, container);
  container.reader.reset();
  if (container.file != nullptr) context_.store->unpin(*container.file);
  if (failure && failure->code == ErrorCode::busy) context_.dead_because = failure->message;
  return failure;
}

void Flusher::look_at(const commits::Entry& commit, Container& container) const {
  container.file = &context_.store->pin(store::FileKind::container, context_.logical_rank(), {commit.commit.id, {}});
  store::StoreFile& file = *container.file;
  container.reader = std::make_unique<format::ContainerReader>(file.bytes(), file.size_bytes(), file.path());
  container.crc = container.reader->file_crc();
  container.structure_hash = hash_of_structure(container.reader->regions());
  if (!context_.is_root()) return;
  const std::string attributes = container.reader->attributes();
  if (!attributes.empty()) container.attributes = format::decode_attributes(attributes, file.path());
}

std::optional<Failure> Flusher::flush_pinned(const commits::Entry& commit, const Container& container) {
  if (auto failure = sweep()) return failure;
  if (auto failure = make_layout(container)) return failure;
  persist::FlushJob job;
  job.entry = entry_of(container);
  if (auto failure = make_manifest(job.entry, container, job.manifest)) return failure;
  keep_copies(job.entry, job.manifest);
  job.prefix = context_.prefix_path;
  job.mode = persist::mode_bits(context_.options.persistent.mode);
  job.logical_rank = context_.logical_rank();
  job.file = container.file;
  job.crc = container.crc;
  job.patience = context_.patience();
  must_sweep_ = true;
  persist::Flushed flushed =
      persist::flush(*context_.comm, *context_.environment.file_system, context_.prefix.get(), job);
  if (flushed.failure) return flushed.failure;
  must_sweep_ = false;
  context_.ledger.set_persistent(commit.commit.id, true);
  context_.unflushed = 0;
  if (!flushed.left_out.empty()) {
    context_.log.warning(
        compose("{} is persistent, and something for convenience is missing: {}", commit.commit.tag, flushed.left_out));
  }
  return retain(commit);
}

bool Flusher::needs_layout(const Container& container) const {
  if (!has_layout_ || container.structure_hash != structure_hash_) return true;
  if (!context_.is_root() || container.attributes.empty()) return false;
  return format::encode(container.attributes).size() > format::attributes_room(*layout_);
}

/// COLLECTIVE. Costs one all-reduce as long as no rank's structure changes.
std::optional<Failure> Flusher::make_layout(const Container& container) {
  std::uint64_t needed = 0;
  const auto asked = context_.vote(attempt([&] { needed = needs_layout(container) ? 1 : 0; }));
  if (asked) return asked;
  context_.comm->all_reduce(std::span(&needed, 1), Reduction::max, context_.deadline());
  if (needed == 0) return std::nullopt;
  has_layout_ = false;
  const std::vector<SharedRegion> mine = shared_regions(container.reader->regions());
  const GlobalArrays arrays = GlobalArrays::tell(*context_.comm, mine, context_.deadline());
  if (auto failure = context_.vote(arrays.check())) return failure;
  const std::optional<format::View> view =
      arrays.gather(*context_.comm, context_.options.persistent.view_limit, context_.deadline());
  const auto local = attempt([&] {
    if (!context_.is_root()) return;
    std::vector<std::string> files;
    for (std::uint32_t rank = 0; rank < container.reader->superblock().commit.world_size; ++rank) {
      files.push_back(persist::container_file(LogicalRank{rank}));
    }
    const std::size_t room = container.attributes.empty() ? 0 : format::encode(container.attributes).size();
    layout_ = format::make_manifest_layout(view ? &*view : nullptr, files, room);
  });
  if (auto failure = context_.vote(local)) return failure;
  if (!view && context_.is_root()) {
    context_.log.info(
        compose("the global arrays have more than persistent.view_limit = {} shards: the manifest has no "
                "HDF5 view of them; their containers have all the data",
                context_.options.persistent.view_limit));
  }
  structure_hash_ = container.structure_hash;
  has_layout_ = true;
  return std::nullopt;
}

/// COLLECTIVE.
persist::TagEntry Flusher::entry_of(const Container& container) const {
  const format::Superblock& superblock = container.reader->superblock();
  persist::TagEntry entry;
  entry.directory = persist::directory_name(superblock.commit);
  entry.commit = superblock.commit;
  entry.run = context_.run;
  entry.total_bytes = container.file->size_bytes();
  context_.comm->all_reduce(std::span(&entry.total_bytes, 1), Reduction::sum, context_.deadline());
  return entry;
}

/// COLLECTIVE. One row of each rank goes to rank 0; of their regions nothing does.
std::optional<Failure> Flusher::make_manifest(const persist::TagEntry& entry, const Container& container,
                                              std::vector<std::byte>& manifest) const {
  const format::Superblock& superblock = container.reader->superblock();
  const RowRecord mine{container.file->size_bytes(), superblock.index_offset,
                       static_cast<std::uint32_t>(superblock.index_size), superblock.index_crc, container.crc};
  const auto told =
      comm::exchange_records(*context_.comm, std::vector<comm::Addressed<RowRecord>>{{0, mine}}, context_.deadline());
  return context_.vote(attempt([&] {
    if (!context_.is_root()) return;
    std::vector<format::ShardRow> rows;
    for (const auto& [rank, record] : told) {
      rows.push_back({persist::container_file(LogicalRank{static_cast<std::uint32_t>(rank)}), record.size_bytes,
                      record.index_offset, record.index_size, record.index_crc, record.crc});
    }
    manifest = format::encode_manifest(*layout_, persist::head_of(entry), rows, container.attributes);
  }));
}

/// COLLECTIVE. The manifest stays in the stores of two failure domains, so that a commit whose flush was cut short can
/// be drained later by whoever finds it. A flush does without: what is missing here is said at debug level only.
void Flusher::keep_copies(const persist::TagEntry& entry, const std::vector<std::byte>& manifest) const {
  const int second = context_.redundancy.second_manifest;
  const bool is_second = context_.rank() == second;
  std::uint64_t bytes = manifest.size();
  context_.broadcast(bytes);
  const auto received = std::make_shared<std::vector<std::byte>>(is_second ? bytes : 0);
  const auto sent =
      std::make_shared<std::vector<std::byte>>(context_.is_root() && second >= 0 ? manifest : std::vector<std::byte>{});
  std::vector<Communicator::Request> requests;
  if (is_second) requests.push_back(context_.comm->receive(0, kManifestChannel, *received));
  if (context_.is_root() && second >= 0) requests.push_back(context_.comm->send(second, kManifestChannel, *sent));
  try {
    context_.comm->wait(requests, context_.deadline());
  } catch (const Error&) {
    keep_forever(received);  // the message may still come or go
    keep_forever(sent);
    throw;
  }
  redundancy::Drafts drafts(*context_.comm, *context_.store, context_.options.store.durable, context_.patience());
  const auto failure = drafts.seal(attempt([&] {
    if (!is_second && !context_.is_root()) return;
    const std::span<const std::byte> whole = is_second ? *received : manifest;
    redundancy::Draft& draft =
        drafts.begin(store::FileKind::manifest, {entry.commit.id, {}}, entry.commit.generation, whole.size());
    (void)draft.copy_in(0, whole, 0);
  }));
  if (failure && context_.is_root()) {
    context_.log.debug("the stores keep no copy of the manifest: " + to_string(*failure));
  }
}

/// COLLECTIVE. Before the first flush, and after one that failed.
std::optional<Failure> Flusher::sweep() {
  if (!must_sweep_) return std::nullopt;
  std::vector<std::string> left;
  const auto local = attempt([&] {
    if (!context_.prefix) return;
    left = context_.prefix->sweep();
    (void)attempt([&] { context_.prefix->complete_catalog(context_.run_id); });  // a cache: readers do without
  });
  for (const std::string& one : left) {
    context_.log.warning("what an unfinished flush left on the prefix could not be removed: " + one);
  }
  return context_.vote(local);
}

/// COLLECTIVE. What cannot be removed now is tried again after the next flush; only the loss of the incarnation counts.
std::optional<Failure> Flusher::retain(const commits::Entry& commit) {
  if (context_.options.persistent.keep == 0) return std::nullopt;
  std::vector<Id128> removed;
  const auto local = attempt([&] {
    if (!context_.prefix) return;
    context_.prefix->retain(
        context_.run_id, {commit.commit.id, context_.ledger.parent_id()}, context_.ledger.excluded(),
        [&](const persist::TagEntry& entry) {
          removed.push_back(entry.commit.id);
          context_.log.debug(compose("removing {} from the prefix (persistent.keep)", entry.directory));
        });
  });
  std::uint64_t count = removed.size();
  context_.broadcast(count);
  removed.resize(count);
  if (count != 0) context_.comm->broadcast(std::as_writable_bytes(std::span(removed)), 0, context_.deadline());
  for (const Id128& commit_id : removed) context_.ledger.set_persistent(commit_id, false);
  const auto failure = context_.vote(local);
  if (!failure || failure->code == ErrorCode::busy) return failure;
  if (context_.is_root()) {
    context_.log.warning("old commits could not be removed from the prefix: " + to_string(*failure));
  }
  return std::nullopt;
}

}  // namespace kedge::engine
