#include "engine/reader.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "comm/calls.hpp"
#include "commits/commit_selection.hpp"
#include "engine/check_load_target.hpp"
#include "engine/describe_opened.hpp"
#include "engine/device_memory.hpp"
#include "engine/store_loss.hpp"
#include "format/attributes.hpp"
#include "kedge/state.hpp"

namespace kedge::engine {

std::optional<Tag> Reader::open(const Selection& selection, Newer newer, recovery::Reading reading) {
  const double begin_s = uses_.clock.seconds();
  std::optional<Failure> local = uses_.lifecycle.check_phase(comm::Call::open, {Phase::idle});
  if (!local) local = commits::check_selection(selection);
  if (!local) local = uses_.pipeline.waits().wait_until_idle(pipeline::DeferredWorkPolicy::drop).failure;
  if (uses_.markers.is_marked_damaged()) reading = recovery::Reading::all_in_open;
  reading = static_cast<recovery::Reading>(comm::begin_call(uses_.group, comm::Call::open,
                                                            commits::hash_selection(selection, newer), local,
                                                            static_cast<std::uint64_t>(reading)));
  if (const auto* source = std::get_if<Source>(&selection)) return open_source(*source, begin_s);

  uses_.recreation.run();
  std::optional<recovery::Opened> opened = uses_.recovery.open(selection, newer, reading);
  while (opened && !try_to_pin(*opened)) opened = uses_.recovery.open(selection, newer, reading);
  if (!opened || !opened->are_containers_unread)
    uses_.recovery.recover_outputs();  // output rescue may write over files that an older
                                       // commit needs
  if (!opened) {
    uses_.pipeline.start_without_commit(false);
    return std::nullopt;
  }
  if (!opened->commit.is_output) uses_.markers.mark(opened->commit.id);
  if (newer == Newer::discard) uses_.pipeline.snapshots().ignore_lost();
  if (!opened->are_containers_unread) continue_from(*opened, false);
  count_opened(opened->mine.source == RecoverySource::fetched ? opened->mine.container_bytes : 0, begin_s);
  log_opened(*opened, begin_s);
  return opened->commit.tag;
}

/// COLLECTIVE. The work that the open leaves begins. `reads_behind`: it verifies this rank's container, too.
void Reader::continue_from(const recovery::Opened& opened, bool reads_behind) {
  if (opened.commit.world_size != uses_.group.world_size())
    uses_.pipeline.continue_from_other_ranks(opened.commit, opened.persistent, opened.unread);
  else
    uses_.pipeline.continue_from(opened.commit, opened.persistent,
                                 {.others = opened.unread, .container = reads_behind});
}

/// COLLECTIVE. Nothing of it comes into this run's stores: it belongs to another run.
std::optional<Tag> Reader::open_source(const Source& source, double begin_s) {
  recovery::OpenedSource opened = sources_.open(source);
  open_ = make_checkpoint();
  open_->parent_before = uses_.ledger.known().parent_id;
  open_->source_prefix = source.prefix;
  open_->source_prefix_reader = std::move(opened.prefix);
  open_->prefix = open_->source_prefix_reader.get();
  open_->directory = std::move(opened.directory);
  open_->holdings = std::move(opened.holdings);
  uses_.ledger.set_parent(opened.commit.id);
  CheckpointInfo info;
  static_cast<CommitHead&>(info) = opened.commit;
  info.total_bytes = opened.total_bytes;
  info.source = RecoverySource::fetched;
  begin_reading(std::move(info));
  count_opened(0, begin_s);  // a Source is read in place
  if (uses_.group.is_root()) {
    uses_.log.info(describe_opened(source.prefix, opened.commit, opened.total_bytes, uses_.clock.seconds() - begin_s));
  }
  return opened.commit.tag;
}

std::unique_ptr<OpenCheckpoint> Reader::make_checkpoint() const {
  return std::make_unique<OpenCheckpoint>(uses_.store.routed_directories, uses_.file_system, uses_.log);
}

/// COLLECTIVE. Takes hold of the containers that this process reads. False if one was damaged or lost since it was
/// found: it is to be recovered again, or another commit opened.
bool Reader::try_to_pin(const recovery::Opened& opened) {
  open_ = make_checkpoint();
  const auto failure = uses_.group.try_on_all_ranks([&] {
    if (opened.are_containers_unread) open_->unproven = std::make_unique<UnverifiedContainers>(opened);
    open_->prefix = &uses_.prefix;
    open_->directory = opened.directory;
    if (opened.commit.world_size != uses_.group.world_size()) {
      open_->holdings = uses_.recovery.open_holdings(opened, uses_.copy_threads);
      return;
    }
    open_->holdings.push_back(recovery::Holding::in_store(uses_.store.files, opened.commit.id,
                                                          uses_.group.logical_rank(), uses_.copy_threads));
  });
  if (failure) {
    open_.reset();
    if (!is_lost(*failure)) throw Error(*failure);
    uses_.recovery.mark_damaged(opened.commit, *failure);
    return false;
  }
  uses_.ledger.mark_opened(opened.commit, opened.persistent, !opened.are_containers_unread);
  CheckpointInfo info;
  static_cast<CommitHead&>(info) = opened.commit;
  info.total_bytes = opened.total_bytes;
  if (opened.totals.fetched + opened.totals.on_prefix != 0) info.source = RecoverySource::fetched;
  else if (opened.totals.rebuilt != 0) info.source = RecoverySource::rebuilt;
  else if (opened.totals.moved != 0) info.source = RecoverySource::moved;
  begin_reading(std::move(info));
  return true;
}

/// Local.
void Reader::count_opened(std::uint64_t fetched_bytes, double begin_s) const {
  uses_.metrics.record_open(*info_, {info_->total_bytes, fetched_bytes, info_->source},
                            uses_.clock.seconds() - begin_s);
}

/// COLLECTIVE. The lines that say where the checkpoint came from.
void Reader::log_opened(const recovery::Opened& opened, double begin_s) const {
  const Log& log = uses_.log;
  if (!opened.mine.summary.empty()) {
    log.info(compose("{}, {}", opened.mine.summary, human_bytes(opened.mine.container_bytes)));
  }
  if (!uses_.group.is_root()) return;
  const double age_s = static_cast<double>(uses_.clock.wall_ns() - opened.commit.time_ns) * 1e-9;
  log.info(describe_opened(opened, uses_.group.world_size(), age_s, uses_.clock.seconds() - begin_s));
  if (const std::string not_found = describe_not_found(opened); !not_found.empty()) log.info(not_found);
}

/// COLLECTIVE. From now on it is open.
void Reader::begin_reading(CheckpointInfo info) {
  info.logical_rank = uses_.group.logical_rank();
  info_ = std::move(info);
  uses_.lifecycle.move_to(Phase::reading);
  share_attributes();
}

/// COLLECTIVE. Sends the attributes in logical rank 0's container to every rank. Damaged ones are no reason not to
/// open: close will say so.
void Reader::share_attributes() {
  std::optional<std::string> mine;
  if (!open_->holdings.empty() && open_->holdings.front().logical_rank().value == 0) {
    auto failure = attempt([&] { mine = open_->holdings.front().container().attributes(); });
    if (failure) (void)remember(std::move(*failure));
  }
  const std::string text = uses_.group.text_of_lowest_rank(mine);
  if (text.empty()) return;
  auto failure = attempt([&] { info_->attributes = format::decode_attributes(text, "attributes"); });
  if (failure) (void)remember(std::move(*failure));
}

std::vector<RegionInfo> Reader::regions() const {
  if (const auto failure = check_reading("regions")) throw Error(*failure);
  std::vector<RegionInfo> list;
  for (const format::StoredRegion& placed : container().regions()) {
    if (format::is_attributes_region(placed.spec)) continue;  // info() has them
    if (format::is_empty_directory(placed.spec)) continue;    // they come with the directory that was routed
    list.push_back({placed.spec.name, placed.spec.dtype, placed.spec.shape, placed.spec.placement, placed.size_bytes,
                    placed.spec.is_routed, placed.spec.members});
  }
  return list;
}

void Reader::record_unloaded(const State& state) {
  constexpr std::size_t kListedMax = 8;
  (void)attempt([&] {
    std::set<std::string> loaded;
    for (const State::Item& item : state.items()) loaded.insert(item.name);
    std::string list;
    std::size_t unread = 0;
    for (const RegionInfo& region : regions()) {
      if (loaded.contains(region.name) || ++unread > kListedMax) continue;
      list += (list.empty() ? "" : ", ") + region.name;
    }
    if (unread > kListedMax) list += compose(" and {} more", unread - kListedMax);
    if (unread > 0) open_->unread = std::move(list);
  });
}

/// COLLECTIVE.
void Reader::log_unread(const std::optional<std::string>& mine) const {
  const std::string list = uses_.group.text_of_lowest_rank(mine);
  if (list.empty() || !uses_.group.is_root()) return;
  uses_.log.warning(compose(
      "{} has regions that this program's State does not have: {}; they are not loaded, and the next checkpoint "
      "will not have them",
      info_->tag, list));
}

CheckpointInfo Reader::info() const {
  if (!info_) throw Error(ErrorCode::bad_state, "no checkpoint was opened; call open first");
  return *info_;
}

std::optional<Failure> Reader::check_reading(std::string_view call) const {
  return uses_.lifecycle.check_phase(call, Phase::reading, "open");
}

Status Reader::refuse(const Failure& failure) {
  if (auto wrong = check_reading("load")) return *wrong;
  return remember(failure);
}

Status Reader::remember(Failure failure) {
  failure.rank = uses_.group.rank();
  const std::lock_guard guard(mutex_);
  if (!open_->first_failure) open_->first_failure = failure;
  return failure;
}

void Reader::remember_shared(const Failure& failure) {
  if (std::max(failure.rank, 0) == uses_.group.rank()) (void)remember(failure);
}

const format::StoredRegion& Reader::region(std::string_view name) const {
  const format::StoredRegion* placed = container().find_region(name);
  if (placed == nullptr) {
    throw Error(ErrorCode::not_found,
                compose("{} has no region '{}' on rank {}; regions() and kedge show list its regions", info_->tag, name,
                        uses_.group.rank()));
  }
  return *placed;
}

const format::ContainerReader& Reader::container() const {
  if (!is_of_other_ranks()) return open_->holdings.front().container();
  throw Error(
      ErrorCode::mismatch,
      compose("{} was saved by {} ranks and this job has {}: load_all loads what a rank asks for, and State does "
              "so by itself; or start the job with {} ranks",
              info_->tag, info_->world_size, uses_.group.world_size(), info_->world_size));
}

bool Reader::is_of_other_ranks() const noexcept { return info_->world_size != uses_.group.world_size(); }

const OpenCheckpoint& Reader::checkpoint(std::string_view call) const {
  if (const auto failure = check_reading(call)) throw Error(*failure);
  return *open_;
}

Status Reader::load(std::string_view name, const MutableRegion& target, const Placement& placement) {
  if (auto failure = check_reading("load")) return *failure;
  auto failure = attempt([&] {
    const format::StoredRegion& placed = region(name);
    if (const auto wrong = check_load_target(info_->tag, placed, target, placement)) throw Error(*wrong);
    const auto memory = with_region_name(placed.spec.name,
                                         [&] { return find_device_memory(uses_.staging, target, placed.size_bytes); });
    const pipeline::BackgroundPause::Guard guard(uses_.pause);  // as while saving
    open_->require_present();
    copy(placed, {static_cast<std::byte*>(target.data), placed.size_bytes}, memory);
    if (open_->unproven) open_->unproven->mark_read(placed);
  });
  return failure ? remember(std::move(*failure)) : Status{};
}

/// Local. To the host, or to a device.
void Reader::copy(const format::StoredRegion& placed, std::span<std::byte> on_host,
                  const std::optional<device::Span>& on_device) const {
  if (!on_device) container().read(placed, on_host);
  else with_region_name(placed.spec.name, [&] { container().read(placed, uses_.staging, *on_device); });
}

/// COLLECTIVE. On return the checkpoint is verified, or the worker is to verify it; throws corrupt on all ranks if it
/// is damaged on any: then nothing has been given up for it, and the next open reads all that counts.
void Reader::confirm_intact() {
  if (!open_->unproven) return;
  constexpr std::uint64_t kReadAtOnceBytes = std::uint64_t{16} << 20U;
  UnverifiedContainers& unproven = *open_->unproven;
  const recovery::Opened& opened = unproven.opened();
  // Regions that failed to load are read again now: it may be the container's fault. So are all regions if outputs may
  // have to be rebuilt, which may write over what an older commit needs.
  enum Rest : std::uint64_t { is_small, is_large, is_needed_now };
  const bool is_large_here =
      uses_.pipeline.waits().is_in_background() && unproven.unread_bytes(open_->holdings) > kReadAtOnceBytes;
  const bool cannot_wait =
      is_of_other_ranks() || open_->first_failure.has_value() || !uses_.ledger.known().outputs_to_flush().empty();
  const Rest mine = cannot_wait ? is_needed_now : is_large_here ? is_large : is_small;
  const bool reads_behind = uses_.group.max(mine) == is_large;
  if (reads_behind) checked_ = "the rest is checked in the background";
  std::optional<Failure> damage;
  if (open_->first_failure && open_->first_failure->code == ErrorCode::corrupt) {
    damage = open_->first_failure;
  } else if (!reads_behind) {
    damage = attempt([&] {
      open_->require_present();
      unproven.verify_unread(open_->holdings);
    });
  }
  if (const auto failure = uses_.group.vote(damage)) {
    Failure as_damage = *failure;
    as_damage.code = ErrorCode::corrupt;
    if (damage) damage->code = ErrorCode::corrupt;
    mark_damage(damage);
    uses_.recovery.mark_damaged(opened.commit, as_damage);
    if (!opened.commit.is_output) uses_.ledger.set_parent(opened.commit.parent_id);
    release();
    throw Error(as_damage);
  }
  if (!reads_behind) uses_.ledger.mark_verified(opened.commit.id);
  uses_.recovery.recover_outputs();
  continue_from(opened, reads_behind);
}

void Reader::close() {
  comm::begin_call(uses_.group, comm::Call::close, 0, uses_.lifecycle.check_phase(comm::Call::close, {Phase::reading}));
  const bool is_all_checked = !open_->is_source() && uses_.verify != Verify::headers;
  checked_ = is_all_checked ? "and so is the rest" : "the rest is not";
  confirm_intact();
  const std::optional<Failure> local = open_->first_failure;
  const std::optional<std::string> unread = open_->unread;
  const bool of_this_run = !open_->is_source();
  const std::string source_prefix = open_->source_prefix;
  const Id128 parent_before = open_->parent_before;
  release();
  const auto [failure, is_unread] = uses_.group.vote_with_request(local, unread.has_value());
  if (is_unread) log_unread(unread);
  if (!failure) {
    if (of_this_run) uses_.recovery.mark_intact(info_->id);
    return;
  }
  if (failure->code == ErrorCode::corrupt) {
    if (of_this_run) {
      mark_damage(local);
      uses_.recovery.mark_damaged(*info_, *failure);
      if (!info_->is_output) uses_.ledger.set_parent(info_->parent_id);
    } else {
      sources_.exclude(source_prefix, info_->id, "it was found damaged while it was loaded: " + to_string(*failure));
      uses_.ledger.set_parent(parent_before);
    }
  }
  throw Error(*failure);
}

void Reader::log_restored(double took_s) const {
  if (!uses_.group.is_root()) return;
  uses_.log.info(compose("restored {} ({}): every loaded byte is verified, {}; took {} in all", info_->tag,
                         human_bytes(info_->total_bytes), checked_, human_seconds(took_s)));
}

/// Local. For the start that comes after this one, if it does not read every byte by itself.
void Reader::mark_damage(const std::optional<Failure>& mine) const {
  if (mine && mine->code == ErrorCode::corrupt)
    uses_.markers.mark_damage(compose("{}: {}", info_->tag, to_string(*mine)));
}

/// Local; never throws.
void Reader::release() {
  open_->routed.drop();
  open_.reset();
  uses_.lifecycle.move_to(Phase::idle);
}

}  // namespace kedge::engine
