#include "tools/tag_location.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

#include "base/attempt.hpp"
#include "base/options_load.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "commits/commit_selection.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"
#include "store/file_name.hpp"
#include "tools/outcome.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

using Kind = fs::FileStatus::Kind;

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }  // npos + 1 is 0

TagLocation place_of(const std::string& real_directory, const std::string& shown) {
  return {parent_of(real_directory), name_of(real_directory), shown};
}

struct Candidate {
  bool committed = false;
  std::uint64_t generation = 0;
  std::string directory;
  auto operator<=>(const Candidate&) const = default;
};

// `latest` contains the name of a tag directory beside it.
std::optional<std::string> directory_named_in(fs::FileSystem& file_system, const std::string& path) {
  std::string text = fs::read_text(file_system, path, 256);
  text.resize(std::min(text.find('\n'), text.size()));
  return persist::parse_tag_directory_name(text) ? std::optional(text) : std::nullopt;
}

/// The word "latest" means checkpoints only; outputs are named by their tags.
bool is_named(const persist::TagEntry& entry, const std::string& word) {
  return entry.directory == word || commits::matches_tag(word, entry.commit.tag, entry.commit.is_output);
}

/// Generations of different runs are not comparable: of several runs with the tag, takes the one that made it last.
/// Null if only one run has it.
const persist::TagEntry* last_of_several_runs(const std::vector<persist::TagEntry>& entries, const std::string& word) {
  const persist::TagEntry* last = nullptr;
  bool several = false;
  for (const persist::TagEntry& entry : entries) {
    if (!is_named(entry, word)) continue;
    if (last != nullptr && last->commit.run_id != entry.commit.run_id) several = true;
    if (last == nullptr || last->commit.time_ns < entry.commit.time_ns) last = &entry;
  }
  return several ? last : nullptr;
}

std::string list_available(const persist::TagList& list, const std::string& word) {
  if (list.entries.empty())
    return "no checkpoint was flushed to this prefix yet; kedge ls STORE lists those of a node-local store";
  std::vector<std::string> tags;
  for (const persist::TagEntry& entry : list.entries) tags.push_back(entry.commit.tag);
  if (const auto meant = nearest_name(word, tags))
    return compose("did you mean {}? kedge ls lists all checkpoints", *meant);
  const auto is_checkpoint = [](const persist::TagEntry& entry) { return !entry.commit.is_output; };
  const auto newest = std::ranges::find_if(list.entries, is_checkpoint);
  if (newest == list.entries.end()) return "there are only outputs; kedge ls lists them";
  return compose("the newest is {}; kedge ls lists all checkpoints", newest->commit.tag);
}

std::size_t of_run(const persist::TagList& list, const std::string& run) {
  const auto is_of_run = [&](const persist::TagEntry& entry) { return entry.run == run; };
  return static_cast<std::size_t>(std::ranges::count_if(list.entries, is_of_run));
}

/// `latest` names the newest checkpoint of the run that flushed last.
void name_run(fs::FileSystem& file_system, TagLocation& place) {
  const persist::TagList list = persist::list_tags(file_system, place.prefix);
  const auto is_it = [&](const persist::TagEntry& entry) { return entry.directory == place.directory; };
  const auto found = std::ranges::find_if(list.entries, is_it);
  if (found != list.entries.end() && of_run(list, found->run) != list.entries.size()) place.run = found->run;
}

std::optional<TagLocation> find_location(fs::FileSystem& file_system, const TagQuery& meant) {
  const auto& [word, prefix, run] = meant;
  if (!prefix.empty()) return find_tag(file_system, meant);
  if (auto place = tag_directory_at(file_system, word)) {
    const bool is_latest = name_of(word) == persist::kLatestFile;
    const std::string meant_tag = is_latest ? commits::to_string(latest) : place->directory;
    if (!run.empty()) return find_tag(file_system, {meant_tag, place->prefix, run});
    if (is_latest) name_run(file_system, *place);
    return place;
  }
  if (word.find('/') != std::string::npos) return std::nullopt;
  const auto status = status_of(file_system, word);
  if (!status) return find_tag(file_system, {word, configured_prefix(), run});
  if (status->kind != Kind::directory) return std::nullopt;
  // A directory that is not a checkpoint may have a tag's name by chance.
  std::optional<TagLocation> place;
  static_cast<void>(attempt([&] { place = find_tag(file_system, {word, configured_prefix(), run}); }));
  return place;
}

}  // namespace

std::string missing_prefix_message(bool is_configured) {
  return is_configured ? "there is no such prefix (it is the one in persistent.path); name the job's prefix, run this "
                         "where the job ran, or see kedge config for where the option was set"
                       : "there is no such prefix; check the path";
}

std::string configured_prefix() {
  const LoadedOptions loaded = load_options(process_environment(), ".");
  if (loaded.options.load_failure) throw Error(*loaded.options.load_failure);
  return loaded.options.persistent.path;
}

std::optional<fs::FileStatus> status_of(fs::FileSystem& file_system, const std::string& path) {
  std::optional<fs::FileStatus> status;
  const auto failure = attempt([&] { status = file_system.status(file_system.canonical(path)); });
  if (failure && failure->code != ErrorCode::not_found) throw Error(*failure);
  return status;
}

