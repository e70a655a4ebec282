#include "tools/store_view.hpp"

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "commits/commit_names.hpp"
#include "store/file_name.hpp"
#include "tools/container_view.hpp"
#include "tools/examine.hpp"
#include "tools/saved_regions.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

struct StoreContent {
  std::map<std::uint32_t, Content> containers;  ///< of the newest commit, by rank
  std::set<std::uint64_t> older;                ///< generations
  std::vector<Failure> damage;
};

/// Files that the job unseals or removes meanwhile are left out.
std::optional<Content> content_of(fs::FileSystem& file_system, const std::string& path) {
  const OpenedFile opened = open_file(file_system, path);
  if (opened.kind == FileKind::unsealed) return std::nullopt;
  if (opened.kind != FileKind::container) throw refusal(opened.kind, path);
  return read_content(opened, path);
}

StoreContent read_store(fs::FileSystem& file_system, const std::string& directory) {
  StoreContent store;
  std::uint64_t newest = 0;
  for (const std::string& name : file_system.list(directory)) {
    const auto parsed = store::parse_file_name(name);
    if (!parsed || parsed->kind != store::FileKind::container) continue;
    std::optional<Content> content;
    const auto failure = attempt([&] { content = content_of(file_system, fs::join(directory, name)); });
    if (failure && failure->code != ErrorCode::not_found) store.damage.push_back(*failure);
    if (!content) continue;
    if (content->damage) store.damage.push_back(*content->damage);
    const std::uint64_t generation = content->superblock.commit.generation;
    if (generation < newest) store.older.insert(generation);
    if (generation < newest) continue;
    if (generation > newest) {
      if (newest != 0) store.older.insert(newest);
      store.containers.clear();
    }
    newest = generation;
    store.containers.insert_or_assign(content->superblock.logical_rank.value, *std::move(content));
  }
  return store;
}

std::string ranks_here(const StoreContent& store) {
  std::vector<std::uint32_t> ranks;
  for (const auto& [rank, content] : store.containers) ranks.push_back(rank);
  return compose("rank{} {}", ranks.size() == 1 ? "" : "s", commits::ranks_text(ranks));
}

std::string head_text(const StoreContent& store, const std::string& shown) {
  const CommitHead& commit = store.containers.begin()->second.superblock.commit;
  Table head("ll");
  head.add({"store", printable(shown)});
  head.add({"tag", printable(commit.tag)});
  head.add({"generation", compose("{}", commit.generation)});
  head.add({"commit id", to_string(commit.id)});
  head.add({"parent", id_or_none(commit.parent_id)});
  head.add({"run", to_string(commit.run_id)});
  head.add({"incarnation", compose("{}", commit.incarnation)});
  head.add({"written", utc(commit.time_ns)});
  head.add({"ranks", compose("{}", commit.world_size)});
  head.add({"here", compose("{} of {}: of {}", store.containers.size(), count_text(commit.world_size, "container"),
                            ranks_here(store))});
  if (commit.is_output) head.add({"output", "yes"});
  return head.text();
}

Json head_json(const StoreContent& store, const std::string& shown) {
  Json json = commit_json(store.containers.begin()->second.superblock.commit);
  json["path"] = shown;
  json["kind"] = "store";
  json["ranks"] = Json::array();
  for (const auto& [rank, content] : store.containers) json["ranks"].push_back(rank);
  return json;
}

Outcome show_rank(const StoreContent& store, std::uint32_t rank, bool json, const std::string& shown) {
  const auto found = store.containers.find(rank);
  if (found == store.containers.end()) {
    refuse(ErrorCode::invalid_argument,
           compose("--rank {}: of the newest checkpoint, this store has {}", rank, ranks_here(store)), shown);
  }
  print(json ? json_text(content_json(found->second)) : content_text(found->second));
  return Outcome::ok;
}

}  // namespace

Outcome show_store(fs::FileSystem& file_system, const std::string& directory, const std::string& shown,
                   const TagViewOptions& options) {
  const StoreContent store = read_store(file_system, directory);
  if (store.containers.empty()) {
    if (!store.damage.empty()) throw Error(store.damage.front());
    refuse(ErrorCode::not_found, "no container is sealed in this store yet; see kedge ls", shown);
  }
  if (options.rank) return show_rank(store, *options.rank, options.json, shown);
  SavedRegions regions;
  for (const auto& [rank, content] : store.containers) {
    for (const format::StoredRegion& region : content.regions) regions.add(rank, region);
  }
  if (store.containers.size() < store.containers.begin()->second.superblock.commit.world_size) regions.set_incomplete();
  if (options.json) {
    Json json = head_json(store, shown);
    json["arrays"] = regions.arrays_json(options.blocks);
    json["regions"] = regions.regions_json();
    print(json_text(json));
  } else {
    print(head_text(store, shown) + regions.arrays_text() + regions.regions_text());
    if (options.blocks) print(regions.blocks_text());
    if (!store.older.empty()) {
      print("\n" + fold(compose("older ones are here too: kedge ls {}\n", printable(shell_word(shown)))));
    }
  }
  for (const Failure& one : store.damage) print_error(describe(one));
  return store.damage.empty() ? Outcome::ok : Outcome::damaged;
}

}  // namespace kedge::tools
