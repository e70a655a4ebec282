#include "engine/stock.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "engine/prefix_look.hpp"
#include "engine/selection.hpp"
#include "recovery/orders.hpp"

namespace kedge::engine {
namespace {

// Each start counts from its own thousand thousands: a generation is greater than every one of earlier starts
// even when the stores that knew them are lost.
constexpr std::uint64_t kGenerationsPerIncarnation = 1'000'000;

/// What the stores say, sorted into what names a commit of this run and what does not.
struct Found {
  recovery::Holdings holdings;
  std::string unreadable;
  std::vector<Id128> strange;  ///< commits of another run
  std::uint64_t highest_generation = 0;
};

Found sort(const std::vector<store::Held>& files, const Id128& run_id) {
  Found found;
  for (const store::Held& held : files) {
    found.highest_generation = std::max(found.highest_generation, held.generation());
    if (held.kind == store::FileKind::manifest) continue;  // made anew if it is needed
    if (held.kind != store::FileKind::container) {
      // Parity only adds possibilities: what of it is damaged or another run's is as if it were not there.
      if (held.intact && held.set) found.holdings.set_files.push_back(*held.set);
      continue;
    }
    const bool of_this_run = held.superblock && held.superblock->commit.run_id == run_id;
    if (of_this_run && held.superblock->logical_rank == held.logical_rank) {
      found.holdings.containers.push_back(
          {held.superblock->commit, held.logical_rank, held.size_bytes, held.intact, held.damage});
      continue;
    }
    if (held.superblock && !of_this_run) found.strange.push_back(held.superblock->commit.id);
    if (!held.damage.empty() && found.unreadable.empty()) found.unreadable = held.damage;
  }
  return found;
}

/// COLLECTIVE. Candidates that the run record or this engine ruled out are not recoverable. The failure if the record
/// cannot be read: then some may have been ruled out that look well.
std::optional<Failure> rule_out(Context& context, recovery::Survey& survey) {
  std::vector<std::byte> discarded(survey.candidates.size());
  std::optional<Failure> local;
  if (context.catalog) {
    local = attempt([&] {
      for (std::size_t i = 0; i < discarded.size(); ++i) {
        discarded[i] = std::byte{context.catalog->is_discarded(survey.candidates[i].commit.id)};
      }
    });
  }
  auto failure = context.vote(local);
  if (failure) std::ranges::fill(discarded, std::byte{0});
  if (!discarded.empty()) context.comm->broadcast(discarded, 0, context.deadline());
  for (std::size_t i = 0; i < discarded.size(); ++i) {
    recovery::Candidate& candidate = survey.candidates[i];
    candidate.discarded = discarded[i] != std::byte{0};
    if (candidate.discarded) candidate.reason = "it was discarded when an older one was opened";
    else if (const auto why = context.excluded.find(candidate.commit.id); why != context.excluded.end())
      candidate.reason = why->second;
    else continue;
    candidate.recoverable = false;
  }
  return failure;
}

class Stock {
 public:
  explicit Stock(Context& context) : context_(context) {}

  /// COLLECTIVE. The headers of all files.
  void look() {
    comm::throw_if(context_.vote(attempt([&] { files_ = context_.store->scan(context_.run_id, Verify::headers); })));
  }

  /// COLLECTIVE. What can be had with what is known now; sets the history.
  recovery::Agreement agree(const Selection* selection) {
    const Found found = sort(files_, context_.run_id);
    recovery::Agreement agreement = recovery::agree({*context_.comm, context_.patience()}, found.holdings,
                                                    {context_.store->directory(), found.unreadable});
    look_at_prefix(context_, agreement.survey, selection);
    const auto not_ruled_out = rule_out(context_, agreement.survey);
    if (selection != nullptr) comm::throw_if(not_ruled_out);
    raise_generation(found.highest_generation);
    set_history(agreement.survey, found.strange, not_ruled_out.has_value());
    return agreement;
  }

  /// COLLECTIVE. Reads whole what was not yet of the commits that count. False if some rank found other than the
  /// headers told, so that they may be others now.
  bool is_confirmed(const recovery::Agreement& agreement, const Selection* selection, Look look) {
    const std::optional<std::size_t> chosen = choice(agreement.survey, selection);
    std::vector<store::FileKey> to_rebuild_from;
    if (chosen && look == Look::what_is_used) {
      to_rebuild_from = files_of_rebuilt_sets(agreement, agreement.survey.candidates[*chosen]);
    }
    std::uint64_t other = 0;
    comm::throw_if(context_.vote(attempt([&] {
      for (const Id128& commit_id : what_counts(agreement.survey, chosen)) {
        if (verified_.contains(commit_id)) continue;
        if (!is_as_told(commit_id, to_rebuild_from)) other = 1;
        // Another set may be the one to rebuild if the choice is made again.
        if (to_rebuild_from.empty()) verified_.insert(commit_id);
      }
    })));
    context_.comm->all_reduce(std::span(&other, 1), Reduction::max, context_.deadline());
    return other == 0;
  }

