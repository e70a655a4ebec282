#include "pipeline/event_log.hpp"

#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/timestamp.hpp"
#include "fs/tree.hpp"

namespace kedge::pipeline {
namespace {

constexpr std::string_view kNode = "{node}";
constexpr std::string_view kRun = "{run}";
constexpr std::string_view kUser = "{user}";
constexpr std::string_view kJob = "{job}";
constexpr std::string_view kNoJob = "nojob";
constexpr std::uint32_t kFileMode = 0644;       // modified by the umask
constexpr std::uint32_t kDirectoryMode = 0755;  // modified by the umask

std::string replace_all(std::string text, std::string_view what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// Fills in {run}, {user} and {job}.
std::string expand_owner(const std::string& path, const EventOrigin& origin) {
  std::string text = replace_all(path, kRun, origin.run.name);
  text = replace_all(std::move(text), kUser, std::to_string(origin.user));
  return replace_all(std::move(text), kJob, origin.job.empty() ? std::string(kNoJob) : origin.job);
}

bool is_directory(const std::string& path) { return path.find(kNode) == std::string::npos; }

}  // namespace

std::string to_rfc3339(std::int64_t time_ns) {
  constexpr std::int64_t kSecond_ns = 1'000'000'000;
  return compose("{}.{:03}Z", format_utc(time_ns / kSecond_ns), time_ns % kSecond_ns / 1'000'000);
}

std::string expand_events_path(const std::string& path, const EventOrigin& origin) {
  const std::string file = is_directory(path) ? fs::join(path, "{user}-{job}-{run}-{node}.jsonl") : path;
  return replace_all(expand_owner(file, origin), kNode, origin.node);
}

std::string to_line(const EventOrigin& origin, std::int64_t time_ns, const Event& event) {
  OrderedJson json = {{"time", to_rfc3339(time_ns)},
                      {"event", event.name},
                      {"run", origin.run.name},
                      {"run_id", to_string(origin.run.id)},
                      {"incarnation", origin.run.incarnation},
                      {"node", origin.node},
                      {"rank", origin.rank}};
  if (event.has_origin) {
    json["user"] = origin.user;
    if (!origin.job.empty()) json["job"] = origin.job;
    json["prefix"] = origin.prefix;
  }
  if (event.commit != nullptr) {
    json["tag"] = event.commit->tag;
    json["generation"] = event.commit->generation;
    json["commit_id"] = to_string(event.commit->id);
  }
  if (!event.tag.empty()) json["tag"] = event.tag;
  if (event.ranks) json["ranks"] = *event.ranks;
  if (!event.source.empty()) json["source"] = event.source;
  if (event.bytes) json["bytes"] = *event.bytes;
  if (event.seconds) json["seconds"] = *event.seconds;
  if (event.blocked_s) json["blocked_seconds"] = *event.blocked_s;
  if (event.failure != nullptr) {
    json["code"] = to_string(event.failure->code);
    json["text"] = to_string(*event.failure);
  }
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

EventLog::EventLog(std::shared_ptr<fs::FileSystem> file_system, const Options::Events& options, EventOrigin origin,
                   std::shared_ptr<Clock> clock, Log log)
    : file_system_(std::move(file_system)),
      origin_(std::move(origin)),
      directory_(is_directory(options.path) ? expand_owner(options.path, origin_) : ""),
      path_(expand_events_path(options.path, origin_)),
      max_bytes_(options.max_bytes),
      clock_(std::move(clock)),
      log_(std::move(log)) {}

void EventLog::write(const Event& event) {
  const std::lock_guard guard(mutex_);
  if (is_off_) return;
  const auto failure = attempt([&] { append(to_line(origin_, clock_->wall_ns(), event)); });
  if (!failure) return;
  is_off_ = true;
  log_.warning(compose("event logging is off for this process from now on (events.path): {}", to_string(*failure)));
}

void EventLog::append(const std::string& line) {
  if (!directory_.empty()) fs::make_directories(*file_system_, std::exchange(directory_, {}), kDirectoryMode);
  if (max_bytes_ != 0) {
    const auto status = file_system_->status(path_);
    if (status && status->size_bytes + line.size() > max_bytes_) file_system_->rename(path_, path_ + ".1");
  }
  file_system_->append(path_, std::as_bytes(std::span(line)), kFileMode);
}

}  // namespace kedge::pipeline
