// Names of the files in a run's directory on the node-local store: "rank-<logical rank>.<number>.h5" and its
// companions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/types.hpp"

namespace kedge::store {

/// "rank-<r>.<n>.h5", "parity-<r>.<n>.kedge", "set-<r>.<n>.kedge" and "master-<r>.<n>.h5".
enum class FileKind : std::uint8_t {
  container,
  parity,
  descriptor,
  manifest,  ///< the manifest of a commit that is to become persistent, kept until it is
};
inline constexpr std::size_t kFileKinds = 4;

/// Names of the directories for files that a rank routes through a checkpoint: "routed-<rank>.<number>". Files in them
/// have the names that the application gave.
inline constexpr std::string_view kRoutedPrefix = "routed-";

/// Which file of a run's directory it is: the rank that keeps it, and which of that rank's files, reused in turn.
struct FileName {
  FileKind kind = FileKind::container;
  LogicalRank logical_rank;
  std::uint32_t number = 0;
  auto operator<=>(const FileName&) const = default;
};

/// The file's name, without directory.
[[nodiscard]] std::string to_string(const FileName& name);

/// Nothing for any name that to_string would not write.
[[nodiscard]] std::optional<FileName> parse_file_name(std::string_view name) noexcept;

/// The records of a run's directory (store_records.hpp).
inline constexpr std::string_view kRunRecord = "run";
inline constexpr std::string_view kCommitRecord = "committed";
inline constexpr std::string_view kFlushRecord = "flush-failed";
inline constexpr std::string_view kDamageRecord = "damaged";

/// Which job of a batch system used the store last (job_record.hpp).
inline constexpr std::string_view kJobPrefix = "job-";

/// Locks of processes that use the store, notes of what they are about to take, and records by which failure domains
/// see that they share a store.
inline constexpr std::string_view kLockPrefix = "lock.";
inline constexpr std::string_view kReservationPrefix = "taking.";
inline constexpr std::string_view kNoncePrefix = "nonce-";

/// Whether Kedge writes files of this name to a run's directory: those above, records, locks, nonces, notes of
/// admission and of a job, routed files.
[[nodiscard]] bool is_store_file(std::string_view name) noexcept;

}  // namespace kedge::store
