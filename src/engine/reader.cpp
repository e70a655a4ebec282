#include "engine/reader.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "engine/protector.hpp"
#include "engine/stock.hpp"
#include "format/attributes.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"

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

void log_passed_over(const Log& log, const recovery::Survey& survey, const Choice& choice) {
  bool told = survey.unreadable.empty();
  for (const std::size_t index : choice.passed_over) {
    const recovery::Candidate& candidate = survey.candidates[index];
    log.warning(compose("passed over {} (generation {}): {}", candidate.commit.tag, candidate.commit.generation,
                        candidate.reason));
    told = told || candidate.reason.find(survey.unreadable) != std::string::npos;
  }
  // Damaged so that not even its tag is known: it may have been the newest.
  if (!told) log.warning("passed over a container that tells of no commit: " + survey.unreadable);
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

  // What was not read before made a recovery fail: only a whole look finds what is to be rebuilt instead.
  Look look = context_.options.open.verify == Verify::all ? Look::what_is_used : Look::headers;
  if (!failed_once_.empty()) look = Look::all_that_counts;
  while (true) {
    const recovery::Agreement agreement = take_stock(context_, look, &selection);
    const recovery::Survey& survey = agreement.survey;
    const Choice choice = choose(survey, selection, context_.commits_exist);
    if (context_.is_root()) log_passed_over(context_.log, survey, choice);
    refuse_if_lost(choice, selection);
    if (!choice.chosen) return std::nullopt;
    const recovery::Candidate& chosen = survey.candidates[*choice.chosen];
    const std::optional<recovery::Recovered> recovered = try_to_recover(agreement, chosen, look);
    look = Look::all_that_counts;
    if (!recovered) continue;  // with what was learned
    if (newer == Newer::discard) discard_newer(survey, chosen);
    context_.add({chosen.commit, Level::local, {}, chosen.persistent});
    take_hold(chosen);
    // A job that never lives for N commits must get something to the prefix all the same.
    context_.unflushed = chosen.persistent ? 0 : context_.options.persistent.every;
    context_.note_first_commit(chosen.commit.id);
    restore_protection(context_, {chosen.commit, Level::local, {}, false});
    context_.retire();
    tell(chosen, *recovered, begin_s);
    return chosen.commit.tag;
  }
}

void Reader::refuse_if_lost(const Choice& choice, const Selection& selection) {
  if (choice.lost.empty()) return;
  if (std::holds_alternative<Latest>(selection)) context_.commits_lost = true;  // not because one tag is
  throw Error(
      ErrorCode::unrecoverable,
      compose("run '{}' has commits and '{}' cannot be had again: {}. {}to start from zero, give the job another "
              "run name (option run)",
              context_.run, to_string(selection), choice.lost,
              choice.other_ranks ? "Start it with as many ranks as saved it, or, "
                                 : "Bring back the nodes that held it, or, "));
}

/// A node may be lost, or a bit flip, between the look and the recovery, and what a rebuild reads is checked no sooner.
/// Then there is another look; a commit that fails twice after a look at all that counts is given up for an older one.
/// Throws no_space and timeout, which no other commit would cure.
std::optional<recovery::Recovered> Reader::try_to_recover(const recovery::Agreement& agreement,
                                                          const recovery::Candidate& chosen, Look look) {
  try {
    const comm::Group group(*context_.comm, context_.patience());
    const recovery::Orders orders = recovery::give_orders(group, agreement.homes, chosen);
    recovery::RecoverySettings settings;
    settings.durable = context_.options.store.durable;
    settings.pieces = piece_settings(context_.options);
    settings.file_system = context_.environment.file_system.get();
    if (!chosen.directory.empty()) settings.tag_directory = fs::join(context_.prefix_path, chosen.directory);
    return recovery::recover(group, *context_.store, orders, settings);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::timeout || error.code() == ErrorCode::no_space) throw;
    if (context_.is_root()) {
      context_.log.warning(compose("{} (generation {}) could not be recovered: {}; looking again at every byte of it",
                                   chosen.commit.tag, chosen.commit.generation, to_string(error.failure())));
    }
    if (!chosen.directory.empty()) require_prefix(chosen);
    if (look != Look::all_that_counts) return std::nullopt;
    const bool first_time = failed_once_.insert(chosen.commit.id).second;
    if (!first_time) context_.excluded[chosen.commit.id] = "it could not be recovered: " + to_string(error.failure());
    return std::nullopt;
  }
}

/// COLLECTIVE. Throws io if some rank does not see what rank 0 saw on the prefix: an older commit would be no answer.
void Reader::require_prefix(const recovery::Candidate& chosen) const {
  const std::string manifest = fs::join(fs::join(context_.prefix_path, chosen.directory), persist::kManifestFile);
  comm::throw_if(context_.vote(attempt([&] {
    if (context_.environment.file_system->status(manifest)) return;
    throw Error(
        Failure{ErrorCode::io,
                "this rank does not see the manifest that rank 0 sees; check the mount of the prefix on its node", -1,
                manifest, 0});
  })));
}

