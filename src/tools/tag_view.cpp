#include "tools/tag_view.hpp"

#include <algorithm>
#include <vector>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "format/on_disk.hpp"
#include "persist/tag_directory.hpp"
#include "tools/container_view.hpp"
#include "tools/saved_regions.hpp"
#include "tools/tag_reader.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

constexpr std::size_t kProblemsShown = 10;

struct Held {
  std::string file;
  std::uint64_t size_bytes = 0;
  std::uint32_t crc = 0;
  std::optional<Failure> failure;
};

struct TagContent {
  TagLocation place;
  persist::TagEntry entry;
  std::optional<std::string> parent_tag;  // if it is in the same prefix
  bool has_view = false;
  std::uint64_t manifest_bytes = 0;
  Attributes attributes;
  std::optional<Failure> attributes_failure;
  SavedRegions regions;
  std::vector<Held> containers;  // by rank
};

// Judges by directory names, without opening manifests.
std::optional<std::string> find_parent(fs::FileSystem& file_system, const TagLocation& place,
                                       const persist::TagEntry& entry) {
  std::optional<std::string> tag;
  static_cast<void>(attempt([&] {
    for (const std::string& name : file_system.list(place.prefix)) {
      const auto parsed = persist::parse_tag_directory_name(name);
      const bool is_parent = parsed && parsed->id_digits == short_id(entry.commit.parent_id);
      if (is_parent && parsed->generation < entry.commit.generation) tag = parsed->tag;
    }
  }));
  return tag;
}

TagContent read_content(fs::FileSystem& file_system, const TagLocation& place) {
  const OpenedManifest manifest = open_manifest(file_system, place);
  TagContent content;
  content.place = place;
  content.entry = manifest.entry;
  if (!content.entry.commit.parent_id.is_none()) content.parent_tag = find_parent(file_system, place, content.entry);
  content.has_view = manifest.reader->head().has_view;
  content.manifest_bytes = manifest.reader->head().file_size;
  content.attributes_failure = attempt([&] { content.attributes = manifest.reader->attributes(); });
  for (std::uint32_t rank = 0; rank < content.entry.commit.world_size; ++rank) {
    Held held;
    held.file = persist::container_file(LogicalRank{rank});
    held.failure = attempt([&] {
      const format::ShardRow row = manifest.reader->row(LogicalRank{rank});
      held.size_bytes = row.size_bytes;
      held.crc = row.crc;
      const auto opened = open_container(file_system, place, manifest.reader->head(), row, LogicalRank{rank});
      for (const auto& region : opened.reader->regions()) content.regions.add(rank, region);
    });
    content.containers.push_back(std::move(held));
  }
  return content;
}

std::uint64_t usable(const TagContent& content) {
  return static_cast<std::uint64_t>(std::count_if(content.containers.begin(), content.containers.end(),
                                                  [](const Held& held) { return !held.failure; }));
}

std::string containers_cell(const TagContent& content) {
  const auto [least, most] =
      std::minmax_element(content.containers.begin(), content.containers.end(),
                          [](const Held& a, const Held& b) { return a.size_bytes < b.size_bytes; });
  std::string text = compose("{}, {}", content.containers.size(), size_text(content.entry.total_bytes));
  if (least->size_bytes != most->size_bytes) {
    text += compose(", from {} to {}", human_bytes(least->size_bytes), human_bytes(most->size_bytes));
  }
  return text;
}

std::string head_text(const TagContent& content) {
  const persist::TagEntry& entry = content.entry;
  Table head("ll");
  head.add({"checkpoint", printable(content.place.shown)});
  head.add({"tag", printable(entry.commit.tag)});
  head.add({"generation", compose("{}", entry.commit.generation)});
  head.add({"commit id", to_string(entry.commit.id)});
  head.add({"parent", id_or_none(entry.commit.parent_id) +
                          (content.parent_tag ? compose(" ({})", printable(*content.parent_tag)) : "")});
  head.add({"run", compose("{} ({})", printable(entry.run), to_string(entry.commit.run_id))});
  head.add({"incarnation", compose("{}", entry.commit.incarnation)});
  head.add({"written", utc(entry.commit.time_ns)});
  head.add({"ranks", compose("{}", entry.commit.world_size)});
  head.add({"containers", containers_cell(content)});
  head.add({"manifest", size_text(content.manifest_bytes)});
  head.add({"HDF5 view", content.has_view ? "yes" : "left out: too many shards"});
  if (entry.commit.is_output) head.add({"output", "yes"});
  head.add({"pinned", entry.pinned ? "yes" : "no"});
  return head.text();
}

