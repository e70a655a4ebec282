#include "tools/set_file.hpp"

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "tools/table.hpp"

namespace kedge::tools {
namespace {

std::uint64_t whole_bytes(const format::SetDescriptor& set) { return format::kSuperblockBytes + set.parity_bytes; }

std::string crc_text(std::uint32_t crc) { return compose("{:08x}", crc); }

std::string_view kind_name(format::SetFileKind kind) {
  return kind == format::SetFileKind::parity ? "parity" : "set descriptor";
}

/// A scheme's name such as "xor" or "rs 2".
std::string name_of(const format::SetDescriptor& set) {
  if (set.scheme == Scheme::rs) return compose("rs {}", set.parities);
  return std::string(to_string(set.scheme));
}

}  // namespace

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
               {"parities", set.parities},
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
