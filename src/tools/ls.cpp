// kedge ls [PREFIX|STORE]: lists checkpoints.
#include "tools/ls.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <set>

#include "base/attempt.hpp"
#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "persist/tags.hpp"
#include "tools/tag_location.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

struct LsArguments {
  std::string path;
  bool json = false;
  bool tags = false;
};

/// Tags for completion, each once.
std::string tags_of(fs::FileSystem& file_system, const std::string& path) {
  std::set<std::string> seen;
  std::string text;
  for (const persist::TagEntry& entry : persist::list_tags(file_system, path).entries) {
    if (seen.insert(entry.commit.tag).second) text += printable(entry.commit.tag) + "\n";
  }
  return text;
}

Listing look(fs::FileSystem& file_system, const std::string& path, bool configured, bool json) {
  const auto status = status_of(file_system, path);
  if (!status) {
    refuse(ErrorCode::not_found,
           configured ? "there is no such directory (it is the one in persistent.path); name another directory, or see "
                        "kedge config for where the option was set"
                      : "there is no such directory; check the path",
           path);
  }
  if (status->kind != fs::FileStatus::Kind::directory) {
    refuse(ErrorCode::invalid_argument, "it is a file; kedge show lists its content", path);
  }
  const std::string directory = file_system.canonical(path);
  const std::vector<std::string> names = file_system.list(directory);
  switch (classify_directory(names)) {
    case DirectoryKind::store: return list_store(file_system, directory, path, json);
    case DirectoryKind::prefix:
    case DirectoryKind::empty: return list_prefix(file_system, directory, path, json);
    case DirectoryKind::tag:
      refuse(ErrorCode::invalid_argument, "it is the directory of one checkpoint; kedge show lists its content", path);
    case DirectoryKind::foreign: break;
  }
  refuse(
      ErrorCode::mismatch,
      compose(
          "neither a prefix (tag directories, .kedge) nor a run's directory on a node-local store (rank-<r>.<n>.h5){}",
          run_directory_hint(names)),
      path);
}

Outcome ls(const LsArguments& arguments) {
  const auto file_system = fs::posix_file_system();
  const bool configured = arguments.path.empty();
  const std::string path = configured ? configured_prefix() : arguments.path;
  if (arguments.tags) {
    print(tags_of(*file_system, file_system->canonical(path)));
    return Outcome::ok;
  }
  const Listing listing = look(*file_system, path, configured, arguments.json);
  print(listing.output);
  return listing.outcome;
}

}  // namespace

Command add_ls(CLI::App& program) {
  auto arguments = std::make_shared<LsArguments>();
  CLI::App* parser = program.add_subcommand("ls", "List the checkpoints on a prefix or in a node's store");
  parser->add_option("PREFIX|STORE", arguments->path,
                     "A directory with tag directories, or a run's directory on a node-local store; default: the "
                     "configured prefix (persistent.path)");
  CLI::Option* json = parser->add_flag("--json", arguments->json, "JSON output for programs");
  parser->add_flag("--tags", arguments->tags, "Of a prefix: only the tags, one a line, for scripts")->excludes(json);
  parser->footer(
      "Newest first. Does not read the data: kedge verify does.\n"
      "Exit status: 0, 1 if a checkpoint is damaged, 2 if something could not be checked.");
  return {parser, [arguments] { return ls(*arguments); }};
}

std::string failed_flush_text(const store::FailedFlush& failed) {
  const double age_s = static_cast<double>(system_clock()->wall_ns() - failed.time_ns) * 1e-9;
  return compose("{}: flush failed {} ago{}: {}\n", printable(failed.tag), human_seconds(std::max(age_s, 0.0)),
                 failed.tries > 1 ? compose(" (tried {} times)", failed.tries) : "", printable(failed.reason));
}

Json failed_flush_json(const store::FailedFlush& failed) {
  return {{"tag", failed.tag},           {"generation", failed.generation}, {"commit_id", to_string(failed.commit_id)},
          {"time", utc(failed.time_ns)}, {"time_ns", failed.time_ns},       {"tries", failed.tries},
          {"reason", failed.reason}};
}

}  // namespace kedge::tools