std::string attributes_text(const Attributes& attributes) {
  if (attributes.empty()) return {};
  Table table("ll");
  table.add({"attribute", "value"});
  for (const auto& [key, value] : attributes) {
    const auto* text = std::get_if<std::string>(&value);
    table.add({printable(key), text != nullptr ? printable(*text) : attribute_json(value).dump()});
  }
  return "\n" + table.text();
}

std::string containers_text(const TagContent& content) {
  Table table("rlrl");
  table.add({"rank", "container", "bytes", "crc32c"});
  for (std::size_t rank = 0; rank < content.containers.size(); ++rank) {
    const Held& held = content.containers[rank];
    table.add({compose("{}", rank), printable(held.file), compose("{}", held.size_bytes),
               held.failure ? printable(held.failure->message) : compose("{:08x}", held.crc)});
  }
  return "\n" + table.text();
}

Json head_json(const TagContent& content) {
  const persist::TagEntry& entry = content.entry;
  Json json = commit_json(entry.commit);
  json["path"] = content.place.shown;
  json["kind"] = "checkpoint";
  json["directory"] = entry.directory;
  json["run"] = entry.run;
  json["bytes"] = entry.total_bytes;
  json["manifest_bytes"] = content.manifest_bytes;
  json["has_view"] = content.has_view;
  json["output"] = entry.commit.is_output;
  json["pinned"] = entry.pinned;
  json["attributes"] = Json::object();
  for (const auto& [key, value] : content.attributes) json["attributes"][key] = attribute_json(value);
  return json;
}

Json content_json(const TagContent& content, bool with_blocks) {
  Json json = head_json(content);
  json["arrays"] = content.regions.arrays_json(with_blocks);
  json["regions"] = content.regions.regions_json();
  json["containers"] = Json::array();
  for (std::size_t rank = 0; rank < content.containers.size(); ++rank) {
    const Held& held = content.containers[rank];
    json["containers"].push_back({{"rank", rank}, {"file", held.file}, {"bytes", held.size_bytes}, {"crc", held.crc}});
    if (held.failure) json["containers"].back()["problem"] = held.failure->message;
  }
  return json;
}

Outcome report_damage(const TagContent& content) {
  Outcome outcome = Outcome::ok;
  if (content.attributes_failure) {
    outcome = content.attributes_failure->code == ErrorCode::corrupt ? Outcome::damaged : Outcome::not_checked;
    print_error(describe(*content.attributes_failure));
  }
  std::size_t problems = 0;
  for (const Held& held : content.containers) {
    if (!held.failure) continue;
    if (held.failure->code == ErrorCode::corrupt) outcome = Outcome::damaged;
    else if (outcome == Outcome::ok) outcome = Outcome::not_checked;
    if (++problems <= kProblemsShown) print_error(describe(*held.failure));
  }
  if (problems > kProblemsShown) print_error(compose("and {} more", problems - kProblemsShown));
  if (problems > 0) {
    print_error(compose("{} of {} can be used; arrays and regions are listed from these only", usable(content),
                        count_text(content.containers.size(), "container")));
  }
  return outcome;
}

Outcome show_rank(fs::FileSystem& file_system, const TagLocation& place, std::uint32_t rank, bool json) {
  const OpenedManifest manifest = open_manifest(file_system, place);
  const format::ManifestHead& head = manifest.reader->head();
  if (rank >= head.commit.world_size) {
    throw Error(ErrorCode::invalid_argument,
                compose("--rank {}: the checkpoint has ranks 0 to {}", rank, head.commit.world_size - 1));
  }
  const format::ShardRow row = manifest.reader->row(LogicalRank{rank});
  const persist::OpenedContainer opened = open_container(file_system, place, head, row, LogicalRank{rank});
  Content content;
  content.path = fs::join(place.shown, row.file);
  content.superblock = opened.reader->superblock();
  content.regions = opened.reader->regions();
  print(json ? json_text(content_json(content)) : content_text(content));
  return Outcome::ok;
}

}  // namespace

Outcome show_tag(fs::FileSystem& file_system, const TagLocation& place, const TagViewOptions& options) {
  if (options.rank) return show_rank(file_system, place, *options.rank, options.json);
  const TagContent content = read_content(file_system, place);
  if (options.json) {
    print(json_text(content_json(content, options.blocks)));
  } else {
    print(head_text(content) + attributes_text(content.attributes) + content.regions.arrays_text() +
          content.regions.regions_text());
    if (options.blocks) print(content.regions.blocks_text());
    if (options.containers) print(containers_text(content));
  }
  return report_damage(content);
}

}  // namespace kedge::tools
