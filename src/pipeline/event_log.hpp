// What happens to checkpoints, as JSON lines in a file of each node (share/doc/events.md).
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

/// What happened. Only what is set is written.
struct Event {
  std::string_view name;               ///< e.g. "commit"
  const CommitHead* commit = nullptr;  ///< tag, generation and id
  std::string_view tag = {};           ///< where there is no commit
  std::optional<int> ranks = {};
  std::optional<std::uint64_t> bytes = {};  ///< of the containers of all ranks
  std::optional<double> seconds = {};
  std::optional<double> blocked_s = {};
  bool says_whose = false;       ///< user, job and prefix
  std::string_view source = {};  ///< where an opened checkpoint came from
  const Failure* failure = nullptr;
};

/// Who writes events.
struct EventOrigin {
  commits::RunIdentity run;
  std::string node;
  int rank = 0;
  std::uint32_t user = 0;   ///< uid
  std::string job = {};     ///< of the batch system, as job_name() writes it; empty: none
  std::string prefix = {};  ///< canonical
};

/// Pure. One line of JSON, with its end; whatever bytes the names have, it is valid.
[[nodiscard]] std::string to_line(const EventOrigin& origin, std::int64_t time_ns, const Event& event);

/// Pure. "2026-09-21T14:13:20.042Z" (RFC 3339).
[[nodiscard]] std::string rfc3339(std::int64_t time_ns);

/// Pure. The file that events.path stands for.
[[nodiscard]] std::string event_file(const std::string& path, const EventOrigin& origin);

/// One process's; may be called from any thread. A line that cannot be written is lost; the first one is a warning, and
/// ends the writing.
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
  std::string directory_;  ///< to be created; empty: it must be there
  std::string path_;
  std::uint64_t max_bytes_;
  std::shared_ptr<Clock> clock_;
  Log log_;
  std::mutex mutex_;
  bool is_off_ = false;
};

}  // namespace kedge::pipeline
