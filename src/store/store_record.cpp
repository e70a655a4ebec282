#include "store/store_record.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/text.hpp"
#include "store/file_name.hpp"

namespace kedge::store {
namespace {

constexpr std::size_t kIdCharacters = 32;
constexpr std::uint64_t kRecordBytesMax = 16384;  // two ids and a path

}  // namespace

std::string read_small_file(fs::FileSystem& file_system, const std::string& directory, std::string_view name) {
  const std::string path = fs::join(directory, name);
  if (!file_system.status(path)) return {};
  const auto file = file_system.open(path, fs::Access::read);
  std::string text(std::min(file->status().size_bytes, kRecordBytesMax), '\0');
  (void)file->copy_out(0, std::as_writable_bytes(std::span(text)), 0);
  return text;
}

Id128 id_in(const std::string& text) { return parse_id(text.substr(0, kIdCharacters)).value_or(Id128{}); }

/// Two ids and the prefix, a line each.
std::string to_text(const StoreRecord& record) {
  return compose("{}\n{}\n{}\n", to_string(record.run_id), to_string(record.place_id), record.prefix);
}

StoreRecord read_store_record(fs::FileSystem& file_system, const std::string& directory) {
  const std::string text = read_small_file(file_system, directory, kRunRecord);
  constexpr std::size_t kPrefixAt = 2 * (kIdCharacters + 1);
  if (text.size() < kPrefixAt + 1 || text[kIdCharacters] != '\n' || text[kPrefixAt - 1] != '\n' || text.back() != '\n')
    return {};
  const Id128 run_id = id_in(text);
  const Id128 place_id = id_in(text.substr(kIdCharacters + 1));
  if (run_id.is_none() || place_id.is_none()) return {};
  return {run_id, place_id, text.substr(kPrefixAt, text.size() - kPrefixAt - 1)};
}

}  // namespace kedge::store
