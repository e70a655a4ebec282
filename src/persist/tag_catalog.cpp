#include "persist/tag_catalog.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>

#include "base/json.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "commits/head_check.hpp"
#include "kedge/error.hpp"

namespace kedge::persist {
namespace {

constexpr std::uint64_t kCatalogBytesMax = std::uint64_t{256} << 20U;  // more is no catalog of ours
constexpr std::string_view kCrcMember = ",\"crc\":\"";
constexpr std::size_t kTailBytes = kCrcMember.size() + 8 + 2;  // ,"crc":"01234567"}
constexpr std::size_t kDeadLinesMin = 100;                     // fewer are not worth writing the file anew

std::span<const std::byte> text_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// `object` is JSON text that ends with its brace.
std::string with_crc(std::string object) {
  object.pop_back();
  const std::uint32_t crc = crc32c(text_bytes(object));
  return object + compose("{}{:08x}\"}}\n", kCrcMember, crc);
}

std::string added_line(const TagEntry& entry) {
  const Json fields = {{"folder", entry.directory},
                       {"tag", entry.commit.tag},
                       {"generation", entry.commit.generation},
                       {"commit_id", to_string(entry.commit.id)},
                       {"parent_commit_id", to_string(entry.commit.parent_id)},
                       {"run_id", to_string(entry.commit.run_id)},
                       {"run", entry.run},
                       {"incarnation", entry.commit.incarnation},
                       {"world_size", entry.commit.world_size},
                       {"time_ns", entry.commit.time_ns},
                       {"output", entry.commit.is_output},
                       {"total_bytes", entry.total_bytes}};
  return with_crc(Json{{"added", fields}}.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string removed_line(const std::string& directory) {
  return with_crc(Json{{"removed", directory}}.dump(-1, ' ', false, Json::error_handler_t::replace));
}

bool is_intact(std::string_view line) {
  if (line.size() <= kTailBytes) return false;
  const std::string_view content = line.substr(0, line.size() - kTailBytes);
  return line.substr(content.size()) == compose("{}{:08x}\"}}", kCrcMember, crc32c(text_bytes(content)));
}

Id128 id_of(const Json& fields, const char* key) {
  const auto id = parse_id(fields.at(key).get_ref<const std::string&>());
  if (!id) throw Error(ErrorCode::corrupt, "no id");
  return *id;
}

TagEntry entry_of(const Json& fields) {
  TagEntry entry;
  fields.at("folder").get_to(entry.directory);
  fields.at("tag").get_to(entry.commit.tag);
  fields.at("generation").get_to(entry.commit.generation);
  entry.commit.id = id_of(fields, "commit_id");
  entry.commit.parent_id = id_of(fields, "parent_commit_id");
  entry.commit.run_id = id_of(fields, "run_id");
  fields.at("run").get_to(entry.run);
  fields.at("incarnation").get_to(entry.commit.incarnation);
  fields.at("world_size").get_to(entry.commit.world_size);
  fields.at("time_ns").get_to(entry.commit.time_ns);
  entry.commit.is_output = fields.value("output", false);
  fields.at("total_bytes").get_to(entry.total_bytes);
  return entry;
}

// Entries by directory, in order: what was removed leaves a hole.
class CatalogEntries {
 public:
  void apply(std::string_view line) {
    if (!is_intact(line)) return;
    const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) return;
    try {
      if (object.contains("added")) add(entry_of(object["added"]));
      else if (object.contains("removed")) remove(object["removed"].get_ref<const std::string&>());
    } catch (const std::exception&) {  // a right checksum and other fields: of a newer Kedge, for the manifests to tell
    }
  }

  [[nodiscard]] std::vector<TagEntry> live() && {
    std::vector<TagEntry> entries;
    entries.reserve(places_.size());
    for (auto& entry : entries_) {
      if (entry) entries.push_back(std::move(*entry));
    }
    return entries;
  }

 private:
  void add(TagEntry entry) {
    if (commits::check_head(entry.commit)) return;
    remove(entry.directory);
    places_[entry.directory] = entries_.size();
    entries_.emplace_back(std::move(entry));
  }
  void remove(const std::string& directory) {
    const auto place = places_.find(directory);
    if (place == places_.end()) return;
    entries_[place->second].reset();
    places_.erase(place);
  }

  std::vector<std::optional<TagEntry>> entries_;
  std::unordered_map<std::string, std::size_t> places_;
};

std::string read_text(fs::File& file) {
  const std::uint64_t size_bytes = file.status().size_bytes;
  if (size_bytes > kCatalogBytesMax) return {};
  std::string text(size_bytes, '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

TagCatalog::TagCatalog(fs::FileSystem& file_system, const std::string& directory)
    : file_system_(file_system), directory_(directory), path_(fs::join(directory, kTagCatalogFile)) {}

void TagCatalog::add(const TagEntry& entry) { append(added_line(entry)); }

void TagCatalog::remove(const std::string& directory) {
  append(removed_line(directory));
  if (removals_until_check_ && --*removals_until_check_ > 0) return;
  const Content now = read_content();
  const std::size_t live = now.entries.size();
  const std::size_t dead_permitted = 2 * live + kDeadLinesMin;
  const bool crowded = now.line_count - live > dead_permitted;
  if (crowded) rewrite(now.entries);
  // A removal makes two dead lines of one living.
  const std::size_t dead = crowded ? 0 : now.line_count - live;
  removals_until_check_ = (dead_permitted - dead) / 4 + 1;
}

void TagCatalog::add_missing(const std::vector<TagEntry>& entries) {
  std::set<std::string> known;
  for (const TagEntry& entry : read_content().entries) known.insert(entry.directory);
  std::string lines;
  for (const TagEntry& entry : entries) {
    if (!known.contains(entry.directory)) lines += added_line(entry);
  }
  if (!lines.empty()) append(lines);
}

std::vector<TagEntry> TagCatalog::read() { return read_content().entries; }

TagCatalog::Content TagCatalog::read_content() {
  if (!file_system_.status(path_)) return {};
  const std::string text = read_text(*file_system_.open(path_, fs::Access::read));
  CatalogEntries ledger;
  std::size_t lines = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    ledger.apply(std::string_view(text).substr(begin, end - begin));
    ++lines;
    begin = end + 1;
  }
  return {std::move(ledger).live(), lines};
}

void TagCatalog::append(std::string_view line) {
  auto file = file_system_.create(path_, 0644);
  if (!file) file = file_system_.open(path_, fs::Access::read_write);
  if (file->status().links > 1) {  // a backup by hard links must not change with it
    rewrite(read_content().entries);
    file = file_system_.open(path_, fs::Access::read_write);
  }
  const std::uint64_t end = file->status().size_bytes;
  std::string text;
  if (end > 0) {
    std::byte last{};
    file->read(end - 1, std::span(&last, 1));
    if (last != std::byte{'\n'}) text = "\n";  // what a crash tore must not spoil this line
  }
  text += line;
  file->write_with_crc(end, text_bytes(text), 0);
  file->sync();
  if (name_is_durable_) return;
  file_system_.sync_directory(directory_);  // sync also if an earlier start made the file: it may have died before this
  name_is_durable_ = true;
}

void TagCatalog::rewrite(const std::vector<TagEntry>& entries) {
  const std::string temporary = path_ + ".new";
  file_system_.remove(temporary);
  const auto file = file_system_.create(temporary, 0644);
  if (!file) throw Error(Failure{ErrorCode::io, "file already exists; remove it", -1, temporary, 0});
  std::string text;
  for (const TagEntry& entry : entries) text += added_line(entry);
  file->write_with_crc(0, text_bytes(text), 0);
  file->sync();
  file_system_.rename(temporary, path_);
  file_system_.sync_directory(directory_);
}

}  // namespace kedge::persist
