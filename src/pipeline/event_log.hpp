// Writes events as JSON lines to a file on each node (share/doc/events.md).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "commits/run_identity.hpp"
#include "fs/file_system.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"

namespace kedge::pipeline {

/// An event; unset fields are not written.
struct Event {
  std::string_view name;               ///< e.g. "commit"
  const CommitHead* commit = nullptr;  ///< tag, generation and id
  std::string_view tag = {};           ///< if there is no commit
  std::optional<int> ranks = {};
  std::optional<std::uint64_t> bytes = {};  ///< size of all ranks' containers
  std::optional<double> seconds = {};
  std::optional<double> blocked_s = {};
  bool has_origin = false;       ///< write user, job and prefix
  std::string_view source = {};  ///< source of an opened checkpoint
  const Failure* failure = nullptr;
};

/// The process that writes events.
struct EventOrigin {
  commits::RunIdentity run;
  std::string node;
  int rank = 0;
  std::uint32_t user = 0;   ///< uid
  std::string job = {};     ///< the batch system's job, from job_name(); may be empty
  std::string prefix = {};  ///< canonical
};

/// Returns one line of JSON with its newline, valid for any bytes in the names. Pure.
[[nodiscard]] std::string to_line(const EventOrigin& origin, std::int64_t time_ns, const Event& event);

/// Returns a time such as "2026-09-21T14:13:20.042Z" (RFC 3339). Pure.
[[nodiscard]] std::string to_rfc3339(std::int64_t time_ns);

/// Returns events.path with its placeholders replaced. Pure.
[[nodiscard]] std::string expand_events_path(const std::string& path, const EventOrigin& origin);

/// Writes one process's events. Thread-safe. The first line that cannot be written is logged as a warning and ends the
/// writing.
class EventLog {
 public:
  EventLog(std::shared_ptr<fs::FileSystem> file_system, const Options::Events& options, EventOrigin origin,
           std::shared_ptr<Clock> clock, Log log);
  /// Local; never throws Error.
  void write(const Event& event);

 private:
  void append(const std::string& line);

  std::shared_ptr<fs::FileSystem> file_system_;
  EventOrigin origin_;
  std::string directory_;  ///< directory to create; empty if it must exist
  std::string path_;
  std::uint64_t max_bytes_;
  std::shared_ptr<Clock> clock_;
  Log log_;
  std::mutex mutex_;
  bool is_off_ = false;
};

}  // namespace kedge::pipeline
