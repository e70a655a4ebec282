#include "harness/redundancy_history.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <span>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/set_descriptor.hpp"
#include "harness/full_test.hpp"

namespace kedge::faults {
namespace {

std::uint64_t seed_of_sample() {
  const char* text = std::getenv("KEDGE_TEST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

std::uint64_t hash(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::seed_seq mixed{a, b, c};
  return std::mt19937_64(mixed)();
}

void append(std::vector<std::string>& problems, const std::vector<std::string>& more) {
  problems.insert(problems.end(), more.begin(), more.end());
}

/// The rank that a set file belongs to, -1 if it is none: ".../parity-3.0.kedge", ".../set-3.0.kedge".
int owner_of_set_file(const std::string& path, std::string_view prefix) {
  const std::size_t at = path.rfind('/') + 1;
  if (path.compare(at, prefix.size(), prefix) != 0 || !path.ends_with(".kedge")) return -1;
  return std::stoi(path.substr(at + prefix.size()));
}

/// What one rank of an undisturbed start saw.
struct Seen {
  int step = 0;
  std::optional<Failure> failure;
};

std::string describe(const Seen& seen) {
  return seen.failure ? to_string(*seen.failure) : compose("step {}", seen.step);
}

}  // namespace

DiskOptions disk_of(const Layout& layout) {
  DiskOptions options = SimulatedJob::memory_disk();
  options.root.memory_backed = !layout.block;
  return options;
}

void use(SimulatedJob& job, const Layout& layout) {
  job.ranks_per_node = layout.ranks_per_node;
  job.options.redundancy.scheme = layout.scheme;
  job.options.redundancy.parity = layout.parity;
  job.options.redundancy.every = layout.every;
  job.options.store.keep = layout.keep;
}

void lose_node(SimulatedJob& job, int node) { job.disk.remove_all(compose("/nodes/node{}", node)); }

std::string describe(const Point& point) {
  return compose("rank {}{} in operation {}", point.rank, point.together ? " and all with it" : " alone", point.n);
}

void plan(SimulatedJob& job, const Point& point) {
  job.kill_all_ranks = point.together;
  job.disk.stop_world_after(point.rank, point.n, point.n);
}

std::uint64_t Point::drawn(std::uint64_t below) const {
  return hash(seed_of_sample(), n, static_cast<std::uint64_t>(rank) * 2 + (together ? 1 : 0)) % below;
}

int some_node(const Point& point, const Layout& layout) {
  return static_cast<int>(point.drawn(static_cast<std::uint64_t>(layout.nodes())));
}

std::vector<Point> points(std::string_view what, const std::vector<std::uint64_t>& operations, std::uint64_t one_in,
                          Deaths deaths) {
  std::vector<Point> chosen;
  std::uint64_t all = 0;
  one_in *= std::max<std::size_t>(operations.size(), 3) - 2;  // a start of more ranks takes longer
  for (std::size_t rank = 0; rank < operations.size(); ++rank) {
    for (std::uint64_t n = 1; n <= operations[rank]; ++n) {
      for (const bool together : {false, true}) {
        if (deaths != Deaths::both && together != (deaths == Deaths::together)) continue;
        ++all;
        if (!full_test() && hash(seed_of_sample(), all, crc32c(std::as_bytes(std::span(what)), 0)) % one_in != 0)
          continue;
        chosen.push_back({static_cast<int>(rank), n, together});
      }
    }
  }
  std::cout << what << ": " << chosen.size() << " of " << all << " points, seed " << seed_of_sample() << '\n';
  return chosen;
}

std::vector<std::string> half_made_set_files(const SimulatedJob& job) {
  std::vector<std::string> problems;
  for (const auto& file : job.disk.snapshot()) {
    const std::string& path = file.first;
    const std::span bytes(file.second.bytes);
    const bool is_parity = owner_of_set_file(path, "parity-") >= 0;
    if (!is_parity && owner_of_set_file(path, "set-") < 0) continue;
    if (bytes.size() < format::kSuperblockBytes) continue;
    std::optional<format::SetDescriptor> set;
    // Without a valid head it is nothing: that is what unsealing and a torn seal leave.
    if (attempt([&] { set = format::decode_set_descriptor(bytes.first(format::kSuperblockBytes), path); })) continue;
    const auto parity = bytes.subspan(format::kSuperblockBytes);
    const bool whole = !is_parity || (parity.size() == set->parity_bytes && crc32c(parity, 0) == set->parity_crc);
    if (!whole) problems.push_back(path + " is sealed and not whole");
  }
  return problems;
}

std::vector<std::string> too_many_set_files(const SimulatedJob& job, std::size_t at_most) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [path, entry] : job.disk.snapshot()) {
    for (const std::string_view prefix : {"parity-", "set-"}) {
      const int owner = owner_of_set_file(path, prefix);
      if (owner >= 0) ++counts[compose("{}{}", prefix, owner)];
    }
  }
  std::vector<std::string> problems;
  for (const auto& [name, count] : counts) {
    if (count > at_most) problems.push_back(compose("there are {} files {}", count, name));
  }
  return problems;
}

Recovery recover(SimulatedJob& job, int next) {
  job.kill_all_ranks = false;
  std::vector<Seen> seen(static_cast<std::size_t>(job.ranks));
  Ledger after;
  const auto outcomes = job.start([&](RankScope& scope) {
    Engine engine = scope.make_engine();
    Seen& mine = seen[static_cast<std::size_t>(scope.rank)];
    mine.failure = attempt([&] { mine.step = open_and_check(engine, scope.rank, after); });
    if (mine.failure) return;
    checkpoint(engine, scope.rank, next, after);
    const int reopened = open_and_check(engine, scope.rank, after);
    if (reopened != next) after.problem(compose("step {} was committed and step {} opened", next, reopened));
    engine.finalize();
  });
  Recovery recovery;
  recovery.step = seen[0].step;
  recovery.unrecoverable = seen[0].failure && seen[0].failure->code == ErrorCode::unrecoverable;
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    if (!outcomes[rank].returned()) {
      recovery.problems.push_back(compose("the restart failed on rank {}: {}", rank,
                                          outcomes[rank].failure ? to_string(*outcomes[rank].failure) : "no Error"));
    }
    if (describe(seen[rank]) != describe(seen[0])) {
      recovery.problems.push_back(compose("rank 0 saw {}, rank {} {}", describe(seen[0]), rank, describe(seen[rank])));
    }
  }
  if (seen[0].failure && !recovery.unrecoverable) recovery.problems.push_back("open threw: " + describe(seen[0]));
  if (!seen[0].failure && job.options.redundancy.every == 1 && after.newest_protected() != next) {
    recovery.problems.push_back(compose("the next checkpoint, step {}, is not protected", next));
  }
  append(recovery.problems, after.problems());
  return recovery;
}