/// COLLECTIVE. The lines that say where the checkpoint came from.
void Reader::tell(const recovery::Candidate& chosen, const recovery::Recovered& mine, double begin_s) {
  const double took_s = context_.environment.clock->seconds() - begin_s;
  if (!mine.story.empty()) {
    context_.log.info(compose("{}, {}", mine.story, human_bytes(mine.container_bytes)));
  }
  const bool moved = mine.source == RecoverySource::moved;
  const bool rebuilt = mine.source == RecoverySource::rebuilt;
  const bool fetched = mine.source == RecoverySource::fetched;
  std::array<std::uint64_t, 4> sums = {moved ? 1U : 0U, rebuilt ? 1U : 0U, mine.container_bytes, fetched ? 1U : 0U};
  context_.comm->all_reduce(sums, Reduction::sum, context_.deadline());
  if (sums[3] != 0) info_->source = RecoverySource::fetched;
  else if (sums[1] != 0) info_->source = RecoverySource::rebuilt;
  else if (sums[0] != 0) info_->source = RecoverySource::moved;
  if (!context_.is_root()) return;
  const double age_s = static_cast<double>(context_.environment.clock->wall_ns() - chosen.commit.time_ns) * 1e-9;
  const std::string again = sums[2] == 0 ? "" : compose(" ({})", human_bytes(sums[2]));
  context_.log.info(
      compose("opened {} (generation {}, {} old): {} containers in place, {} moved, {} rebuilt, {} fetched{}; {} in "
              "all, took {}",
              chosen.commit.tag, chosen.commit.generation, human_seconds(std::max(age_s, 0.0)),
              chosen.commit.world_size - sums[0] - sums[1] - sums[3], sums[0], sums[1], sums[3], again,
              human_bytes(chosen.total_bytes), human_seconds(took_s)));
}

/// The commits that are left behind are recorded first: a crash after that finds the older one, as asked.
void Reader::discard_newer(const recovery::Survey& survey, const recovery::Candidate& chosen) {
  std::optional<Failure> local;
  if (context_.catalog) {
    local = attempt([&] {
      for (const auto& candidate : survey.candidates) {
        if (candidate.commit.generation > chosen.commit.generation) context_.catalog->discard(candidate.commit.id);
      }
      for (const auto& entry :
           persist::list_tags(*context_.environment.file_system, context_.catalog->prefix()).entries) {
        const bool newer = entry.commit.run_id == context_.run_id && entry.commit.generation > chosen.commit.generation;
        if (newer) context_.catalog->discard(entry.commit.id);
      }
    });
  }
  comm::throw_if(context_.vote(local));
  context_.forget([&](const Commit& commit) { return commit.head.generation > chosen.commit.generation; });
}

void Reader::take_hold(const recovery::Candidate& chosen) {
  open_ = std::make_unique<OpenCheckpoint>();
  open_->parent_before = context_.parent_commit_id;
  const auto local = attempt([&] {
    context_.parent_commit_id = chosen.commit.id;
    open_->file = &context_.store->pin(store::FileKind::container, context_.logical_rank(), {chosen.commit.id, {}});
    open_->container = std::make_unique<format::ContainerReader>(open_->file->bytes(), open_->file->size_bytes(),
                                                                 open_->file->path(), context_.copy_threads);
    context_.retire();
  });
  if (const auto failure = context_.vote(local)) {
    context_.parent_commit_id = open_->parent_before;
    release();
    throw Error(*failure);
  }
  CheckpointInfo info{chosen.commit, {}, RecoverySource::in_place, chosen.total_bytes, {}};
  context_.commits_lost = false;
  hold(std::move(info));
}

/// COLLECTIVE. From now on it is open.
void Reader::hold(CheckpointInfo info) {
  info.logical_rank = context_.logical_rank();
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
  const bool of_this_run = open_->source == nullptr;
  const std::string source_prefix = open_->source_prefix;
  const Id128 parent_before = open_->parent_before;
  release();
  if (const auto failure = context_.vote(local)) {
    if (failure->code == ErrorCode::corrupt) {
      const std::string why = "it was found damaged while it was loaded";
      if (of_this_run) context_.excluded[info_->id] = why;
      else context_.excluded_sources[{source_prefix, info_->id}] = why;
      context_.parent_commit_id = of_this_run ? info_->parent_id : parent_before;
      if (of_this_run) exclude();
    }
    throw Error(*failure);
  }
}

/// What was opened is damaged: the one before must not be overwritten now because this one is newer.
void Reader::exclude() {
  context_.commits_lost = true;
  context_.forget([&](const Commit& commit) { return commit.head.id == info_->id; });
  context_.took_stock = false;
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
