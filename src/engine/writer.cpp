#include "engine/writer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>

#include "base/attempt.hpp"
#include "base/hash.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "comm/calls.hpp"
#include "commits/commit_selection.hpp"
#include "commits/ledger.hpp"
#include "engine/device_memory.hpp"
#include "format/attributes.hpp"
#include "store/pin.hpp"

namespace kedge::engine {
namespace {

/// Pure. Which older commit or outputs stay and why, to be appended to a message; empty if none stay longer than usual.
std::string describe_kept_commits(const commits::Ledger& ledger, std::uint32_t keep, bool has_work_left) {
  if (const auto outputs = ledger.known().unflushed_outputs(); !outputs.empty()) {
    return compose("; {} of the outputs, from {} on, {} in the store until flushed to the prefix", outputs.size(),
                   outputs.front().tag, outputs.size() == 1 ? "stays" : "stay");
  }
  const std::vector<commits::CommitEntry> kept = ledger.known().entries;
  std::string_view why;
  if (kept.size() > keep && has_work_left) why = "until the background work on them is done";
  if (ledger.known().ids_to_keep(keep).size() > keep) why = "because none of them is protected yet";
  return why.empty() ? std::string() : compose("; {} stays beside newer commits {}", kept.back().commit.tag, why);
}

constexpr std::size_t kAttributesRoomMin = 512;

}  // namespace

void Writer::create(std::string_view tag, const Attributes& attributes, const Expected& expected) {
  const double begin_s = uses_.clock.seconds();
  pipeline::Waits& waits = uses_.pipeline.waits();
  std::optional<Failure> local = uses_.lifecycle.check_phase(comm::Call::create, {Phase::idle});
  if (!local) local = commits::check_tag(tag);
  if (!local && uses_.group.is_root()) local = format::check_attributes(attributes);
  if (!local) local = expected.is_last ? waits.failure() : waits.wait_for_space();
  // If the snapshot fails, the parent is the commit before it. The wait is short: a snapshot is the first in the
  // worker's queue.
  if (!local) local = waits.wait_until_sealed();
  // One rank may know what another is about to hear.
  enum Before : std::uint64_t { nothing, survey };
  const bool looks = uses_.ledger.known().must_survey() || has_lost_store(uses_.recreation.node);
  const Before mine = looks ? survey : nothing;
  const std::string what = expected.is_output ? compose("output {}", tag) : std::string(tag);
  const std::uint64_t before = comm::begin_call(uses_.group, comm::Call::create, fnv1a(what), local, mine);
  // Without an open before it: which of the files that lie here must not be overwritten?
  if (before == survey) {
    waits.quiesce();
    uses_.recreation.run();
    uses_.recovery.survey_only();
    uses_.pipeline.start_without_commit(true);
  }
  const pipeline::BackgroundPause::Guard guard(uses_.pause);  // every rank is in here; whoever needs the worker says so
  const CommitHead head = make_head(tag, expected.is_output);
  last_.reset();
  checkpoint_ = std::make_unique<Checkpoint>(uses_);
  checkpoint_->commit = head;
  checkpoint_->attributes = attributes;
  checkpoint_->takes_snapshots = permits_snapshots(expected);
  if (auto failure = try_to_begin(expected)) {
    abort_checkpoint();
    // The next checkpoint may be smaller: its need shows as it is saved.
    if (failure->code != ErrorCode::no_space) throw Error(*failure);
    pattern(expected.is_output).layout.reset();
    failure->message += describe_kept_commits();
    throw Error(*failure);
  }
  checkpoint_->blocked_s = uses_.clock.seconds() - begin_s;
  uses_.lifecycle.move_to(Phase::writing);
  if (uses_.group.is_root()) {
    uses_.log.debug(compose("began {} (generation {})", head.tag, head.generation));
  }
}

/// COLLECTIVE. Begins the container; where there is no space, again under what may be better conditions.
std::optional<Failure> Writer::try_to_begin(const Expected& expected) {
  const auto is_full = [](const std::optional<Failure>& failure) {
    return failure && failure->code == ErrorCode::no_space;
  };
  auto failure = begin(expected.bytes);
  // Nothing older is retired as long as the checkpoint that was opened is still verified in the background.
  if (is_full(failure) && (expected.is_last || uses_.group.any(uses_.ledger.known().has_unverified()))) {
    uses_.group.run_on_all_ranks([&] { comm::throw_if(uses_.pipeline.waits().wait_until_idle().failure); });
    failure = begin(expected.bytes);
  }
  // This checkpoint may need less than the last one lets expect.
  if (is_full(failure) && uses_.group.any(expected.bytes != 0)) {
    pattern().layout.reset();
    failure = begin(expected.bytes);
  }
  return failure;
}

/// COLLECTIVE. Describes what else takes up the space, as rank 0 sees it: workers remove commits one rank after the
/// other.
std::string Writer::describe_kept_commits() const {
  std::string text;
  if (uses_.group.is_root()) {
    text = engine::describe_kept_commits(uses_.ledger, uses_.keep, uses_.pipeline.waits().pending_count() != 0);
  }
  uses_.group.broadcast(text);
  return text;
}

/// COLLECTIVE. Rank 0 draws the id and takes the time; everything else all ranks know.
CommitHead Writer::make_head(std::string_view tag, bool is_output) const {
  struct Drawn {
    Id128 id;
    std::int64_t time_ns = 0;
  };
  const Drawn drawn = uses_.group.decide_on_root([&] { return Drawn{random_id(), uses_.clock.wall_ns()}; });
  CommitHead head;
  head.run_id = uses_.run.id;
  head.id = drawn.id;
  head.parent_id = uses_.ledger.known().parent_id;
  head.generation = uses_.ledger.generations().take_next();
  head.incarnation = uses_.run.incarnation;
  head.world_size = uses_.group.world_size();
  head.time_ns = drawn.time_ns;
  head.tag = tag;
  head.is_output = is_output;
  return head;
}

/// COLLECTIVE. The failure, the same on every rank.
std::optional<Failure> Writer::begin(std::uint64_t expected_bytes) {
  Checkpoint& checkpoint = *checkpoint_;
  const std::shared_ptr<const format::Layout>& layout = pattern().layout;
  if (layout) expected_bytes = std::max(expected_bytes, layout->file_size);
  const std::array planned{store::PlannedFile{store::FileKind::container, expected_bytes}};
  return checkpoint.seal_transaction.begin_on_all_ranks(planned, [&] {
    checkpoint.draft = &checkpoint.seal_transaction.begin_unsized_file(
        store::FileKind::container, {checkpoint.commit.id, {}}, checkpoint.commit.generation, expected_bytes);
    checkpoint.container =
        std::make_unique<format::ContainerWriter>(checkpoint.draft->file(), layout, uses_.copy_threads);
  });
}

std::optional<Failure> Writer::check_writing(std::string_view call) const {
  return uses_.lifecycle.check_phase(call, Phase::writing, "create");
}

Status Writer::remember(Failure failure) {
  failure.rank = uses_.group.rank();
  const std::lock_guard guard(mutex_);
  if (checkpoint_ && !checkpoint_->first_failure) checkpoint_->first_failure = failure;
  return failure;
}

Status Writer::refuse(const Failure& failure) {
  if (auto wrong = check_writing("save")) return *wrong;
  return remember(failure);
}

Writer::Committed Writer::commit(std::optional<Level> level) {
  auto local = uses_.lifecycle.check_phase(comm::Call::commit, {Phase::writing});
  if (!local) local = uses_.pipeline.waits().failure();
  // The largest of all ranks counts.
  enum Snapshots : std::uint64_t { nothing_on_devices, none, none_of_new_regions, some };
  const Snapshots mine = !checkpoint_                                                      ? nothing_on_devices
                         : !checkpoint_->on_device.empty()                                 ? some
                         : checkpoint_->has_new_regions                                    ? none_of_new_regions
                         : checkpoint_->might_have_snapshots || checkpoint_->first_failure ? none
                                                                                           : nothing_on_devices;
  const std::uint64_t snapshots =
      comm::begin_call(uses_.group, comm::Call::commit, fnv1a(checkpoint_ ? checkpoint_->commit.tag : ""), local, mine);
  if (snapshots == none_of_new_regions) log_seal_reason(SealReason::structure);
  if (snapshots == nothing_on_devices) log_seal_reason(SealReason::host);
  const double begin_s = uses_.clock.seconds();
  const double before_s = checkpoint_->blocked_s;
  pipeline::CommitBytes bytes;
  {
    const pipeline::BackgroundPause::Guard guard(
        uses_.pause);  // every rank is in here, and none of them waits for its worker
    save_remaining();
    if (checkpoint_->takes_snapshots) uses_.copies.free_unused();  // of regions that have other sizes now
    // A checkpoint that is to reach a level, as the last one of a job, may turn out only after create to be the last.
    if (snapshots == some && !level && agree_on_snapshot()) return commit_snapshot(begin_s);
    finish();
    bytes.own = checkpoint_->container->container_bytes();
    bytes.total = uses_.group.sum(bytes.own);
    seal();
  }
  if (!checkpoint_->commit.is_output) uses_.markers.mark_committed(checkpoint_->commit.id);
  const auto blocked_s = [&] { return before_s + uses_.clock.seconds() - begin_s; };
  const pipeline::CommitProgress progress = uses_.pipeline.submit(checkpoint_->commit, {bytes, blocked_s()}, level);
  checkpoint_.reset();
  // A later start of the run has taken over: this commit stands, and nothing may follow it.
  const std::optional<Failure> not_flushed = progress.stage_failure(Level::persistent);
  if (not_flushed && not_flushed->code == ErrorCode::busy) uses_.lifecycle.die(not_flushed->message);
  return {.blocked_s = blocked_s(), .in_stages_s = progress.in_stages_s};
}

std::span<const std::byte> Writer::committed(std::string_view name) const {
  const std::ptrdiff_t position = last_ ? last_layout_->find_position(name) : -1;
  if (position < 0 || uses_.pipeline.waits().wait_until_sealed()) return {};
  const format::StoredRegion& region = last_layout_->regions[static_cast<std::size_t>(position)];
  std::span<const std::byte> bytes;
  (void)attempt([&] {
    const store::Pin file(uses_.store.files, store::FileKind::container, uses_.group.logical_rank(), {*last_, {}});
    const std::span<const std::byte> all = file->mapped();
    if (!all.empty()) bytes = all.subspan(region.offset, region.size_bytes);
  });
  return bytes;
}

/// Local. Saves the attributes in logical rank 0's container, so that they are there again whatever level is reached.
void Writer::save_attributes() {
  if (!uses_.group.is_root()) return;
  std::size_t& room = pattern().attributes_room;
  if (checkpoint_->attributes.empty() && room == 0) return;
  std::string text = format::encode_attributes(checkpoint_->attributes);
  room = std::max(room, std::bit_ceil(std::max(text.size(), kAttributesRoomMin)));
  text.resize(room, ' ');
  require_present(text.size());
  checkpoint_->container->add({format::kAttributesName, DataType::opaque, Shape{text.size()}, {}, false},
                              std::as_bytes(std::span(text)));
}

/// COLLECTIVE. Costs one all-reduce as long as no rank's structure changes and replicated regions are equal.
void Writer::check_global_arrays(const std::shared_ptr<const format::Layout>& layout) {
  const bool is_new = layout != pattern().layout;
  const arrays::NameBits names = is_new ? arrays::shared_names(layout->regions) : pattern().shared_names;
  const arrays::Replicas replicas = replicas_of(*checkpoint_, *layout);
  const auto compared = arrays::compare_containers(uses_.group, is_new, names, arrays::digest_of(replicas));
  if (compared.names) {
    const auto mine = arrays::shared_regions(layout->regions);
    const auto own = arrays::own_regions_among(*compared.names, layout->regions);
    const auto homed = arrays::GlobalArrays::exchange(uses_.group, mine, own);
    abort_if_failed(checkpoint_->seal_transaction.vote(homed.check()));
    pattern().shared_names = names;
  }
  pattern().has_replicas = compared.has_replicas;
  if (compared.replicas_are_equal) return;
  abort_if_failed(checkpoint_->seal_transaction.vote(arrays::find_difference(uses_.group, replicas)));
}

/// Local. Of a container that is finished.
arrays::Replicas Writer::replicas_of(const Checkpoint& checkpoint, const format::Layout& layout) {
  return {layout.regions, [&](std::size_t position) { return checkpoint.container->checksums(position); }};
}

/// Local. Adds what the application does not save itself: routed files, attributes.
void Writer::save_remaining() {
  if (checkpoint_->first_failure) return;
  auto failure = attempt([&] {
    collect_routed_files();
    save_attributes();
    checkpoint_->draft->file().require_present();
  });
  if (failure) (void)remember(std::move(*failure));
}

/// Local. All but the seal. `between_regions` is called before each region that is still only on a device.
std::shared_ptr<const format::Layout> Writer::finish_container(const Uses& uses, Checkpoint& checkpoint, bool straight,
                                                               const std::function<void()>& between_regions) {
  for (const DeviceRegion& region : checkpoint.on_device) {
    between_regions();
    with_region_name(region.spec.name, [&] {
      checkpoint.container->fill_claimed_region(region.spec, uses.staging, region.copy.span(), straight);
    });
  }
  checkpoint.on_device.clear();
  checkpoint.draft->file().require_present();
  std::shared_ptr<const format::Layout> layout = checkpoint.container->finish();
  format::Superblock superblock;
  superblock.commit = checkpoint.commit;
  superblock.logical_rank = uses.group.logical_rank();
  checkpoint.draft->head() = checkpoint.container->make_sealed_head(superblock);
  return layout;
}

/// COLLECTIVE. Everything that can fail but the seal.
void Writer::finish() {
  Checkpoint& checkpoint = *checkpoint_;
  std::optional<Failure> local = checkpoint.first_failure;
  std::shared_ptr<const format::Layout> layout;
  if (!local)
    local = attempt([&] { layout = finish_container(uses_, checkpoint, pattern().mostly_of_devices, [] {}); });
  abort_if_failed(checkpoint.seal_transaction.vote_ready(local));
  check_global_arrays(layout);
  pattern().layout = last_layout_ = std::move(layout);
}

/// COLLECTIVE. From here on it is a commit. Whoever times out here throws and leaves its seal.
void Writer::seal() {
  abort_if_failed(checkpoint_->seal_transaction.write_seals());
  checkpoint_->draft = nullptr;
  last_ = checkpoint_->commit.id;
  pattern().mostly_of_devices = 2 * checkpoint_->device_bytes >= checkpoint_->container->container_bytes();
  uses_.ledger.add_commit(checkpoint_->commit);
  uses_.lifecycle.move_to(Phase::idle);
  checkpoint_->routed.drop();
}

/// After a vote on the container: if any rank failed, all have given it up.
void Writer::abort_if_failed(const std::optional<Failure>& failure) {
  if (!failure) return;
  abort_checkpoint();
  throw Error(*failure);
}

void Writer::abandon() {
  comm::begin_call(uses_.group, comm::Call::abandon, 0,
                   uses_.lifecycle.check_phase(comm::Call::abandon, {Phase::writing}));
  abort_checkpoint();
}

/// Local. Frees what create took; never throws, because what failed before is what is to be reported.
void Writer::abort_checkpoint() {
  checkpoint_->routed.drop();
  checkpoint_->container.reset();
  checkpoint_->seal_transaction.abort();
  if (const auto& failure = checkpoint_->seal_transaction.discard_failure()) {
    uses_.log.warning("an unfinished container could not be removed: " + to_string(*failure));
  }
  checkpoint_.reset();
  uses_.lifecycle.move_to(Phase::idle);
}

}  // namespace kedge::engine
