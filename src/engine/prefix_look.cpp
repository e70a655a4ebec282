#include "engine/prefix_look.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "engine/told_tag.hpp"
#include "persist/tags.hpp"

namespace kedge::engine {
namespace {

using recovery::Candidate;

constexpr std::size_t kUnusableTold = 16;

/// What rank 0 found.
struct Finding {
  std::vector<ToldTag> told;             ///< newest first
  std::vector<std::uint8_t> persistent;  ///< by the survey's candidates
  std::uint64_t highest_generation = 0;
  std::uint64_t commits_exist = 0;
};

class Look {
 public:
  Look(Context& context, const recovery::Survey& survey, Selection selection)
      : context_(context), survey_(survey), selection_(std::move(selection)) {}

  Finding run() {
    const persist::TagList list = persist::list_tags(file_system(), context_.catalog->prefix());
    Finding found;
    std::vector<persist::TagEntry> mine;
    for (const persist::TagEntry& entry : list.entries) {
      if (entry.commit.run_id == context_.run_id && is_possible(entry)) mine.push_back(entry);
    }
    for (const Candidate& candidate : survey_.candidates) {
      const bool there = std::ranges::any_of(
          mine, [&](const persist::TagEntry& entry) { return entry.commit.id == candidate.commit.id; });
      found.persistent.push_back(there ? 1 : 0);
    }
    found.commits_exist = mine.empty() ? 0 : 1;
    if (!mine.empty()) found.highest_generation = mine.front().commit.generation;
    warn_of(list.unusable);
    walk(mine, found.told);
    return found;
  }

 private:
  [[nodiscard]] fs::FileSystem& file_system() const { return *context_.environment.file_system; }

  /// This run's directories are this user's: what others put there under its name must not count its generations up.
  [[nodiscard]] bool is_possible(const persist::TagEntry& entry) const {
    if (context_.options.persistent.trust != Trust::self) return true;
    const std::string directory = fs::join(context_.catalog->prefix(), entry.directory);
    const auto status = file_system().status(directory);
    if (status && status->owner == file_system().user()) return true;
    context_.log.warning(
        compose("{} on the prefix is not believed: it says that it is of this run and belongs to "
                "another user",
                entry.directory));
    return false;
  }

  /// A commit's name alone does not tell whose it is.
  void warn_of(const std::vector<persist::Unusable>& unusable) const {
    for (const persist::Unusable& one : unusable) {
      if (one.committed)
        context_.log.warning(compose("{} on the prefix cannot be used: {}", one.directory, one.reason));
    }
  }

  /// The lowest generation of the tag that Before names, in the stores or on the prefix; none is older than 0.
  [[nodiscard]] std::uint64_t bound(const std::vector<persist::TagEntry>& mine) const {
    const auto* before = std::get_if<Before>(&selection_);
    if (before == nullptr) return std::numeric_limits<std::uint64_t>::max();
    std::uint64_t lowest = 0;
    const auto consider = [&](const Tag& tag, std::uint64_t generation) {
      if (tag == before->tag && (lowest == 0 || generation < lowest)) lowest = generation;
    };
    for (const Candidate& candidate : survey_.candidates) consider(candidate.commit.tag, candidate.commit.generation);
    for (const persist::TagEntry& entry : mine) consider(entry.commit.tag, entry.commit.generation);
    return lowest;
  }

  void walk(const std::vector<persist::TagEntry>& mine, std::vector<ToldTag>& told) const {
    const auto* tag = std::get_if<Tag>(&selection_);
    const auto* before = std::get_if<Before>(&selection_);
    const std::uint64_t limit = bound(mine);
    bool found = false;
    std::size_t unusable = 0;
    for (const persist::TagEntry& entry : mine) {
      // Before counts from the oldest of its tag, so all ranks must know that one.
      const bool is_bound = before != nullptr && entry.commit.tag == before->tag && entry.commit.generation == limit;
      const bool wanted = entry.commit.generation < limit && (tag == nullptr || entry.commit.tag == *tag);
      if (!is_bound && (!wanted || found)) continue;
      const ToldTag one = tell(entry, problem_of(entry));
      if (!one.usable() && !is_bound && ++unusable > kUnusableTold) continue;
      told.push_back(one);
      found = found || (wanted && one.usable());
    }
  }

