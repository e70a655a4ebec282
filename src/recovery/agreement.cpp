#include "recovery/agreement.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "commits/commit_record.hpp"

namespace kedge::recovery {
namespace {

constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kTextBytesMax = 511;  // of one rank's description of one file
constexpr std::uint32_t kMembersDescribed = 4;

using Heads = std::set<CommitHead, decltype(&is_newer)>;

class CommitSurvey {
 public:
  CommitSurvey(const comm::Group& group, const LocalFiles& mine, const StoreReport& report, OtherRanks other_ranks)
      : group_(group), mine_(mine), report_(report), other_ranks_(other_ranks) {}

  Agreement run() {
    homes_ = exchange_local_files(group_, mine_);
    Agreement result;
    Heads done(is_newer);
    for (const LocalContainer& holding : mine_.containers) heads_.push_back(&holding.commit);
    while (find_newest_not_in(done)) {
      result.candidates.push_back(agree_on_candidate());
      done.insert(result.candidates.back().commit);
    }
    add_copied(done, result.candidates);
    result.unreadable = text_from_lowest(!report_.unreadable.empty(), report_.unreadable);
    result.homes = std::move(homes_);
    return result;
  }

 private:
  [[nodiscard]] std::uint64_t processes() const { return static_cast<std::uint64_t>(group_.size()); }
  [[nodiscard]] std::uint64_t me() const { return static_cast<std::uint64_t>(group_.rank()); }

  /// Adds commits without readable containers of which copies exist, if the copies suffice. Otherwise they are remains
  /// of a superseded commit, which is no loss.
  void add_copied(Heads& done, std::vector<Candidate>& candidates) {
    heads_.clear();
    for (const CommitHead& commit : mine_.copied) heads_.push_back(&commit);
    while (find_newest_not_in(done)) {
      Candidate candidate = agree_on_candidate();
      done.insert(candidate.commit);
      // A commit with containers goes before one with the same generation that has only copies.
      const auto goes_before = [&](const Candidate& other) {
        return other.recoverable && other.commit.generation == candidate.commit.generation;
      };
      if (!candidate.recoverable || std::ranges::any_of(candidates, goes_before)) continue;
      const auto is_older = [&](const Candidate& other) { return is_newer(candidate.commit, other.commit); };
      candidates.insert(std::ranges::find_if(candidates, is_older), std::move(candidate));
    }
  }

  /// Finds this rank's newest commit not yet judged (null: none). True while any rank has one.
  bool find_newest_not_in(const Heads& done) {
    next_ = nullptr;
    for (const CommitHead* commit : heads_) {
      if (done.contains(*commit)) continue;
      if (next_ == nullptr || is_newer(*commit, *next_)) next_ = commit;
    }
    // 0 means nothing left; generations begin at 1.
    newest_generation_ = group_.max(next_ == nullptr ? 0 : next_->generation);
    return newest_generation_ != 0;
  }

  /// Among commits of the newest generation, takes the greatest commit id first: the order of candidates must not
  /// depend on which rank has which files. The others follow in later rounds.
  bool has_next_candidate() {
    bool mine = next_ != nullptr && next_->generation == newest_generation_;
    for (const std::size_t half : {0U, 8U}) {
      std::uint64_t value = 0;
      for (std::size_t i = 0; mine && i < 8; ++i) value = value << 8U | next_->id.bytes[half + i];
      mine = group_.max(value) == value && mine;
    }
    return mine;
  }

  /// The lowest rank that has the next candidate broadcasts it.
  Candidate agree_on_candidate() {
    const int speaker = group_.lowest_rank_with(has_next_candidate()).value();
    commits::CommitRecord record;
    if (next_ != nullptr && speaker == group_.rank()) record = commits::to_record(*next_);
    group_.broadcast(record, speaker);
    Candidate candidate;
    candidate.commit = commits::to_head(record);
    count(candidate);
    return candidate;
  }

  [[nodiscard]] static RankKey key_of(const Candidate& candidate, std::uint64_t logical_rank) {
    return {candidate.commit.generation, candidate.commit.id, candidate.commit.world_size,
            static_cast<std::uint32_t>(logical_rank)};
  }

