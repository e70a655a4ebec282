#include "persist/run_record.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "persist/run_start.hpp"
#include "persist/start_markers.hpp"

namespace kedge::persist {
namespace {

constexpr std::string_view kRunFile = "run.json";

/// A record that says another id than was written would make the run forget all that it has.
std::string record_checksum(const Json& content) {
  const std::string text = content.dump();
  return compose("{:08x}", crc32c(std::as_bytes(std::span(text))));
}

std::optional<RunRecord> parse_record(const std::string& text) {
  Json content = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!content.is_object()) return std::nullopt;
  const auto id = parse_id(find_text(content, "run_id").value_or(""));
  const auto check = find_text(content, "crc32c");
  content.erase("crc32c");
  if (!id || id->is_none() || check != record_checksum(content)) return std::nullopt;
  RunRecord record;
  record.run_id = *id;
  record.prefix = find_bytes(content, "prefix");
  record.prefix_id = parse_id(find_text(content, "place_id").value_or("")).value_or(Id128{});
  if (content.contains("fingerprint")) record.fingerprint = bytes_from_json(content["fingerprint"]);
  record.store = find_bytes(content, "store");
  if (content.contains("former_prefixes") && content["former_prefixes"].is_array()) {
    for (const Json& path : content["former_prefixes"]) {
      if (auto former = bytes_from_json(path)) record.former_prefixes.push_back(*std::move(former));
    }
  }
  if (content.contains("given_up") && content["given_up"].is_array()) {
    for (const Json& one : content["given_up"]) {
      if (const auto run = one.is_string() ? parse_id(one.get<std::string>()) : std::nullopt) {
        record.given_up_runs.push_back(*run);
      }
    }
  }
  return record;
}

}  // namespace

std::string run_record_path(std::string_view directory) { return fs::join(directory, kRunFile); }

std::string run_record_text(const std::string& run, const RunRecord& record) {
  Json json = {{"format", 1},
               {"run", run},
               {"run_id", to_string(record.run_id)},
               {"place_id", to_string(record.prefix_id)},
               {"prefix", bytes_to_json(record.prefix)},
               {"former_prefixes", Json::array()}};
  for (const std::string& path : record.former_prefixes) json["former_prefixes"].push_back(bytes_to_json(path));
  if (record.fingerprint) json["fingerprint"] = bytes_to_json(*record.fingerprint);
  if (!record.store.empty()) json["store"] = bytes_to_json(record.store);
  if (!record.given_up_runs.empty()) {
    json["given_up"] = Json::array();
    for (const Id128& run_id : record.given_up_runs) json["given_up"].push_back(to_string(run_id));
  }
  json["crc32c"] = record_checksum(json);
  return json.dump(2) + "\n";
}

FoundRecord read_run_record(fs::FileSystem& file_system, const std::string& directory) {
  const std::string path = run_record_path(directory);
  FoundRecord found;
  if (!file_system.status(path)) return found;
  // A record that cannot be read is rebuilt like a damaged one, from the notes of earlier starts.
  found.unreadable = attempt([&] { found.record = parse_record(fs::read_text(file_system, path, kRecordBytesMax)); });
  found.is_damaged = !found.record;
  return found;
}

std::optional<RunRecord> read_record_of_newest_start(fs::FileSystem& file_system, const std::string& directory) {
  std::vector<std::uint64_t> starts = marker_numbers(file_system, directory, kBegunMarker);
  std::ranges::sort(starts, std::greater<>());
  for (const std::uint64_t number : starts) {
    const std::string path = fs::join(directory, marker_name(kBegunMarker, number));
    std::optional<RunRecord> found;
    (void)attempt([&] { found = parse_record(fs::read_text(file_system, path, kRecordBytesMax)); });
    if (found) return found;
  }
  return std::nullopt;
}

void write_run_record(const RunStart& start, const RunRecord& record) {
  const RecordDirectory& directory = start.directory();
  directory.replace(kRunFile, run_record_text(directory.run(), record),
                    compose("{}.new-{}", kRunFile, start.incarnation()));
}

void record_store(const RunStart& start, const std::string& store) {
  start.require_newest();
  const RecordDirectory& directory = start.directory();
  std::optional<RunRecord> record = read_run_record(directory.file_system(), directory.path()).record;
  if (!record || record->store == store) return;
  record->store = store;
  write_run_record(start, *record);
}

std::optional<std::string> find_text(const Json& content, const char* key) {
  if (!content.contains(key) || !content[key].is_string()) return std::nullopt;
  return content[key].get<std::string>();
}

Json bytes_to_json(const std::string& bytes) {
  if (is_utf8(bytes)) return bytes;
  std::string hex;
  for (const char c : bytes) hex += compose("{:02x}", static_cast<unsigned char>(c));
  return {{"hex", hex}};
}

std::optional<std::string> bytes_from_json(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return std::nullopt;
  const std::string hex = find_text(value, "hex").value_or("");
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    const char* end = hex.data() + i + 2;
    if (std::from_chars(hex.data() + i, end, byte, 16).ptr != end) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::string find_bytes(const Json& content, const char* key) {
  return content.contains(key) ? bytes_from_json(content[key]).value_or("") : "";
}

}  // namespace kedge::persist
