#include "recovery/heads.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

#include "base/invariant.hpp"
#include "commits/commit_record.hpp"

namespace kedge::recovery {
namespace {

using comm::Addressed;
using commits::CommitRecord;

// Messages between processes of one job, never stored.

/// To the home of a commit id: `count` containers of this process have this head.
struct Statement {
  CommitRecord commit;
  std::uint64_t containers = 0;
};
/// Reply, if the heads of a commit differ.
struct Verdict {
  Id128 commit_id;
  CommitRecord commit;
  std::uint64_t is_clear = 0;  ///< 0 or 1
};
static_assert(std::has_unique_object_representations_v<Statement> && std::has_unique_object_representations_v<Verdict>,
              "no byte is sent that nobody has set");

struct ByBytes {
  bool operator()(const CommitRecord& a, const CommitRecord& b) const noexcept {
    return std::memcmp(&a, &b, sizeof a) < 0;
  }
};
using Counts = std::map<CommitRecord, std::uint64_t, ByBytes>;

/// Ids are random, so any part of them distributes the homes evenly.
int home_of(const Id128& commit_id, int processes) {
  std::uint64_t value = 0;
  std::memcpy(&value, commit_id.bytes.data(), sizeof value);
  return static_cast<int>(value % static_cast<std::uint64_t>(processes));
}

Verdict to_verdict(const Id128& commit_id, const Counts& counts) {
  const auto most = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  const auto as_many = [&](const auto& one) { return one.second == most->second; };
  const bool is_clear = std::ranges::count_if(counts, as_many) == 1;
  return {commit_id, is_clear ? most->first : CommitRecord{}, is_clear ? 1U : 0U};
}

/// COLLECTIVE. Returns the verdicts about this process's containers.
std::map<Id128, Verdict> ask(const comm::Group& group, const Counts& mine) {
  std::vector<Addressed<Statement>> statements;
  for (const auto& [commit, containers] : mine) {
    statements.push_back({home_of(commit.id, group.size()), {commit, containers}});
  }
  std::map<Id128, Counts> said;
  const auto received = group.exchange(statements);
  for (const auto& [peer, statement] : received) {
    invariant(home_of(statement.commit.id, group.size()) == group.rank(),
              "a statement comes to the home of its commit");
    said[statement.commit.id][statement.commit] += statement.containers;
  }
  const bool disputed = std::ranges::any_of(said, [](const auto& one) { return one.second.size() > 1; });
  std::map<Id128, Verdict> verdicts;
  if (!group.any(disputed)) return verdicts;
  std::vector<Addressed<Verdict>> answers;
  for (const auto& [peer, statement] : received) {
    const Counts& counts = said[statement.commit.id];
    if (counts.size() > 1) answers.push_back({peer, to_verdict(statement.commit.id, counts)});
  }
  for (const auto& [peer, verdict] : group.exchange(answers)) verdicts.insert_or_assign(verdict.commit_id, verdict);
  return verdicts;
}

}  // namespace

std::vector<Contradiction> find_contradictions(const comm::Group& group, std::span<const CommitHead> heads) {
  Counts mine;
  for (const CommitHead& head : heads) ++mine[commits::to_record(head)];
  const std::map<Id128, Verdict> verdicts = ask(group, mine);
  std::vector<Contradiction> contradictions;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const auto found = verdicts.find(heads[i].id);
    if (found == verdicts.end()) continue;
    const CommitHead believed = commits::to_head(found->second.commit);
    const bool is_clear = found->second.is_clear != 0;
    if (is_clear && believed == heads[i]) continue;
    contradictions.push_back({i, is_clear ? std::optional(believed) : std::nullopt});
  }
  return contradictions;
}

}  // namespace kedge::recovery