std::vector<std::string> check_nothing_lost(SimulatedJob& job, const Ledger& ledger) {
  return check_recovery(job, ledger, ledger.newest_returned());
}

std::vector<std::string> check_after_loss(SimulatedJob& job, const Ledger& ledger) {
  return check_recovery(job, ledger, ledger.newest_protected());
}

std::vector<std::string> first_nodes(const Layout& layout) {
  std::vector<std::string> nodes;
  nodes.reserve(static_cast<std::size_t>(layout.ranks));
  for (int rank = 0; rank < layout.ranks; ++rank) {
    nodes.push_back(compose("node{}", rank / static_cast<int>(layout.ranks_per_node)));
  }
  return nodes;
}

std::vector<std::string> other_nodes(const Layout& layout) {
  std::vector<std::string> nodes = first_nodes(layout);
  if (layout.ranks_per_node == 1) std::rotate(nodes.begin(), nodes.begin() + 1, nodes.end());
  else nodes = {"node0", "node1", "node0", "node2", "node1", "node2"};
  return nodes;
}

std::vector<std::string> check_recovery(SimulatedJob& job, const Ledger& ledger, int least) {
  std::vector<std::string> problems = half_made_containers(job);
  append(problems, half_made_set_files(job));
  const Recovery recovery = recover(job, ledger.newest_begun() + 1);
  append(problems, recovery.problems);
  append(problems, ledger.problems());
  const bool right = recovery.unrecoverable ? least == 0
                     : recovery.step == 0   ? ledger.newest_returned() == 0
                                            : recovery.step >= least && recovery.step <= ledger.newest_begun();
  if (!right) {
    problems.push_back(compose("{} was opened, {} or newer expected; the newest protected is {}, returned {}, begun {}",
                               recovery.unrecoverable ? "nothing (unrecoverable)" : compose("step {}", recovery.step),
                               least, ledger.newest_protected(), ledger.newest_returned(), ledger.newest_begun()));
  }
  return problems;
}

}  // namespace kedge::faults
