#include "persist/start_markers.hpp"

#include <algorithm>
#include <functional>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/options_values.hpp"
#include "base/text.hpp"
#include "commits/head_check.hpp"
#include "persist/record_directory.hpp"
#include "persist/run_record.hpp"

namespace kedge::persist {
namespace {

// No start of ours can have had a larger one, and all would be refused after it.
constexpr std::uint64_t kNumberMax = commits::kGenerationMax / commits::kGenerationsPerIncarnation - kIncarnationTries;

int number_in(const Json& content, const char* key) {
  const auto found = content.find(key);
  return found != content.end() && found->is_number_integer() ? found->get<int>() : -1;
}

std::optional<PreviousStart> parse_marker(const std::string& text) {
  const Json content = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!content.is_object()) return std::nullopt;
  PreviousStart start;
  start.launch_info.launch_id = find_bytes(content, "launch");
  start.launch_info.first_process = number_in(content, "first_process");
  start.launch_info.process_count = number_in(content, "processes");
  start.launch_info.rank_count = number_in(content, "ranks");
  start.launch_info.array_task = find_bytes(content, "array_task");
  start.launch_info.communicator = find_bytes(content, "communicator");
  start.launch_info.id = parse_id(find_text(content, "id").value_or("")).value_or(Id128{});
  return start;
}

std::optional<PreviousStart> read_note(fs::FileSystem& file_system, const std::string& directory,
                                       std::uint64_t number) {
  std::optional<PreviousStart> found;
  (void)attempt([&] {
    found = parse_marker(
        fs::read_text(file_system, fs::join(directory, marker_name(kTakenMarker, number)), kRecordBytesMax));
  });
  if (found) found->incarnation = number;
  return found;
}

std::vector<std::uint64_t> numbers_among(const std::vector<std::string>& names, std::string_view kind) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : names) {
    if (!name.starts_with(kind)) continue;
    const auto number = parse_number<std::uint64_t>(std::string_view(name).substr(kind.size()));
    if (number && *number <= kNumberMax) numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

std::string marker_name(std::string_view kind, std::uint64_t number) { return compose("{}{}", kind, number); }

std::string taken_marker_text(const LaunchInfo& launch_info) {
  const Json content = {{"launch", bytes_to_json(launch_info.launch_id)},
                        {"first_process", launch_info.first_process},
                        {"processes", launch_info.process_count},
                        {"ranks", launch_info.rank_count},
                        {"array_task", bytes_to_json(launch_info.array_task)},
                        {"communicator", bytes_to_json(launch_info.communicator)},
                        {"id", to_string(launch_info.id)}};
  return content.dump() + "\n";
}

std::vector<std::uint64_t> marker_numbers(fs::FileSystem& file_system, const std::string& directory,
                                          std::string_view kind) {
  return numbers_among(file_system.list(directory), kind);
}

std::uint64_t newest_job_start(fs::FileSystem& file_system, const std::string& directory) {
  const std::vector<std::uint64_t> drains = marker_numbers(file_system, directory, kDrainMarker);
  std::uint64_t newest = 0;
  for (const std::uint64_t start : marker_numbers(file_system, directory, kBegunMarker)) {
    if (std::ranges::find(drains, start) == drains.end()) newest = std::max(newest, start);
  }
  return newest;
}

void mark_ended(fs::FileSystem& file_system, const std::string& directory, std::uint64_t number) {
  if (!file_system.status(fs::join(directory, marker_name(kBegunMarker, number)))) return;
  // Where it is lost, somebody has to look again.
  (void)file_system.create(fs::join(directory, marker_name(kEndedMarker, number)), 0644);
}

bool has_ended(fs::FileSystem& file_system, const std::string& directory, std::uint64_t number) {
  return file_system.status(fs::join(directory, marker_name(kEndedMarker, number))).has_value();
}

std::optional<PreviousStart> previous_start(fs::FileSystem& file_system, const std::string& directory,
                                            std::uint64_t incarnation, const std::string& launch) {
  const std::vector<std::string> names = file_system.list(directory);
  const auto has_marker = [&](std::uint64_t number, std::string_view kind) {
    return std::ranges::binary_search(names, marker_name(kind, number));  // a listing is sorted
  };
  std::vector<std::uint64_t> taken = numbers_among(names, kTakenMarker);
  std::ranges::sort(taken, std::greater<>());
  for (const std::uint64_t number : taken) {
    if (number >= incarnation || has_marker(number, kDrainMarker) || has_marker(number, kWithdrawnMarker)) continue;
    auto found = read_note(file_system, directory, number);
    if (has_marker(number, kBegunMarker) || (found && !launch.empty() && found->launch_info.launch_id == launch))
      return found;
  }
  return std::nullopt;
}

std::optional<PreviousStart> newest_start(fs::FileSystem& file_system, const std::string& directory,
                                          const std::string& launch) {
  return previous_start(file_system, directory, kNumberMax + 1, launch);
}

}  // namespace kedge::persist
