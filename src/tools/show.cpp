// kedge show FILE|TAG|STORE: describes a container, a set file, a whole checkpoint, or what a store has of one.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "tools/container_view.hpp"
#include "tools/examine.hpp"
#include "tools/outcome.hpp"
#include "tools/store_view.hpp"
#include "tools/tag_location.hpp"
#include "tools/tag_view.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

struct ShowArguments {
  std::string what;
  std::string prefix;
  std::string run;
  TagViewOptions view;
};

// A container or set file, judging by its first bytes.
struct Marked {
  OpenedFile opened;
  store::VerifiedFile found;
};

Marked open_marked(fs::FileSystem& file_system, const std::string& path) {
  const std::string real_path = file_system.canonical(path);  // users may name links
  const auto status = file_system.status(real_path);
  if (status && status->kind == fs::FileStatus::Kind::directory) {
    throw Error(Failure{
        ErrorCode::invalid_argument,
        "a directory without checkpoint.h5, and no store; list it with kedge ls, or check all with kedge verify", -1,
        path, 0});
  }
  OpenedFile opened = open_file(file_system, real_path);
  if (is_manifest(opened, store::parse_file_name(path.substr(path.rfind('/') + 1)))) {  // npos + 1 is 0
    throw Error(
        Failure{ErrorCode::mismatch,
                "a store's copy of a manifest; use kedge show TAG for the checkpoint on the prefix, or kedge verify "
                "to check this file",
                -1, path, 0});
  }
  if (opened.kind != FileKind::container && opened.kind != FileKind::set_file) throw refusal(opened.kind, path);
  store::VerifiedFile found = store::verify_file(*opened.file, opened.size_bytes, path, {}, Verify::headers);
  if (!found.superblock && !found.set_descriptor) {
    throw Error(Failure{ErrorCode::corrupt, describe_fault(opened, found, std::nullopt), -1, path, 0});
  }
  return {std::move(opened), std::move(found)};
}

// Shows the head even if the rest is lost.
Outcome show_set(const ShowArguments& arguments, const store::VerifiedFile& found) {
  const format::SetDescriptor& set = found.set_descriptor.value();
  std::optional<Failure> damage;
  if (!found.is_intact()) damage = Failure{ErrorCode::corrupt, found.message, -1, arguments.what, 0};
  if (arguments.view.json) {
    Json json = set_json(set, arguments.what);
    if (damage) json["damage"] = damage->message;
    print(json_text(json));
  } else {
    print(set_text(set, arguments.what));
  }
  if (!damage) return Outcome::ok;
  print_error(describe(*damage));
  return Outcome::damaged;
}

/// The canonical path of a store's directory; nothing for others.
std::optional<std::string> store_at(fs::FileSystem& file_system, const std::string& path) {
  const auto status = status_of(file_system, path);
  if (!status || status->kind != fs::FileStatus::Kind::directory) return std::nullopt;
  std::string directory = file_system.canonical(path);
  if (classify_directory(file_system.list(directory)) != DirectoryKind::store) return std::nullopt;
  return directory;
}

Outcome show_file(fs::FileSystem& file_system, const ShowArguments& arguments) {
  const auto [opened, found] = open_marked(file_system, arguments.what);
  if (arguments.view.rank || arguments.view.containers || arguments.view.blocks) {
    throw Error(Failure{ErrorCode::invalid_argument,
                        "--rank, --containers and --blocks apply to checkpoints, but this is a single file", -1,
                        arguments.what, 0});
  }
  if (found.set_descriptor) return show_set(arguments, found);
  const Content content = read_content(opened, arguments.what);
  print(arguments.view.json ? json_text(content_json(content)) : content_text(content));
  if (!content.damage) return Outcome::ok;
  print_error(describe(*content.damage));
  return Outcome::damaged;
}

Outcome show(const ShowArguments& arguments) {
  const auto file_system = fs::posix_file_system();
  const auto place = resolve_tag(*file_system, {arguments.what, arguments.prefix, arguments.run});
  if (place) return show_tag(*file_system, *place, arguments.view);
  const auto store = store_at(*file_system, arguments.what);
  return store ? show_store(*file_system, *store, arguments.what, arguments.view) : show_file(*file_system, arguments);
}

}  // namespace

Command add_show(CLI::App& program) {
  auto arguments = std::make_shared<ShowArguments>();
  CLI::App* parser = program.add_subcommand("show", "Show the content of a checkpoint or of one of its files");
  parser
      ->add_option(kCheckpointOperand, arguments->what,
                   "A tag on the prefix (latest: the newest), a tag directory, a store's directory (what it has of the "
                   "newest checkpoint in it), or a file in one: rank-<r>.<n>.h5, parity-<r>.<n>.kedge or "
                   "set-<r>.<n>.kedge")
      ->required();
  add_tag_options(*parser, arguments->prefix, arguments->run);
  parser->add_option("--rank", arguments->view.rank, "Of a checkpoint: only this rank's container")->type_name("RANK");
  parser->add_flag("--containers", arguments->view.containers, "Of a checkpoint: list every container");
  parser->add_flag("--blocks", arguments->view.blocks,
                   "Of a checkpoint: list every block of its global arrays, with the rank that saved it");
  parser->add_flag("--json", arguments->view.json, "JSON output for programs");
  parser->footer(
      "Reads and checks only heads and indexes, or the set's description; kedge verify checks every byte.\n"
      "Exit status: 0, 1 if something is damaged or missing, 2 if it could not be checked.");
  return {parser, [arguments] { return show(*arguments); }};
}

}  // namespace kedge::tools