  /// Sums the knowledge of the home processes of this commit's logical ranks.
  void count(Candidate& candidate) {
    std::uint64_t held = 0;
    std::uint64_t rebuilt = 0;
    std::uint64_t is_protected = 0;
    std::uint64_t bytes = 0;
    const auto end = homes_.ranks.end();
    for (auto it = homes_.ranks.lower_bound(key_of(candidate, 0)); it != end; ++it) {
      const auto& [key, homed] = *it;
      if (key.commit_id != candidate.commit.id || key.world_size != candidate.commit.world_size) break;
      if (homed.is_protected()) ++is_protected;
      if (homed.holder != kNoProcess) {
        ++held;
        bytes += homed.size_bytes;
      } else if (const CandidateSet* offer = homed.find_rebuilding_set()) {
        ++rebuilt;
        bytes += offer->size_bytes;
      }
    }
    const auto sums = group_.sum(std::array{held, rebuilt, is_protected, bytes});
    candidate.total_bytes = sums[3];
    candidate.held = static_cast<std::uint32_t>(sums[0]);
    candidate.rebuilt = static_cast<std::uint32_t>(sums[1]);
    candidate.reason = other_world_size(candidate.commit.world_size, group_.world_size(), other_ranks_);
    if (!candidate.reason.empty()) return;
    candidate.in_stores = sums[0] + sums[1] == candidate.commit.world_size;
    candidate.recoverable = candidate.in_stores;
    candidate.is_protected = sums[2] == candidate.commit.world_size;
    if (!candidate.recoverable) explain(candidate);
  }

  [[nodiscard]] const HomedRank* homed(const Candidate& candidate, std::uint64_t logical_rank) const {
    const auto found = homes_.ranks.find(key_of(candidate, logical_rank));
    return found == homes_.ranks.end() ? nullptr : &found->second;
  }

  /// Explains the lowest container that cannot be recovered: which files its process found, and why its set cannot
  /// rebuild it, or which others are missing if no set is known.
  void explain(Candidate& candidate) {
    const std::uint64_t missing = lowest_missing(candidate, {});
    const std::string fate = describe_missing(candidate, missing);
    const std::string why = why_not_rebuilt(candidate, missing);
    candidate.reason = compose("the container of rank {} is {}{}", missing, fate,
                               why.empty() ? others_missing(candidate, missing) : why);
  }

  /// The lowest missing logical rank whose location was not named yet; equal on all ranks.
  std::uint64_t lowest_missing(const Candidate& candidate, const std::set<std::string>& named) {
    std::uint64_t missing = kNone;
    if (!named.contains(describe_local_file())) {
      for (std::uint64_t rank = me(); rank < candidate.commit.world_size && missing == kNone; rank += processes()) {
        const HomedRank* found = homed(candidate, rank);
        if (found == nullptr || (found->holder == kNoProcess && found->find_rebuilding_set() == nullptr))
          missing = rank;
      }
    }
    return kNone - group_.max(kNone - missing);  // the minimum
  }

  /// Names one rank of each further location with losses, so that every lost node is named.
  std::string others_missing(const Candidate& candidate, std::uint64_t first) {
    std::set<std::string> named = {describe_expected_location(first)};
    std::string text;
    while (named.size() < kMembersDescribed) {
      const std::uint64_t next = lowest_missing(candidate, named);
      if (next == kNone) break;
      text += compose("; that of rank {} is {}", next, describe_missing(candidate, next));
      if (!named.insert(describe_expected_location(next)).second) break;
    }
    return text;
  }

  /// "damaged: …" or "missing: …"; equal on all ranks.
  std::string describe_missing(const Candidate& candidate, std::uint64_t logical_rank) {
    std::string damage;
    for (const LocalContainer& holding : mine_.containers) {
      const bool is_it = holding.commit.id == candidate.commit.id && holding.logical_rank.value == logical_rank;
      if (is_it && !holding.intact) damage = holding.damage;
    }
    const std::string told = text_from_lowest(!damage.empty(), damage);
    return told.empty() ? "missing: " + describe_expected_location(logical_rank) : "damaged: " + told;
  }

  static constexpr std::uint8_t kLostContainer = 1;
  static constexpr std::uint8_t kLostParity = 2;
  /// A message between processes of one job: a set that contains the missing rank and has lost too many members.
  struct LostSet {
    std::uint32_t exists = 0;
    std::uint32_t scheme = 0;
    std::uint32_t may_be_lost = 0;
    std::uint32_t members = 0;
    std::array<std::uint32_t, format::kSetMembersMax> logical_rank{};
    std::array<std::uint8_t, format::kSetMembersMax> lost{};
  };