 private:
  void raise_generation(std::uint64_t in_stores) {
    std::uint64_t highest = std::max(in_stores, context_.highest_generation);
    context_.comm->all_reduce(std::span(&highest, 1), Reduction::max, context_.deadline());
    context_.highest_generation = std::max(highest, context_.incarnation * kGenerationsPerIncarnation);
  }

  void set_history(const recovery::Survey& survey, const std::vector<Id128>& strange, bool may_be_ruled_out) {
    std::vector<Commit> commits;
    context_.unjudged.clear();
    const auto processes = static_cast<std::uint32_t>(context_.comm->size());
    for (const recovery::Candidate& candidate : survey.candidates) {
      // One that was given up must not push out the one that it was given up for.
      if (may_be_ruled_out) context_.unjudged.insert(candidate.commit.id);
      // Older ones than what this job can have again are superseded like any other.
      if (candidate.commit.world_size != processes && commits.empty()) context_.unjudged.insert(candidate.commit.id);
      if (!candidate.recoverable || !candidate.in_stores) continue;
      commits.push_back(
          {candidate.commit, candidate.is_protected ? Level::protected_ : Level::local, {}, candidate.persistent});
    }
    if (commits.empty()) {
      context_.unjudged.insert(strange.begin(), strange.end());
      // A lost node may come back. Pieces of a first checkpoint that a crash cut short are of no use to anybody.
      if (context_.commits_exist) {
        for (const recovery::Candidate& candidate : survey.candidates) context_.unjudged.insert(candidate.commit.id);
      }
    }
    context_.took_stock = true;
    const std::lock_guard guard(context_.commits_mutex);
    context_.commits = std::move(commits);
  }

  /// The same on every rank.
  [[nodiscard]] std::optional<std::size_t> choice(const recovery::Survey& survey, const Selection* selection) const {
    if (selection == nullptr) return std::nullopt;
    return choose(survey, *selection, context_.commits_exist).chosen;
  }

  /// The same on every rank.
  [[nodiscard]] std::set<Id128> what_counts(const recovery::Survey& survey, std::optional<std::size_t> chosen) const {
    std::set<Id128> counts;
    if (chosen) counts.insert(survey.candidates[*chosen].commit.id);
    const std::vector<bool> stays = stay(context_.commits, context_.options.store.keep);
    for (std::size_t i = 0; i < stays.size(); ++i) {
      if (stays[i]) counts.insert(context_.commits[i].head.id);
    }
    return counts;
  }

  /// Local. True if the recovery would write over files that an older commit may need, should it fail.
  [[nodiscard]] bool overwrites(const recovery::Orders& orders) const {
    using store::FileKind;
    std::set<FileKind> written;
    for (const recovery::Move& move : orders.moves) {
      if (move.to == context_.rank()) written.insert(move.kind);
    }
    for (const recovery::SetOrder& order : orders.sets) {
      const std::uint32_t me = order.set.position;
      if (!context_.store->has(FileKind::descriptor, context_.logical_rank(), order.key())) {
        written.insert(FileKind::descriptor);
      }
      if (order.rebuild && !order.present.container[me]) written.insert(FileKind::container);
      if (order.rebuild && !order.present.parity[me]) written.insert(FileKind::parity);
    }
    if (!orders.fetches.empty()) written.insert(FileKind::container);
    return std::ranges::any_of(written, [&](FileKind kind) { return context_.store->begin_would_overwrite(kind); });
  }

  /// COLLECTIVE. This process's own files of those that the recovery will read whole. None if a recovery that fails for
  /// what it reads would cost more than time.
  std::vector<store::FileKey> files_of_rebuilt_sets(const recovery::Agreement& agreement,
                                                    const recovery::Candidate& chosen) {
    if (chosen.rebuilt == 0) return {};
    const auto orders = recovery::give_orders({*context_.comm, context_.patience()}, agreement.homes, chosen);
    std::uint64_t harmful = overwrites(orders) ? 1 : 0;
    context_.comm->all_reduce(std::span(&harmful, 1), Reduction::max, context_.deadline());
    if (harmful != 0) return {};
    std::vector<store::FileKey> files;
    for (const recovery::SetOrder& order : orders.sets) {
      if (!order.rebuild) continue;
      files.push_back({chosen.commit.id, {}});
      files.push_back(order.key());
    }
    return files;
  }

  /// Local.
  bool is_as_told(const Id128& commit_id, std::span<const store::FileKey> but_own) {
    bool as_told = true;
    for (store::Held& held : context_.store->verify(context_.run_id, commit_id, but_own)) {
      const auto told = std::ranges::find(files_, held.path, &store::Held::path);
      as_told = as_told && told != files_.end() && held.intact && held.key() == told->key();
      if (told != files_.end()) *told = std::move(held);
      else files_.push_back(std::move(held));
    }
    return as_told;
  }

  Context& context_;
  std::vector<store::Held> files_;
  std::set<Id128> verified_;  ///< read whole since the look
};

}  // namespace

recovery::Agreement take_stock(Context& context, Look look, const Selection* selection) {
  Stock stock(context);
  stock.look();
  while (true) {
    recovery::Agreement agreement = stock.agree(selection);
    if (look == Look::headers || stock.is_confirmed(agreement, selection, look)) return agreement;
  }
}

}  // namespace kedge::engine
