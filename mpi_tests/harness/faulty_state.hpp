// What the views and the outside of one faulty disk share, and how each operation meets its fate.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/system_error.hpp"
#include "harness/faulty_file_system.hpp"
#include "harness/faulty_plan.hpp"
#include "harness/faulty_tree.hpp"
#include "kedge/error.hpp"

namespace kedge::faults {

/// Who asks, with what. Handles belong to one start of the job; views to whichever runs now.
struct Caller {
  int rank = 0;
  std::uint64_t start = kAnyStart;
  static constexpr std::uint64_t kAnyStart = ~std::uint64_t{0};
};

struct DiskState {
  explicit DiskState(DiskOptions disk_options) : options(std::move(disk_options)), tree(options) {}

  /// Runs effect(verdict) as one counted operation, or in part, or not at all, by plan. `effect` does what
  /// `verdict` leaves of it: all (go) or as far as verdict.random says (die).
  template <class Effect>
  void mutate_in_part(const Caller& caller, std::string_view action, const std::string& path, Effect&& effect) {
    std::unique_lock guard(mutex);
    require_alive(caller);
    const Verdict verdict = plan.mutate(caller.rank);
    if (verdict.kind == Verdict::Kind::fail) fs::throw_system_error(action, path, verdict.error);
    if (verdict.kind == Verdict::Kind::go) return effect(verdict);
    try {
      effect(verdict);
    } catch (const Error&) {  // whoever dies is not told
    }
    die(caller.rank, guard);
  }

  /// For what cannot be cut: on death it is done or not.
  template <class Effect>
  void mutate(const Caller& caller, std::string_view action, const std::string& path, Effect&& effect) {
    mutate_in_part(caller, action, path, [&](const Verdict& verdict) {
      if (!verdict.dies() || (verdict.random & 1U) != 0) effect();
    });
  }

  template <class Effect>
  auto read(const Caller& caller, std::string_view action, const std::string& path, Effect&& effect) {
    std::unique_lock guard(mutex);
    require_alive(caller);
    const Verdict verdict = plan.read(caller.rank);
    if (verdict.kind == Verdict::Kind::fail) fs::throw_system_error(action, path, verdict.error);
    if (verdict.dies()) die(caller.rank, guard);
    return effect();
  }

  void require_alive(const Caller& caller) const {
    if (plan.dead(caller.rank)) throw testing::SimulatedDeath{};
    if (caller.start != Caller::kAnyStart && caller.start != start) throw testing::SimulatedDeath{};
  }

  /// As the kernel does it: locks go at once. The callback may plan further deaths.
  [[noreturn]] void die(int rank, std::unique_lock<std::mutex>& guard) {
    tree.drop_locks(rank);
    const auto callback = on_death;
    guard.unlock();
    if (callback) callback(rank);
    throw testing::SimulatedDeath{};
  }

  /// From the path that a rank sees to that of the disk, and back.
  [[nodiscard]] std::string to_disk(int rank, const std::string& path) const;
  [[nodiscard]] std::string to_rank(int rank, const std::string& path) const;

  mutable std::mutex mutex;
  DiskOptions options;
  Tree tree;
  FaultPlan plan;
  std::uint64_t start = 0;
  std::uint64_t last_lock_serial = 0;
  std::map<int, std::vector<std::pair<std::string, std::string>>> mounts;  // at, source
  std::function<void(int)> on_death;
  std::map<std::string, std::uint64_t> bytes_read;           // by path on the disk
  std::map<std::string, std::uint64_t> flips_when_opened;    // path on the disk, offset
  std::map<std::string, std::uint64_t> flips_when_verified;  // likewise
  std::set<std::string> vanish_when_opened;                  // path on the disk
};

[[nodiscard]] std::shared_ptr<fs::FileSystem> make_view(std::shared_ptr<DiskState> state, int rank);

}  // namespace kedge::faults
