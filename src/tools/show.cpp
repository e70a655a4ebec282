// kedge show FILE: superblock and regions of one container; the set of a parity file or set descriptor.
#include <chrono>
#include <memory>
#include <variant>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "tools/examine.hpp"
#include "tools/outcome.hpp"
#include "tools/set_file.hpp"
#include "tools/table.hpp"

namespace kedge::tools {
namespace {

struct Arguments {
  std::string path;
  bool json = false;
};

// What could be read of a container; regions only if its index is whole.
struct Content {
  std::string path;
  format::Superblock superblock;
  std::vector<format::PlacedRegion> regions;
  std::optional<Failure> damage;
};

std::string utc(std::int64_t time_ns) {
  using namespace std::chrono;
  const sys_time<nanoseconds> time{nanoseconds(time_ns)};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(floor<seconds>(time - day));
  return compose("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                 clock.minutes().count(), clock.seconds().count());
}

std::string id_or_none(const Id128& id) { return id.is_none() ? "none" : to_string(id); }

std::string size_text(std::uint64_t size_bytes) {
  return size_bytes < 1024 ? compose("{} bytes", size_bytes)
                           : compose("{} ({} bytes)", human_bytes(size_bytes), size_bytes);
}

std::uint64_t total_bytes(const std::vector<format::PlacedRegion>& regions) {
  std::uint64_t total = 0;
  for (const auto& region : regions) total += region.size_bytes;
  return total;
}

std::string place_text(const format::RegionSpec& spec) {
  if (spec.routed) return "routed file";
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

Json shape_json(const Shape& shape) {
  Json extents = Json::array();
  for (const std::uint64_t extent : shape.extents()) extents.push_back(extent);
  return extents;
}

Json region_json(const format::PlacedRegion& region) {
  const format::RegionSpec& spec = region.spec;
  Json json = {{"name", spec.name},       {"dtype", to_string(spec.dtype)}, {"shape", shape_json(spec.shape)},
               {"offset", region.offset}, {"bytes", region.size_bytes},     {"routed", spec.routed}};
  if (const auto* shard = std::get_if<Shard>(&spec.placement)) {
    json["placement"] = "shard";
    json["global_shape"] = shape_json(shard->global_shape);
    json["global_offset"] = shape_json(shard->offset);
  } else {
    json["placement"] = std::holds_alternative<Replicated>(spec.placement) ? "replicated" : "own";
  }
  return json;
}

Json content_json(const Content& content) {
  const format::Superblock& superblock = content.superblock;
  Json json = {{"path", content.path},
               {"kind", "container"},
               {"format", format::kFormatVersion},
               {"tag", superblock.tag},
               {"generation", superblock.generation},
               {"commit_id", to_string(superblock.commit_id)},
               {"parent_commit_id", nullptr},
               {"run_id", to_string(superblock.run_id)},
               {"incarnation", superblock.incarnation},
               {"logical_rank", superblock.logical_rank.value},
               {"world_size", superblock.world_size},
               {"time", utc(superblock.time_ns)},
               {"time_ns", superblock.time_ns},
               {"file_bytes", superblock.file_size},
               {"region_bytes", total_bytes(content.regions)},
               {"regions", Json::array()}};
  if (!superblock.parent_commit_id.is_none()) json["parent_commit_id"] = to_string(superblock.parent_commit_id);
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
  head.add({"tag", printable(superblock.tag)});
  head.add({"generation", compose("{}", superblock.generation)});
  head.add({"commit id", to_string(superblock.commit_id)});
  head.add({"parent", id_or_none(superblock.parent_commit_id)});
  head.add({"run", to_string(superblock.run_id)});
  head.add({"incarnation", compose("{}", superblock.incarnation)});
  head.add({"logical rank", compose("{} of {}", superblock.logical_rank.value, superblock.world_size)});
  head.add({"written", utc(superblock.time_ns)});
  head.add({"file", size_text(superblock.file_size)});
  if (content.damage) return head.text();
  head.add({"regions", compose("{}, {}", content.regions.size(), size_text(total_bytes(content.regions)))});
  if (content.regions.empty()) return head.text();

  Table regions("lllrrl");
  regions.add({"region", "dtype", "shape", "bytes", "offset", "place"});
  for (const auto& region : content.regions) {
    regions.add({printable(region.spec.name), std::string(to_string(region.spec.dtype)), to_string(region.spec.shape),
                 compose("{}", region.size_bytes), region.size_bytes == 0 ? "-" : compose("{}", region.offset),
                 place_text(region.spec)});
  }
  return head.text() + "\n" + regions.text();
}

// A container or set file, whose first bytes mark it as one.
OpenedFile open_marked(fs::FileSystem& file_system, const std::string& path) {
  const std::string real_path = file_system.canonical(path);  // a link that the user names himself is followed
  const auto status = file_system.status(real_path);
  if (status && status->kind == fs::FileStatus::Kind::directory) {
    throw Error(Failure{ErrorCode::invalid_argument,
                        "a folder: name one of the containers in it, or check all with kedge verify", -1, path, 0});
  }
  OpenedFile opened = open_file(file_system, real_path);
  if (opened.kind != FileKind::container && opened.kind != FileKind::set_file) throw refusal(opened.kind, path);
  const std::string beginning = damaged_beginning(opened);
  if (!beginning.empty()) throw Error(Failure{ErrorCode::corrupt, beginning, -1, path, 0});
  return opened;
}

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

// The rest may be lost: what the beginning says is shown all the same.
Outcome show_set(const Arguments& arguments, const OpenedFile& opened) {
  const format::SetDescriptor set = format::decode_set(opened.first, arguments.path);
  const auto damage = attempt([&] { check_set_size(set, opened.size_bytes, arguments.path); });
  if (arguments.json) {
    Json json = set_json(set, arguments.path);
    if (damage) json["damage"] = damage->message;
    print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    print(set_text(set, arguments.path));
  }
  if (!damage) return Outcome::ok;
  complain(describe(*damage));
  return Outcome::damaged;
}

Outcome show(const Arguments& arguments) {
  const auto file_system = fs::posix_file_system();
  const OpenedFile opened = open_marked(*file_system, arguments.path);
  if (opened.kind == FileKind::set_file) return show_set(arguments, opened);
  const Content content = read_content(opened, arguments.path);
  // Names may be any bytes; JSON must stay JSON.
  print(arguments.json ? content_json(content).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                       : content_text(content));
  if (!content.damage) return Outcome::ok;
  complain(describe(*content.damage));
  return Outcome::damaged;
}

}  // namespace

Command add_show(CLI::App& program) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand(
      "show", "What one container holds: names, dtypes, shapes, sizes; or whom a parity file protects");
  parser
      ->add_option("FILE", arguments->path,
                   "A file of a store's folder: rank-<r>.<n>.h5, parity-<r>.<n>.kedge or set-<r>.<n>.kedge")
      ->required();
  parser->add_flag("--json", arguments->json, "For programs");
  parser->footer(
      "Reads and checks superblock and index, or the set's description, alone; kedge verify checks every byte.");
  return {parser, [arguments] { return show(*arguments); }};
}

}  // namespace kedge::tools
