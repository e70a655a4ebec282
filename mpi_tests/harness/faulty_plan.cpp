#include "harness/faulty_plan.hpp"

namespace kedge::faults {

void FaultPlan::stop_after(int rank, std::uint64_t n, std::uint64_t seed) {
  ranks_[rank].stop_at = n;
  ranks_[rank].stop_seed = seed;
}

void FaultPlan::stop_all(std::uint64_t seed) {
  if (!stop_all_seed_) stop_all_seed_ = seed;  // a second death in the same crash changes nothing
}

void FaultPlan::heal(int rank) {
  auto& state = ranks_[rank];
  state.failures.clear();
  state.read_failures.clear();
  state.one_in = 0;
}

void FaultPlan::fail_sometimes(int rank, std::uint64_t one_in, int system_errno, std::uint64_t seed) {
  auto& state = ranks_[rank];
  state.one_in = one_in;
  state.sometimes_errno = system_errno;
  state.random.seed(seed);
}

Verdict FaultPlan::die(Rank& rank, int number, std::uint64_t seed) const {
  rank.dead = true;
  std::seed_seq mixed{seed & 0xffffffffU, seed >> 32U, static_cast<std::uint64_t>(number), rank.operations};
  return {Verdict::Kind::die, 0, std::mt19937_64(mixed)()};
}

/// The errno planned for the n-th operation or for one that has passed without striking.
int FaultPlan::due(std::map<std::uint64_t, int>& failures, std::uint64_t n) {
  const auto first = failures.begin();
  if (first == failures.end() || first->first > n) return 0;
  const int error = first->second;
  failures.erase(first);
  return error;
}

Verdict FaultPlan::mutate(int number) {
  auto& rank = ranks_[number];
  if (rank.dead) return {Verdict::Kind::dead, 0, 0};
  ++rank.operations;
  if (rank.stop_at && rank.operations >= *rank.stop_at) return die(rank, number, rank.stop_seed);
  if (stop_all_seed_) return die(rank, number, *stop_all_seed_);
  if (const int error = due(rank.failures, rank.operations); error != 0) return {Verdict::Kind::fail, error, 0};
  if (rank.one_in != 0 && rank.random() % rank.one_in == 0) return {Verdict::Kind::fail, rank.sometimes_errno, 0};
  return {};
}

Verdict FaultPlan::read(int number) {
  auto& rank = ranks_[number];
  if (rank.dead) return {Verdict::Kind::dead, 0, 0};
  ++rank.reads;
  if (stop_all_seed_) return die(rank, number, *stop_all_seed_);
  if (const int error = due(rank.read_failures, rank.reads); error != 0) return {Verdict::Kind::fail, error, 0};
  return {};
}

std::uint64_t FaultPlan::operations(int rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? 0 : found->second.operations;
}

std::uint64_t FaultPlan::reads(int rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? 0 : found->second.reads;
}

bool FaultPlan::dead(int rank) const {
  const auto found = ranks_.find(rank);
  return found != ranks_.end() && found->second.dead;
}

}  // namespace kedge::faults