std::optional<TagLocation> tag_directory_at(fs::FileSystem& file_system, const std::string& path) {
  const auto status = status_of(file_system, path);
  if (!status) return std::nullopt;
  const std::string real_path = file_system.canonical(path);
  if (status->kind == Kind::directory) {
    const bool is_tag_directory = persist::parse_tag_directory_name(name_of(real_path)).has_value();
    if (!is_tag_directory && !file_system.status(fs::join(real_path, persist::kManifestFile))) return std::nullopt;
    return place_of(real_path, path);
  }
  if (name_of(real_path) == persist::kManifestFile) {
    const std::string shown = name_of(path) == persist::kManifestFile ? parent_of(path) : parent_of(real_path);
    return place_of(parent_of(real_path), shown);
  }
  if (name_of(real_path) != persist::kLatestFile) return std::nullopt;
  const auto directory = directory_named_in(file_system, real_path);
  if (!directory) return std::nullopt;
  return TagLocation{parent_of(real_path), *directory, fs::join(parent_of(path), *directory)};
}

TagLocation find_tag(fs::FileSystem& file_system, const TagQuery& meant) {
  const auto& [word, prefix, run] = meant;
  if (!status_of(file_system, prefix)) {
    refuse(ErrorCode::not_found,
           compose("there is no file {}, and the prefix to look for a checkpoint does not exist; use "
                   "--prefix, or set persistent.path",
                   printable(word)),
           prefix);
  }
  const std::string real_prefix = file_system.canonical(prefix);
  persist::TagList list = persist::list_tags(file_system, real_prefix);
  // The run of unreadable directories is unknown: with several runs, they are not the requested one's.
  if (!run.empty() && of_run(list, run) != list.entries.size()) list.unusable_tags.clear();
  if (!run.empty()) std::erase_if(list.entries, [&](const persist::TagEntry& entry) { return entry.run != run; });
  // A newer damaged commit counts as the requested one; an uncommitted directory only if there is nothing else.
  std::optional<Candidate> newest;
  const auto consider = [&](const std::string& directory, bool committed) {
    const auto name = persist::parse_tag_directory_name(directory);
    // An unfinished one has no manifest yet, which would say whether it is a checkpoint.
    if (!name || (directory != word && !commits::matches_tag(word, name->tag, !committed))) return;
    const Candidate candidate{committed, name->generation, directory};
    if (!newest || *newest < candidate) newest = candidate;
  };
  const persist::TagEntry* last = last_of_several_runs(list.entries, word);
  if (last != nullptr) return {real_prefix, last->directory, fs::join(prefix, last->directory), last->run};
  for (const persist::TagEntry& entry : list.entries) {
    if (is_named(entry, word)) consider(entry.directory, true);
  }
  for (const persist::UnusableTag& unusable : list.unusable_tags) consider(unusable.directory, unusable.has_manifest);
  if (newest) return {real_prefix, newest->directory, fs::join(prefix, newest->directory)};
  throw Error(ErrorCode::not_found, compose("no checkpoint{} on {} has the tag {}; {}",
                                            run.empty() ? "" : compose(" of run '{}'", printable(run)),
                                            printable(prefix), printable(word), list_available(list, word)));
}

std::optional<TagLocation> resolve_tag(fs::FileSystem& file_system, const TagQuery& meant) {
  auto place = find_location(file_system, meant);
  if (place && !place->run.empty()) {
    print_error(
        compose("note: {} is of run '{}', the last of several runs that made one; name another with --run, or by its "
                "directory, as kedge ls shows it",
                printable(meant.word), printable(place->run)));
  }
  return place;
}

void add_tag_options(CLI::App& parser, std::string& prefix, std::string& run) {
  parser.add_option("--prefix", prefix, "Prefix on which to look for tags; default: the configured persistent.path")
      ->type_name("PREFIX");
  parser.add_option("--run", run, "Of several runs on a prefix, the one whose checkpoints are meant")
      ->type_name("NAME")
      ->check(CLI::Validator([](const std::string& text) { return std::string(text.empty() ? "is empty" : ""); }, ""));
}

DirectoryKind classify_directory(const std::vector<std::string>& names) {
  const auto any = [&](const auto& is) { return std::any_of(names.begin(), names.end(), is); };
  if (names.empty()) return DirectoryKind::empty;
  if (any([](const std::string& name) { return name == persist::kManifestFile; })) return DirectoryKind::tag;
  if (any([](const std::string& name) { return store::parse_file_name(name).has_value(); }))
    return DirectoryKind::store;
  const bool is_prefix = any(
      [](const std::string& name) { return name == ".kedge" || persist::parse_tag_directory_name(name).has_value(); });
  return is_prefix ? DirectoryKind::prefix : DirectoryKind::foreign;
}

std::string run_directory_hint(const std::vector<std::string>& names) {
  const auto run =
      std::find_if(names.begin(), names.end(), [](const auto& name) { return name.starts_with("kedge-"); });
  return run == names.end() ? "" : compose("; name the run's directory in it, e.g. {}", printable(*run));
}

}  // namespace kedge::tools