  std::string why_not_rebuilt(const Candidate& candidate, std::uint64_t missing) {
    struct {
      std::uint32_t home = 0;
      std::uint32_t index = 0;
      std::uint32_t exists = 0;
    } place;
    const int speaker = static_cast<int>(missing % processes());
    if (speaker == group_.rank()) {
      const HomedRank* found = homed(candidate, missing);
      if (found != nullptr && !found->candidate_sets.empty()) {
        place = {static_cast<std::uint32_t>(found->candidate_sets.front().home), found->candidate_sets.front().index,
                 1};
      }
    }
    group_.broadcast(place, speaker);
    if (place.exists == 0) return {};
    LostSet lost;
    if (group_.rank() == static_cast<int>(place.home)) lost = lost_set(homes_.sets[place.index]);
    group_.broadcast(lost, static_cast<int>(place.home));
    return describe(candidate, lost, missing);
  }

  static LostSet lost_set(const HomedSet& homed) {
    LostSet lost;
    lost.exists = 1;
    lost.scheme = static_cast<std::uint32_t>(homed.set.scheme);
    lost.may_be_lost = homed.set.parity_count;
    lost.members = static_cast<std::uint32_t>(homed.set.members.size());
    for (std::size_t i = 0; i < homed.set.members.size(); ++i) {
      lost.logical_rank[i] = homed.set.members[i].logical_rank.value;
      if (homed.container[i] == kNoProcess) lost.lost[i] = kLostContainer;
      else if (homed.parity[i] == kNoProcess) lost.lost[i] = kLostParity;
    }
    return lost;
  }

  /// Names every lost member with its location: members are on different nodes, so these are the lost nodes.
  std::string describe(const Candidate& candidate, const LostSet& lost, std::uint64_t missing) {
    std::string ranks;
    std::string others;
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < lost.members; ++i) {
      ranks += compose("{}{}", ranks.empty() ? "" : " ", lost.logical_rank[i]);
      if (lost.lost[i] == 0) continue;
      ++count;
      if (lost.logical_rank[i] == missing) continue;
      if (count > kMembersDescribed) {  // finding each location costs messages
        others += compose(", rank {}", lost.logical_rank[i]);
        continue;
      }
      const bool parity_only = lost.lost[i] == kLostParity;
      others += compose(", rank {} ({})", lost.logical_rank[i],
                        parity_only ? "its parity is missing" : describe_missing(candidate, lost.logical_rank[i]));
    }
    return compose("; its redundancy set ({} over ranks {}) tolerates the loss of {} member{}, but lost {}: rank {}{}",
                   to_string(static_cast<Scheme>(lost.scheme)), ranks, lost.may_be_lost,
                   lost.may_be_lost == 1 ? "" : "s", count, missing, others);
  }

  /// What the process that should have the lost container found instead; equal on all ranks.
  std::string describe_expected_location(std::uint64_t logical_rank) {
    return text_from_lowest(logical_rank % processes() == me(), describe_local_file());
  }

  [[nodiscard]] std::string describe_local_file() const {
    return report_.unreadable.empty() ? compose("it is not in {}", report_.directory)
                                      : compose("found instead: {}", report_.unreadable);
  }

  /// The text of the lowest rank that has one, on all ranks; empty if none has.
  std::string text_from_lowest(bool have, const std::string& text) {
    return group_.text_of_lowest_rank(have ? std::optional(text.substr(0, kTextBytesMax)) : std::nullopt);
  }

  const comm::Group& group_;
  const LocalFiles& mine_;
  const StoreReport& report_;
  OtherRanks other_ranks_;
  Homes homes_;
  std::vector<const CommitHead*> heads_;  ///< commits that this process proposes
  const CommitHead* next_ = nullptr;
  std::uint64_t newest_generation_ = 0;
};

}  // namespace

std::string other_world_size(std::uint32_t of_commit, std::uint32_t of_job, OtherRanks other_ranks) {
  if (of_commit == of_job || other_ranks == OtherRanks::accept) return {};
  return compose("it was saved by {} ranks and this job has {}; start it with {} ranks", of_commit, of_job, of_commit);
}

Agreement agree_on_commits(const comm::Group& group, const LocalFiles& mine, const StoreReport& report,
                           OtherRanks other_ranks) {
  return CommitSurvey(group, mine, report, other_ranks).run();
}

}  // namespace kedge::recovery
