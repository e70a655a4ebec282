// What Kedge must reach: the one table of it, which --check goes by, --json prints and share/doc/performance.md quotes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kedge_bench {

/// Which way messages take.
enum class Messages : std::uint8_t { any, shared_memory, network };

/// Which redundancy a target is for.
struct Kind {
  std::string_view scheme;    ///< as kedge::to_string names it; empty: any
  std::uint32_t parity = 0;   ///< members of a set that may be lost; 0: any
  std::uint32_t members = 0;  ///< of a set; 0: any
  Messages messages = Messages::any;
};

struct Target {
  std::string_view row;
  Kind kind;
  std::string_view against;  ///< the row that the ratio is to; empty: the value itself, in the row's unit
  double at_most = 0;
};

/// For 4 ranks x 256 MiB as 4 nodes, on a memory filesystem; those against disk_write (D) on a disk.
inline constexpr std::array kTargets{
    Target{"blocked", {}, "write", 0.5},
    Target{"blocked_copy", {}, "copy", 1.1},
    Target{"save_cpu", {}, "copy_cpu", 1.15},
    Target{"second", {}, "write", 0.5},
    Target{"protect", {"xor", 0, 0, Messages::shared_memory}, "write", 0.9},
    Target{"checkpoint", {"xor", 0, 0, Messages::shared_memory}, "write", 1.5},
    Target{"protect", {"rs", 2, 4, Messages::shared_memory}, "write", 1.9},
    Target{"rebuild", {"xor", 0, 0, Messages::shared_memory}, "write", 1.3},
    Target{"rebuild", {"rs", 2, 4, Messages::shared_memory}, "write", 3.0},
    Target{"open_load", {}, "read", 1.0},
    Target{"restore", {}, "copy", 1.35},
    Target{"restore_reads", {}, "", 1.01},
    Target{"protect_exchange", {"", 0, 0, Messages::network}, "exchange", 1.2},
    Target{"small", {}, "pieces", 1.6},
    Target{"flush", {}, "disk_write", 1.1},
    Target{"commit_flush", {}, "disk_write", 1.3},
    Target{"fetch", {}, "refill", 1.2},
    Target{"fetch_cold", {}, "disk_read_cold", 1.2},
    Target{"blocked_behind", {}, "copy", 1.6},
    Target{"persistent_behind", {}, "disk_write", 1.25},
    Target{"tags_many", {}, "tags_few", 1.2},
    Target{"fewer", {}, "equal_fewer", 1.3},
    Target{"fewer_reads", {}, "", 1.01},
    Target{"more", {}, "equal_more", 1.3},
    Target{"more_reads", {}, "", 1.01},
    Target{"fewer_prefix", {}, "prefix_read", 1.2},
    Target{"fewer_prefix_reads", {}, "", 1.01},
    Target{"plan_home", {}, "", 1},
    Target{"plan_memory", {}, "", 64},
    Target{"slab_reads", {}, "", 0.02},
    Target{"cube_reads", {}, "", 0.08},
    Target{"memory", {}, "", 32},
    Target{"held_later", {}, "held", 1.01},
};

/// The target of a row, if there is one for this redundancy.
[[nodiscard]] constexpr const Target* target_of(std::string_view row, const Kind& found) {
  for (const Target& target : kTargets) {
    const Kind& wanted = target.kind;
    if (target.row == row && (wanted.scheme.empty() || wanted.scheme == found.scheme) &&
        (wanted.parity == 0 || wanted.parity == found.parity) &&
        (wanted.members == 0 || wanted.members == found.members) &&
        (wanted.messages == Messages::any || wanted.messages == found.messages)) {
      return &target;
    }
  }
  return nullptr;
}

}  // namespace kedge_bench
