// File names in a run's directory of the node-local store.
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
  manifest,  ///< a commit's manifest, kept until the commit is persistent
};
inline constexpr std::size_t kFileKindCount = 4;

/// Names of the directories of routed files: "routed-<rank>.<number>". The files in them have the application's names.
inline constexpr std::string_view kRoutedPrefix = "routed-";

/// The rank that keeps a file, and the number of the file among that rank's, which are reused.
struct FileName {
  FileKind kind = FileKind::container;
  LogicalRank logical_rank;
  std::uint32_t number = 0;
  auto operator<=>(const FileName&) const = default;
};

[[nodiscard]] std::string to_string(const FileName& name);

/// Parses exactly the names that to_string writes.
[[nodiscard]] std::optional<FileName> parse_file_name(std::string_view name) noexcept;

/// Records of a run's directory (store_record_files.hpp).
inline constexpr std::string_view kRunRecord = "run";
inline constexpr std::string_view kCommitRecord = "committed";
inline constexpr std::string_view kFlushRecord = "flush-failed";
inline constexpr std::string_view kDamageRecord = "damaged";

/// Names the batch system's job that used the store last (job_record.hpp).
inline constexpr std::string_view kJobPrefix = "job-";

/// Locks of the processes that use the store, reservations of space, and nonces by which failure domains detect a
/// shared store.
inline constexpr std::string_view kLockPrefix = "lock.";
inline constexpr std::string_view kReservationPrefix = "taking.";
inline constexpr std::string_view kNoncePrefix = "nonce-";

/// Whether Kedge writes a file of this name to a run's directory: files of a FileKind, records, locks, nonces,
/// reservations, job records, routed files.
[[nodiscard]] bool is_store_file(std::string_view name) noexcept;

}  // namespace kedge::store
