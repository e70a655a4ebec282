#include "tools/container_view.hpp"

#include <variant>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "format/on_disk.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

std::uint64_t total_bytes(const std::vector<format::StoredRegion>& regions) {
  std::uint64_t total = 0;
  for (const auto& region : regions) total += region.size_bytes;
  return total;
}

std::string place_text(const format::RegionSpec& spec) {
  if (spec.is_routed) return format::is_empty_directory(spec) ? "routed, empty directory" : "routed file";
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
               {"offset", region.offset}, {"bytes", region.size_bytes},     {"routed", spec.is_routed}};
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

std::uint64_t whole_bytes(const format::SetDescriptor& set) { return format::kSuperblockBytes + set.parity_bytes; }

std::string crc_text(std::uint32_t crc) { return compose("{:08x}", crc); }

std::string_view kind_name(format::SetFileKind kind) {
  return kind == format::SetFileKind::parity ? "parity" : "set descriptor";
}

/// A scheme's name such as "xor" or "rs 2".
std::string name_of(const format::SetDescriptor& set) {
  if (set.scheme == Scheme::rs) return compose("rs {}", set.parity_count);
  return std::string(to_string(set.scheme));
}

}  // namespace

Content read_content(const OpenedFile& opened, const std::string& path) {
  Content content;
  content.path = path;
  content.superblock = format::decode_superblock(opened.first, path);
  content.damage = attempt([&] {
    const format::ContainerReader reader(*opened.file, opened.size_bytes, path);
    content.regions = reader.regions();
  });
  if (content.damage && content.damage->code != ErrorCode::corrupt) throw Error(*content.damage);
  return content;
}

Json content_json(const Content& content) {
  const format::Superblock& superblock = content.superblock;
  Json json = commit_json(superblock.commit);
  json["path"] = content.path;
  json["kind"] = "container";
  json["format"] = format::kFormatVersion;
  json["logical_rank"] = superblock.logical_rank.value;
  json["file_bytes"] = superblock.file_size;
  json["region_bytes"] = total_bytes(content.regions);
  json["regions"] = Json::array();
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

std::string set_line(const format::SetDescriptor& set) {
  return compose("{} of set {} ({}), generation {}, rank {}", kind_name(set.kind), set.set_number, name_of(set),
                 set.generation, holder(set).logical_rank.value);
}

std::string set_text(const format::SetDescriptor& set, const std::string& path) {
  Table head("ll");
  head.add({std::string(kind_name(set.kind)), printable(path)});
  head.add({"scheme", name_of(set)});
  head.add({"set", compose("{}", set.set_number)});
  head.add({"position", compose("{} of {}", set.position, set.members.size())});
  head.add({"logical rank", compose("{} of {}", holder(set).logical_rank.value, set.world_size)});
  head.add({"generation", compose("{}", set.generation)});
  head.add({"commit id", to_string(set.commit_id)});
  head.add({"protection id", to_string(set.protection_id)});
  head.add({"run", to_string(set.run_id)});
  if (set.kind == format::SetFileKind::parity) {
    head.add({"parity", compose("{} ({} bytes), crc32c {}", human_bytes(set.parity_bytes), set.parity_bytes,
                                crc_text(set.parity_crc))});
  }
  Table members("rrrl");
  members.add({"position", "rank", "container bytes", "crc32c"});
  for (std::size_t i = 0; i < set.members.size(); ++i) {
    const format::SetMember& member = set.members[i];
    members.add({compose("{}", i), compose("{}", member.logical_rank.value), compose("{}", member.size_bytes),
                 crc_text(member.crc)});
  }
  return head.text() + "\n" + members.text();
}

Json set_json(const format::SetDescriptor& set, const std::string& path) {
  Json json = {{"path", path},
               {"kind", set.kind == format::SetFileKind::parity ? "parity" : "descriptor"},
               {"format", format::kSetVersion},
               {"scheme", to_string(set.scheme)},
               {"parities", set.parity_count},
               {"set", set.set_number},
               {"position", set.position},
               {"generation", set.generation},
               {"commit_id", to_string(set.commit_id)},
               {"protection_id", to_string(set.protection_id)},
               {"run_id", to_string(set.run_id)},
               {"logical_rank", holder(set).logical_rank.value},
               {"world_size", set.world_size},
               {"file_bytes", whole_bytes(set)},
               {"parity_bytes", set.parity_bytes},
               {"parity_crc", set.parity_crc},
               {"members", Json::array()}};
  for (const format::SetMember& member : set.members) {
    json["members"].push_back(
        {{"logical_rank", member.logical_rank.value}, {"bytes", member.size_bytes}, {"crc", member.crc}});
  }
  return json;
}

}  // namespace kedge::tools
