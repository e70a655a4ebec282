#include "store/store_record.hpp"

#include <cstdint>

#include "base/text.hpp"
#include "store/file_name.hpp"

namespace kedge::store {
namespace {

constexpr std::size_t kIdCharacters = 32;
constexpr std::uint64_t kRecordBytesMax = 16384;  // two ids and a few paths

}  // namespace

std::string read_small_file(fs::FileSystem& file_system, const std::string& directory, std::string_view name) {
  const std::string path = fs::join(directory, name);
  if (!file_system.status(path)) return {};
  return fs::read_text(file_system, path, kRecordBytesMax);
}

Id128 parse_leading_id(const std::string& text) { return parse_id(text.substr(0, kIdCharacters)).value_or(Id128{}); }

/// Two ids, a line each, then the paths separated by NUL, which no path contains.
std::string to_text(const StoreRecord& record) {
  std::string paths = record.prefix;
  for (const std::string& name : record.prefix_paths) paths.append(1, '\0').append(name);
  return compose("{}\n{}\n{}\n", to_string(record.run_id), to_string(record.prefix_id), paths);
}

StoreRecord read_store_record(fs::FileSystem& file_system, const std::string& directory) {
  const std::string text = read_small_file(file_system, directory, kRunRecord);
  constexpr std::size_t kPrefixAt = 2 * (kIdCharacters + 1);
  if (text.size() < kPrefixAt + 1 || text[kIdCharacters] != '\n' || text[kPrefixAt - 1] != '\n' || text.back() != '\n')
    return {};
  const Id128 run_id = parse_leading_id(text);
  const Id128 prefix_id = parse_leading_id(text.substr(kIdCharacters + 1));
  if (run_id.is_none() || prefix_id.is_none()) return {};
  StoreRecord record{run_id, prefix_id, {}};
  std::string_view paths = std::string_view(text).substr(kPrefixAt, text.size() - kPrefixAt - 1);
  std::size_t end = paths.find('\0');
  record.prefix = paths.substr(0, end);
  while (end != std::string_view::npos) {
    paths.remove_prefix(end + 1);
    end = paths.find('\0');
    record.prefix_paths.emplace_back(paths.substr(0, end));
  }
  return record;
}

}  // namespace kedge::store
