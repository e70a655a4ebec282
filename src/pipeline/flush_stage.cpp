#include "pipeline/flush_stage.hpp"

#include <memory>

#include "base/attempt.hpp"
#include "base/invariant.hpp"
#include "base/keep_forever.hpp"
#include "base/text.hpp"
#include "comm/channels.hpp"
#include "pipeline/commit_log.hpp"
#include "pipeline/timeout_factor.hpp"
#include "store/seal_transaction.hpp"

namespace kedge::pipeline {
namespace {

constexpr std::uint64_t kMeasuredBytesMin = std::uint64_t{64} << 20U;
// A flush removes old commits in pieces, each far below any timeout. A piece removes at least one commit; two pieces
// per flush shorten the history even if one removal exceeds the budget.
constexpr int kPieces = 2;
constexpr double kPieceBudget_s = 0.5;
constexpr std::size_t kRetractedMax = 32;  // in one piece

/// COLLECTIVE. Sends rank 0's manifest to rank `second`; returns it there, nothing elsewhere.
std::vector<std::byte> send_manifest_to(int second, const comm::Group& group, const std::vector<std::byte>& manifest) {
  std::uint64_t bytes = manifest.size();
  group.broadcast(bytes);
  const bool is_second = group.rank() == second;
  const auto received = std::make_shared<std::vector<std::byte>>(is_second ? bytes : 0);
  const auto sent = std::make_shared<std::vector<std::byte>>(group.is_root() ? manifest : std::vector<std::byte>{});
  Communicator& communicator = group.communicator();
  std::vector<Communicator::Request> requests;
  if (is_second) requests.push_back(communicator.receive(0, comm::channel::kManifestCopy, *received));
  if (group.is_root()) requests.push_back(communicator.send(second, comm::channel::kManifestCopy, *sent));
  try {
    communicator.wait(requests, group.deadline());
  } catch (const Error&) {
    keep_forever(received);  // the message may still be in progress
    keep_forever(sent);
    throw;
  }
  return std::move(*received);
}

std::unique_ptr<format::ContainerReader> open_container_reader(const CommitFiles& files) {
  store::StoreFile& file = *files.container;
  return std::make_unique<format::ContainerReader>(file.bytes(), file.size_bytes(), file.path());
}

/// Runs a step that throws the same Error on all ranks, unless communication ended.
template <class Step>
std::optional<Failure> try_step(Step&& step) {
  try {
    std::forward<Step>(step)();
    return std::nullopt;
  } catch (const Error& error) {
    if (comm::ends_communication(error.code())) throw;
    return error.failure();
  }
}

}  // namespace

std::optional<Failure> FlushStage::prepare(const comm::Group& group, CommitFiles& files) {
  return try_step([&] {
    std::unique_ptr<format::ContainerReader> container;
    group.run_on_all_ranks([&] { container = open_container_reader(files); });
    using LayoutPolicy = persist::ManifestBuilder::LayoutPolicy;
    files.manifest = builder_.build(group, *container, files.in_background ? LayoutPolicy::known : LayoutPolicy::any);
  });
}

std::uint64_t FlushStage::retries_max(const Failure& failure) const {
  return is_transient(failure) ? settings_.persistent.retries : 0;
}

std::string FlushStage::failure_warning(const CommitHead& commit, const Failure& failure, std::uint64_t tries) const {
  const auto entry = ledger_.known().find(commit.id);
  // A flush may be over when a later start of the run is found to have taken over.
  if (entry && entry->persistent) return to_string(failure);
  return compose("{} is not on the parallel filesystem{}: {}", commit.tag,
                 tries > 1 ? compose(" (tried {} times)", tries) : "", to_string(failure));
}

std::optional<Failure> FlushStage::run(const comm::Group& group, const CommitFiles& files) {
  auto failure = try_step([&] { flush_commit(group, files); });
  // A flush creates all names that it uses, so a missing one went with the mount or was removed by another process.
  if (failure && failure->code == ErrorCode::not_found) failure->code = ErrorCode::io;
  return failure;
}

void FlushStage::flush_commit(const comm::Group& group, const CommitFiles& files) {
  std::unique_ptr<format::ContainerReader> container;
  std::uint32_t crc = 0;
  group.run_on_all_ranks([&] {
    invariant(files.manifest.has_value(), "a flush is prepared before it runs");
    container = open_container_reader(files);
    crc = container->file_crc();
  });
  if (may_have_leftovers_) remove_leftovers(group);
  const persist::Manifest& manifest = *files.manifest;
  if (!io_is_chosen_ && is_worth_measuring(manifest.entry.total_bytes)) choose_io(group);
  copy_manifest(group, manifest);
  may_have_leftovers_ = true;
  const persist::PlainFileTotals own = plain_files(*container);
  const Upload upload{files, manifest, *container, crc, {group.sum(own.file_count), group.sum(own.total_bytes)}};
  const std::uint64_t own_bytes = files.container->size_bytes() + own.total_bytes;
  publish_with_space(with_flush_timeout(group, manifest.entry.total_bytes + upload.plain.total_bytes, own_bytes),
                     upload);
  may_have_leftovers_ = false;
  ledger_.set_persistent(files.commit.id, true);
  history_.add_published(manifest.entry);
  to_clean_up_ = files.commit.id;
}

std::optional<Failure> FlushStage::clean_up(const comm::Group& group) {
  const auto flushed = std::exchange(to_clean_up_, std::nullopt);
  if (!flushed) return std::nullopt;
  return try_step([&] { remove_old_commits(group, *flushed); });
}

/// COLLECTIVE. In the worst case one slow link carries all bytes of the job, and bandwidth_limit delays one rank most.
comm::Group FlushStage::with_flush_timeout(const comm::Group& group, std::uint64_t total_bytes,
                                           std::uint64_t own_bytes) const {
  const auto paced_ms = group.max(pace_ ? static_cast<std::uint64_t>(pace_->seconds_for(own_bytes) * 1000) : 0);
  return group.with_timeout(group.timeout() * timeout_factor(total_bytes) + std::chrono::milliseconds(paced_ms));
}

/// Measuring takes longer than writing a small commit.
bool FlushStage::is_worth_measuring(std::uint64_t total_bytes) const {
  return settings_.io != Io::automatic || total_bytes >= kMeasuredBytesMin;
}

/// COLLECTIVE. Before the first flush that is worth it. By the option io; rank 0 measures, and all ranks do the same.
void FlushStage::choose_io(const comm::Group& group) {
  bool direct = false;
  if (group.is_root()) {
    const fs::IoChoice chosen = prefix_.writer->choose_io(settings_.io);
    log_.info(compose("prefix {}: {}", prefix_.reader->location(), chosen.reason));
    direct = chosen.is_direct;
  }
  group.broadcast(direct);
  if (direct) prefix_.writer->enable_direct_writes();
  io_is_chosen_ = true;
}

/// COLLECTIVE. Removes leftovers before the first flush and after a failed one.
void FlushStage::remove_leftovers(const comm::Group& group) {
  persist::Leftovers left;
  const auto failure = group.try_on_all_ranks([&] {
    if (group.is_root()) left = prefix_.remover->find_leftovers(settings_.run.id);
  });
  for (const std::string& one : left.problems) {
    log_.warning("leftovers of an unfinished flush could not be removed from the prefix: " + one);
  }
  comm::throw_if(failure);
  removal_.add_leftovers(group, left.commits);
  removal_.run_step(group, kPieces * kPieceBudget_s);  // before the flush needs the space
}

/// COLLECTIVE. Stores the manifest in two failure domains, so that a later start can complete an interrupted flush. The
/// flush itself does not need the copies: a failure is logged at debug level.
void FlushStage::copy_manifest(const comm::Group& group, const persist::Manifest& manifest) const {
  std::vector<std::byte> received;
  if (settings_.second_root) received = send_manifest_to(*settings_.second_root, group, manifest.bytes);
  store::SealTransaction copies(group, store_, settings_.durable);
  const auto failure = copies.seal(attempt([&] {
    const std::span<const std::byte> whole = group.is_root() ? manifest.bytes : received;
    if (whole.empty()) return;
    const CommitHead& commit = manifest.entry.commit;
    store::UnsealedFile& draft =
        copies.begin_file(store::FileKind::manifest, {commit.id, {}}, commit.generation, whole.size());
    (void)draft.write_with_crc(0, whole, 0);
  }));
  if (failure && group.is_root()) log_.debug("the stores keep no copy of the manifest: " + to_string(*failure));
}

persist::PlainFileTotals FlushStage::plain_files(const format::ContainerReader& container) const {
  if (!settings_.persistent.plain_routed) return {};
  persist::PlainFileTotals mine;
  for (const format::StoredRegion& region : container.regions()) {
    if (!region.spec.is_routed) continue;
    ++mine.file_count;
    mine.total_bytes += region.size_bytes;
  }
  return mine;
}

/// COLLECTIVE. After a failure, removes what was written as far as possible; the next sweep removes the rest.
void FlushStage::publish(const comm::Group& group, const Upload& upload) {
  const persist::Manifest& manifest = upload.manifest;
  const persist::TagEntry& entry = manifest.entry;
  std::string left_out;
  removal_.forget_name(entry.directory);
  try {
    const bool is_complete = group.decide_on_root([&] {
      if (prefix_.writer->is_complete(entry)) return true;
      prefix_.writer->begin_commit(entry, manifest.bytes.size(), upload.plain);
      return false;
    });
    if (is_complete) return;
    group.run_on_all_ranks([&] { put_container(group.logical_rank(), upload); });
    group.run_on_all_ranks([&] {
      if (group.is_root()) left_out = prefix_.writer->publish(entry, manifest.bytes);
    });
  } catch (const Error& error) {
    // Neither an old start that was overtaken nor one that lost contact with other ranks may remove files.
    if (error.code() != ErrorCode::busy && !comm::ends_communication(error.code())) discard(group, entry);
    throw;
  }
  if (left_out.empty()) return;
  log_.warning(
      compose("{} is persistent, but a convenience file could not be written: {}", entry.commit.tag, left_out));
}

/// COLLECTIVE. Each rank removes what it wrote. The next sweep removes what fails or takes too long.
void FlushStage::discard(const comm::Group& group, const persist::TagEntry& entry) const {
  bool is_published = true;
  const auto unknown =
      group.try_decide_on_root(is_published, [&] { return prefix_.reader->is_published(entry.directory); });
  if (unknown || is_published) return;
  bool is_gone = true;
  const double give_up_at = clock_.seconds() + kPieces * kPieceBudget_s;
  const auto should_stop = [&] { return clock_.seconds() >= give_up_at; };
  (void)group.try_on_all_ranks(
      [&] { is_gone = prefix_.remover->remove_container(entry.directory, group.logical_rank(), should_stop); });
  const bool some_left = group.any(!is_gone);
  (void)group.try_on_all_ranks([&] {
    if (group.is_root() && !some_left) prefix_.remover->discard_unpublished(entry);
  });
}

void FlushStage::put_container(LogicalRank logical_rank, const Upload& upload) {
  store::StoreFile& file = *upload.files.container;
  const persist::TagEntry& entry = upload.manifest.entry;
  fs::RateLimiter* const pace = pace_ ? &*pace_ : nullptr;
  std::uint32_t crc = 0;
  auto failure = attempt([&] {
    crc = prefix_.writer->put_container(entry, logical_rank, {file.bytes(), file.size_bytes(), file.mapped(), pace});
  });
  file.require_present();  // the container was read in place: if it is gone, the prefix is not to blame
  comm::throw_if(failure);
  if (crc != upload.crc) {
    refuse(ErrorCode::corrupt,
           "the container changed after it was committed, so it is not flushed; check this node's memory or disk",
           file.path());
  }
  if (!settings_.persistent.plain_routed) return;
  for (const format::StoredRegion& region : upload.container.regions()) {
    if (!region.spec.is_routed) continue;
    const std::string name = region.spec.name + (format::is_empty_directory(region.spec) ? "/" : "");
    prefix_.writer->write_plain_file(entry, logical_rank, name, [&](fs::ByteAccess& to) {
      if (pace == nullptr) return upload.container.read(region, to);
      fs::RateLimitedAccess paced(to, *pace);
      upload.container.read(region, paced);
    });
  }
}

/// COLLECTIVE. What cannot be removed now is retried after the next flush.
void FlushStage::remove_old_commits(const comm::Group& group, const Id128& flushed) {
  const double begun_at = clock_.seconds();
  RemovalResult all;
  std::size_t cleared = 0;
  for (int piece = 0; piece < kPieces; ++piece) {
    RemovalResult now;
    if (settings_.persistent.keep > 0) {
      now = retract_some_commits(group, {settings_.run.id,
                                         settings_.persistent.keep,
                                         {flushed, ledger_.known().parent_id},
                                         ledger_.excluded().ids()});
    }
    all = {all.retracted_count + now.retracted_count, now.remaining_count, std::move(now.failure)};
    cleared += removal_.run_step(group, kPieceBudget_s);
    if (all.remaining_count == 0 && removal_.is_done()) break;
  }
  if (!group.is_root()) return;
  const double took_s = clock_.seconds() - begun_at;
  if (all.failure) log_.warning("old commits could not be removed from the prefix: " + to_string(*all.failure));
  if (all.remaining_count > 0 && !std::exchange(has_logged_slow_, true)) {
    log_.warning(
        compose("removed {} of {} old checkpoints from the prefix (persistent.keep) in {:.1f} s; later flushes remove "
                "the rest",
                all.retracted_count, all.remaining_count + all.retracted_count, took_s));
  }
  removal_.log_if_slow(cleared, took_s);
}

/// The catalog as of the ledger's last change. Rank 0 only.
const std::vector<persist::TagEntry>& FlushStage::update_history() {
  const std::uint64_t changes = ledger_.known().prefix_changes;
  if (std::exchange(history_version_, changes) != changes) history_.clear();
  return history_.list_run_commits(*prefix_.reader, settings_.run.id);
}

/// COLLECTIVE. Returns an error only if a later start has begun.
FlushStage::RemovalResult FlushStage::retract_some_commits(const comm::Group& group,
                                                           const persist::PrefixRetention& retention) {
  RemovalResult piece;
  std::vector<Id128> removed;
  std::vector<persist::Leftover> remains;
  piece.failure = group.try_on_all_ranks([&] {
    if (!group.is_root()) return;
    (void)update_history();
    const double give_up_at = clock_.seconds() + kPieceBudget_s;
    std::size_t begun = 0;
    // At least one each time, but not a whole history in one flush.
    const auto should_stop = [&] { return begun++ > 0 && (begun > kRetractedMax || clock_.seconds() >= give_up_at); };
    const persist::RetractionResult retained =
        persist::retract_old_commits(prefix_, *markers_, history_, retention, should_stop);
    for (const persist::TagEntry& entry : retained.retracted) {
      removed.push_back(entry.commit.id);
      remains.push_back({entry.directory, entry.commit.world_size});
      log_.debug(compose("removed {} from the prefix (persistent.keep)", entry.directory));
    }
    piece.remaining_count = retained.remaining_count;
    comm::throw_if(retained.failure);
  });
  group.broadcast(removed);
  group.broadcast(piece.remaining_count);
  for (const Id128& commit_id : removed) ledger_.set_persistent(commit_id, false);
  removal_.add_leftovers(group, remains);
  piece.retracted_count = removed.size();
  if (piece.failure && piece.failure->code == ErrorCode::busy) throw Error(*piece.failure);
  return piece;
}

}  // namespace kedge::pipeline
