#include "engine/reader.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "engine/protector.hpp"
#include "format/attributes.hpp"

namespace kedge::engine {
namespace {

Failure failure_of(ErrorCode code, std::string message) { return Failure{code, std::move(message), -1, {}, 0}; }

/// Nothing if the caller's memory is what the region needs.
std::optional<Failure> mismatch(const Tag& tag, const format::PlacedRegion& saved, const MutableRegion& wanted) {
  const format::RegionSpec& spec = saved.spec;
  if (spec.routed) {
    return failure_of(ErrorCode::mismatch,
                      compose("region '{}' of {} is a routed file; get it with route_in", spec.name, tag));
  }
  if (wanted.dtype != spec.dtype) {
    return failure_of(ErrorCode::mismatch,
                      compose("region '{}' of {} was saved as {} and is loaded as {}; load it as it was saved",
                              spec.name, tag, to_string(spec.dtype), to_string(wanted.dtype)));
  }
  if (wanted.shape != spec.shape) {
    return failure_of(
        ErrorCode::mismatch,
        compose("region '{}' of {} was saved with shape {} and is loaded with shape {}; regions() tells the "
                "shapes before loading, and another program in the same directory needs another run name (option run)",
                spec.name, tag, to_string(spec.shape), to_string(wanted.shape)));
  }
  if (wanted.data == nullptr && saved.size_bytes != 0) {
    return failure_of(ErrorCode::invalid_argument, compose("region '{}' has no memory (null pointer)", spec.name));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Tag> Reader::open(const Selection& selection, Newer newer) {
  Clock& clock = *context_.environment.clock;
  const double begin_s = clock.seconds();
  std::optional<Failure> local = context_.wrong_phase(Call::open, {Phase::idle});
  if (const auto* tag = std::get_if<Tag>(&selection); tag != nullptr && !local) local = check_tag(*tag);
  if (const auto* before = std::get_if<Before>(&selection); before != nullptr && !local) local = check_tag(before->tag);
  context_.enter(Call::open, hash_of(selection, newer), local);
  if (const auto* source = std::get_if<Source>(&selection)) return open_source(*source, begin_s);

  const std::optional<recovery::Opened> opened = context_.recovery->open(selection, newer);
  if (!opened) return std::nullopt;
  take_hold(*opened);
  // A job that never lives for N commits must get something to the prefix all the same.
  context_.unflushed = opened->persistent ? 0 : context_.options.persistent.every;
  context_.note_first_commit(opened->commit.id);
  restore_protection(context_, {opened->commit, Level::local, {}, false});
  context_.retire();
  tell(*opened, begin_s);
  return opened->commit.tag;
}

/// COLLECTIVE. Nothing of it comes into this run's stores: it belongs to another run.
Tag Reader::open_source(const Source& source, double begin_s) {
  recovery::OpenedSource opened = context_.sources->open(source);
  open_ = std::make_unique<OpenCheckpoint>();
  open_->parent_before = context_.ledger.parent_id();
  open_->source_prefix = source.prefix;
  open_->source_bytes = std::move(opened.container.bytes);
  open_->container = std::move(opened.container.reader);
  context_.ledger.set_parent(opened.commit.id);
  hold({opened.commit, context_.logical_rank(), RecoverySource::fetched, opened.total_bytes, {}});
  if (context_.is_root()) {
    context_.log.info(compose("opened {} (generation {}) of {} as this run's beginning: {} containers, {}, took {}",
                              opened.commit.tag, opened.commit.generation, source.prefix, opened.commit.world_size,
                              human_bytes(opened.total_bytes),
                              human_seconds(context_.environment.clock->seconds() - begin_s)));
  }
  return opened.commit.tag;
}

/// The lines that say where the checkpoint came from.
void Reader::tell(const recovery::Opened& opened, double begin_s) {
  const double took_s = context_.environment.clock->seconds() - begin_s;
  const recovery::Recovered& mine = opened.mine;
  if (!mine.story.empty()) {
    context_.log.info(compose("{}, {}", mine.story, human_bytes(mine.container_bytes)));
  }
  const recovery::RecoveryTotals& totals = opened.totals;
  if (totals.fetched != 0) info_->source = RecoverySource::fetched;
  else if (totals.rebuilt != 0) info_->source = RecoverySource::rebuilt;
  else if (totals.moved != 0) info_->source = RecoverySource::moved;
  if (!context_.is_root()) return;
  const double age_s = static_cast<double>(context_.environment.clock->wall_ns() - opened.commit.time_ns) * 1e-9;
  const std::string again = totals.bytes == 0 ? "" : compose(" ({})", human_bytes(totals.bytes));
  context_.log.info(
      compose("opened {} (generation {}, {} old): {} containers in place, {} moved, {} rebuilt, {} fetched{}; {} in "
              "all, took {}",
              opened.commit.tag, opened.commit.generation, human_seconds(std::max(age_s, 0.0)),
              opened.commit.world_size - totals.moved - totals.rebuilt - totals.fetched, totals.moved, totals.rebuilt,
              totals.fetched, again, human_bytes(opened.total_bytes), human_seconds(took_s)));
}

void Reader::take_hold(const recovery::Opened& opened) {
  commits::Ledger& ledger = context_.ledger;
  open_ = std::make_unique<OpenCheckpoint>();
  open_->parent_before = ledger.parent_id();
  const bool was_lost = ledger.is_lost();
  ledger.open(opened.commit, opened.persistent);
  const auto local = attempt([&] {
    open_->file = &context_.store->pin(store::FileKind::container, context_.logical_rank(), {opened.commit.id, {}});
    open_->container = std::make_unique<format::ContainerReader>(open_->file->bytes(), open_->file->size_bytes(),
                                                                 open_->file->path(), context_.copy_threads);
    context_.retire();
  });
  if (const auto failure = context_.vote(local)) {
    ledger.set_parent(open_->parent_before);
    if (was_lost) ledger.lose();
    release();
    throw Error(*failure);
  }
  hold({opened.commit, context_.logical_rank(), RecoverySource::in_place, opened.total_bytes, {}});
}

/// COLLECTIVE. From now on it is open.
void Reader::hold(CheckpointInfo info) {
  info_ = std::move(info);
  context_.phase = Phase::reading;
  share_attributes();
}

/// COLLECTIVE. They lie in logical rank 0's container; every rank knows them. Damaged ones are no reason not to open:
/// close will say so.
void Reader::share_attributes() {
  std::string text;
  if (info_->logical_rank.value == 0) {
    auto failure = attempt([&] { text = open_->container->attributes(); });
    if (failure) (void)remember(std::move(*failure));
  }
  std::uint64_t bytes = text.size();
  context_.broadcast(bytes);
  text.resize(bytes);
  if (bytes == 0) return;
  context_.comm->broadcast(std::as_writable_bytes(std::span(text)), 0, context_.deadline());
  auto failure = attempt([&] { info_->attributes = format::decode_attributes(text, "attributes"); });
  if (failure) (void)remember(std::move(*failure));
}

std::vector<RegionInfo> Reader::regions() const {
  if (const auto failure = not_reading("regions")) throw Error(*failure);
  std::vector<RegionInfo> list;
  for (const format::PlacedRegion& placed : open_->container->regions()) {
    if (format::is_attributes(placed.spec)) continue;  // info() has them
    list.push_back({placed.spec.name, placed.spec.dtype, placed.spec.shape, placed.spec.placement, placed.size_bytes,
                    placed.spec.routed});
  }
  return list;
}

CheckpointInfo Reader::info() const {
  if (!info_) throw Error(ErrorCode::bad_state, "no checkpoint was opened; call open first");
  return *info_;
}

std::optional<Failure> Reader::not_reading(std::string_view call) const {
  return context_.wrong_phase(call, Phase::reading, "open");
}

Status Reader::remember(Failure failure) {
  failure.rank = context_.rank();
  const std::lock_guard guard(mutex_);
  if (!open_->first_failure) open_->first_failure = failure;
  return failure;
}

const format::PlacedRegion& Reader::region(std::string_view name) const {
  const format::PlacedRegion* placed = open_->container->find(name);
  if (placed == nullptr) {
    throw Error(ErrorCode::not_found, compose("{} has no region '{}' on rank {}; regions() lists what it has",
                                              info_->tag, name, context_.rank()));
  }
  return *placed;
}

/// A mapped file that was cut from outside is noticed before it is read; one on the prefix is read by calls.
void Reader::check_present() const {
  if (open_->file != nullptr) open_->file->check_present();
}

Status Reader::load(std::string_view name, const MutableRegion& target) {
  if (auto failure = not_reading("load")) return *failure;
  auto failure = attempt([&] {
    const format::PlacedRegion& placed = region(name);
    if (const auto wrong = mismatch(info_->tag, placed, target)) throw Error(*wrong);
    check_present();
    open_->container->read(placed, {static_cast<std::byte*>(target.data), placed.size_bytes});
  });
  return failure ? remember(std::move(*failure)) : Status{};
}

Routed Reader::route_in(std::string_view name) {
  if (auto failure = not_reading("route_in")) return {{}, *failure};
  std::string path;
  auto failure = attempt([&] {
    const format::PlacedRegion& placed = region(name);
    if (!placed.spec.routed) {
      throw Error(ErrorCode::mismatch,
                  compose("region '{}' of {} is no routed file; get it with load", name, info_->tag));
    }
    check_present();
    std::vector<std::byte> content(placed.size_bytes);
    open_->container->read(placed, content);
    {
      const std::lock_guard guard(mutex_);
      path = context_.store->routed_path();
      open_->extracted.push_back(path);
    }
    const auto file = context_.environment.file_system->create(path);
    if (!file) throw Error(Failure{ErrorCode::io, "the name for an extracted file is taken", -1, path, 0});
    file->reserve(content.size());
    file->copy_in(0, content, 0);
  });
  if (failure) return {{}, remember(std::move(*failure))};
  return {path, {}};
}

void Reader::close() {
  context_.enter(Call::close, 0, context_.wrong_phase(Call::close, {Phase::reading}));
  const std::optional<Failure> local = open_->first_failure;
  const bool of_this_run = open_->source_bytes == nullptr;
  const std::string source_prefix = open_->source_prefix;
  const Id128 parent_before = open_->parent_before;
  release();
  if (const auto failure = context_.vote(local)) {
    if (failure->code == ErrorCode::corrupt) {
      const std::string why = "it was found damaged while it was loaded";
      if (of_this_run) context_.ledger.exclude_opened(info_->id, why);
      else context_.sources->exclude(source_prefix, info_->id, why);
      context_.ledger.set_parent(of_this_run ? info_->parent_id : parent_before);
    }
    throw Error(*failure);
  }
}

/// Local; never throws.
void Reader::release() {
  if (open_->file != nullptr) context_.store->unpin(*open_->file);
  for (const std::string& path : open_->extracted) {
    if (const auto failure = attempt([&] { context_.environment.file_system->remove(path); })) {
      context_.log.warning("an extracted file could not be removed: " + to_string(*failure));
    }
  }
  open_.reset();
  context_.phase = Phase::idle;
}

}  // namespace kedge::engine
