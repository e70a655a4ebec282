#include "tools/container_view.hpp"

#include <variant>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "format/on_disk.hpp"
#include "tools/table.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

std::uint64_t total_bytes(const std::vector<format::StoredRegion>& regions) {
  std::uint64_t total = 0;
  for (const auto& region : regions) total += region.size_bytes;
  return total;
}

std::string place_text(const format::RegionSpec& spec) {
  if (spec.routed) return format::is_empty_directory(spec) ? "routed, empty directory" : "routed file";
  if (const auto* shard = std::get_if<Shard>(&spec.placement)) {
    return compose("shard of {} at ({})", to_string(shard->global_shape), [&] {
      std::string text;
      for (const std::uint64_t start : shard->offset.extents()) {
        text += compose("{}{}", text.empty() ? "" : ", ", start);
      }
      return text;
    }());
  }
  return std::holds_alternative<Replicated>(spec.placement) ? "replicated" : "rank's own";
}

Json region_json(const format::StoredRegion& region) {
  const format::RegionSpec& spec = region.spec;
  Json json = {{"name", spec.name},       {"dtype", to_string(spec.dtype)}, {"shape", shape_json(spec.shape)},
               {"offset", region.offset}, {"bytes", region.size_bytes},     {"routed", spec.routed}};
  if (!spec.members.empty()) json["members"] = spec.members;
  if (const auto* shard = std::get_if<Shard>(&spec.placement)) {
    json["placement"] = "shard";
    json["global_shape"] = shape_json(shard->global_shape);
    json["global_offset"] = shape_json(shard->offset);
  } else {
    json["placement"] = std::holds_alternative<Replicated>(spec.placement) ? "replicated" : "own";
  }
  return json;
}

}  // namespace

Content read_content(const OpenedFile& opened, const std::string& path) {
  Content content;
  content.path = path;
  content.superblock = format::decode(opened.first, path);
  content.damage = attempt([&] {
    const format::ContainerReader reader(*opened.file, opened.size_bytes, path);
    content.regions = reader.regions();
  });
  if (content.damage && content.damage->code != ErrorCode::corrupt) throw Error(*content.damage);
  return content;
}

Json content_json(const Content& content) {
  const format::Superblock& superblock = content.superblock;
  Json json = {{"path", content.path},
               {"kind", "container"},
               {"format", format::kFormatVersion},
               {"tag", superblock.commit.tag},
               {"generation", superblock.commit.generation},
               {"commit_id", to_string(superblock.commit.id)},
               {"parent_commit_id", nullptr},
               {"run_id", to_string(superblock.commit.run_id)},
               {"incarnation", superblock.commit.incarnation},
               {"logical_rank", superblock.logical_rank.value},
               {"world_size", superblock.commit.world_size},
               {"time", utc(superblock.commit.time_ns)},
               {"time_ns", superblock.commit.time_ns},
               {"file_bytes", superblock.file_size},
               {"region_bytes", total_bytes(content.regions)},
               {"regions", Json::array()}};
  if (!superblock.commit.parent_id.is_none()) json["parent_commit_id"] = to_string(superblock.commit.parent_id);
  for (const auto& region : content.regions) json["regions"].push_back(region_json(region));
  if (content.damage) {
    json["damage"] = content.damage->message;
    json["regions"] = nullptr;
    json["region_bytes"] = nullptr;
  }
  return json;
}

std::string content_text(const Content& content) {
  const format::Superblock& superblock = content.superblock;
  Table head("ll");
  head.add({"container", printable(content.path)});
  head.add({"tag", printable(superblock.commit.tag)});
  head.add({"generation", compose("{}", superblock.commit.generation)});
  head.add({"commit id", to_string(superblock.commit.id)});
  head.add({"parent", id_or_none(superblock.commit.parent_id)});
  head.add({"run", to_string(superblock.commit.run_id)});
  head.add({"incarnation", compose("{}", superblock.commit.incarnation)});
  head.add({"logical rank", compose("{} of {}", superblock.logical_rank.value, superblock.commit.world_size)});
  head.add({"written", utc(superblock.commit.time_ns)});
  head.add({"file", size_text(superblock.file_size)});
  if (content.damage) return head.text();
  head.add({"regions", compose("{}, {}", content.regions.size(), size_text(total_bytes(content.regions)))});
  if (content.regions.empty()) return head.text();

  Table regions("lllrrl");
  regions.add({"region", "dtype", "shape", "bytes", "offset", "placement"});
  for (const auto& region : content.regions) {
    regions.add({printable(region.spec.name), dtype_text(region.spec.dtype, region.spec.members),
                 to_string(region.spec.shape), compose("{}", region.size_bytes),
                 region.size_bytes == 0 ? "-" : compose("{}", region.offset), place_text(region.spec)});
  }
  return head.text() + "\n" + regions.text();
}

}  // namespace kedge::tools