  [[nodiscard]] std::string problem_of(const persist::TagEntry& entry) const {
    if (const auto why = context_.excluded.find(entry.commit.id); why != context_.excluded.end()) return why->second;
    if (context_.catalog->is_discarded(entry.commit.id)) return "it was discarded when an older one was opened";
    if (entry.commit.world_size != static_cast<std::uint32_t>(context_.comm->size())) {
      return compose("it was saved by {} ranks and this job has {}; start it with {} ranks", entry.commit.world_size,
                     context_.comm->size(), entry.commit.world_size);
    }
    const auto failure = attempt([&] {
      const std::string directory = fs::join(context_.catalog->prefix(), entry.directory);
      persist::require_trusted(file_system(), directory, context_.options.persistent.trust);
      const persist::TagEntry read = persist::read_tag(file_system(), context_.catalog->prefix(), entry.directory);
      if (read.commit.id != entry.commit.id) {
        throw Error(Failure{ErrorCode::corrupt, "the manifest is that of another commit", -1, directory, 0});
      }
    });
    return failure ? "on the prefix: " + to_string(*failure) : "";
  }

  Context& context_;
  const recovery::Survey& survey_;
  Selection selection_;
};

/// The same on every rank.
void merge(recovery::Survey& survey, const ToldTag& told) {
  auto found = std::ranges::find(survey.candidates, told.commit.id,
                                 [](const Candidate& candidate) { return candidate.commit.id; });
  if (found == survey.candidates.end()) {
    Candidate candidate;
    candidate.commit = commits::to_head(told.commit);
    candidate.persistent = true;
    const auto older = [&](const Candidate& other) { return is_newer(candidate.commit, other.commit); };
    found = survey.candidates.insert(std::ranges::find_if(survey.candidates, older), candidate);
  }
  if (told.usable()) {
    found->directory = told.directory.data();
    found->recoverable = true;
    found->total_bytes = told.total_bytes;
    return;
  }
  found->persistent = false;  // whatever the catalog says
  if (!found->recoverable && found->reason != told.problem.data()) {
    found->reason += (found->reason.empty() ? "" : "; ") + std::string(told.problem.data());
  }
}

}  // namespace

void look_at_prefix(Context& context, recovery::Survey& survey, const Selection* selection) {
  Finding found;
  const auto local = attempt([&] {
    if (context.catalog) found = Look(context, survey, selection != nullptr ? *selection : Selection(latest)).run();
  });
  const auto failure = context.vote(local);
  if (selection != nullptr) comm::throw_if(failure);
  if (failure && context.is_root()) {
    context.log.warning("what is on the prefix is not known, the checkpoint goes on: " + to_string(*failure));
  }
  if (failure) return;
  std::array<std::uint64_t, 3> head = {found.told.size(), found.highest_generation, found.commits_exist};
  context.broadcast(head);
  found.told.resize(head[0]);
  found.persistent.resize(survey.candidates.size());
  if (!found.persistent.empty()) {
    context.comm->broadcast(std::as_writable_bytes(std::span(found.persistent)), 0, context.deadline());
  }
  if (!found.told.empty()) {
    context.comm->broadcast(std::as_writable_bytes(std::span(found.told)), 0, context.deadline());
  }
  for (std::size_t i = 0; i < survey.candidates.size(); ++i) {
    survey.candidates[i].persistent = found.persistent[i] != 0;
  }
  for (const ToldTag& told : found.told) merge(survey, told);
  context.highest_generation = std::max(context.highest_generation, head[1]);
  context.commits_exist = context.commits_exist || head[2] != 0;
}

}  // namespace kedge::engine
