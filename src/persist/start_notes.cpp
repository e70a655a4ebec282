#include "persist/start_notes.hpp"

#include <algorithm>
#include <charconv>
#include <span>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "commits/head_check.hpp"
#include "persist/record_json.hpp"

namespace kedge::persist {
namespace {

constexpr int kSpareNumbers = 1000;
// No start of ours can have had a larger one, and all would be refused after it.
constexpr std::uint64_t kNumberMax = commits::kGenerationMax / commits::kGenerationsPerIncarnation - kSpareNumbers;
constexpr std::uint64_t kNoteBytesMax = 65536;

int number_in(const Json& content, const char* key) {
  const auto found = content.find(key);
  return found != content.end() && found->is_number_integer() ? found->get<int>() : -1;
}

std::optional<StartBefore> parse_note(const std::string& text) {
  const Json content = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!content.is_object()) return std::nullopt;
  StartBefore start;
  start.starter.launch = bytes_in(content, "launch");
  start.starter.first = number_in(content, "first_process");
  start.starter.launched = number_in(content, "processes");
  start.starter.ranks = number_in(content, "ranks");
  start.starter.array_task = bytes_in(content, "array_task");
  start.starter.communicator = bytes_in(content, "communicator");
  start.starter.id = parse_id(text_in(content, "id").value_or("")).value_or(Id128{});
  const auto ended = content.find("ended");
  start.ended = ended != content.end() && ended->is_boolean() && ended->get<bool>();
  return start;
}

}  // namespace

std::string note_of(const Starter& starter, bool ended) {
  const Json content = {{"launch", bytes_json(starter.launch)},
                        {"first_process", starter.first},
                        {"processes", starter.launched},
                        {"ranks", starter.ranks},
                        {"array_task", bytes_json(starter.array_task)},
                        {"communicator", bytes_json(starter.communicator)},
                        {"id", to_string(starter.id)},
                        {"ended", ended}};
  return content.dump() + "\n";
}

std::vector<std::uint64_t> numbers_of_notes(fs::FileSystem& file_system, const std::string& directory,
                                            std::string_view kind) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : file_system.list(directory)) {
    if (!name.starts_with(kind)) continue;
    std::uint64_t number = 0;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kind.size(), end, number);
    const bool is_number = parsed.ec == std::errc{} && parsed.ptr == end;
    if (is_number && number <= kNumberMax) numbers.push_back(number);
  }
  return numbers;
}

/// What cannot be read refuses no start.
std::optional<StartBefore> start_before(fs::FileSystem& file_system, const std::string& directory,
                                        std::uint64_t incarnation) {
  const std::vector<std::uint64_t> drains = numbers_of_notes(file_system, directory, kDrainNote);
  std::uint64_t newest = 0;
  for (const std::uint64_t number : numbers_of_notes(file_system, directory, kTakenNote)) {
    if (number < incarnation && std::ranges::find(drains, number) == drains.end()) newest = std::max(newest, number);
  }
  std::optional<StartBefore> found;
  if (newest == 0) return found;
  (void)attempt([&] {
    const auto file = file_system.open(fs::join(directory, compose("{}{}", kTakenNote, newest)), fs::Access::read);
    std::string text(std::min<std::uint64_t>(file->status().size_bytes, kNoteBytesMax), '\0');
    (void)file->copy_out(0, std::as_writable_bytes(std::span(text)), 0);
    found = parse_note(text);
  });
  if (found) found->incarnation = newest;
  return found;
}

}  // namespace kedge::persist
