// kedge extract TAG|FILE [NAME...]: extracts routed files from a checkpoint.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/attempt.hpp"
#include "base/json.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "fs/tree.hpp"
#include "tools/examine.hpp"
#include "tools/extract_plan.hpp"
#include "tools/outcome.hpp"
#include "tools/tag_location.hpp"
#include "tools/tag_reader.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

using Kind = fs::FileStatus::Kind;

struct ExtractArguments {
  std::string what;
  Wanted wanted;
  std::string prefix;
  std::string run;
  std::string output = ".";
  bool force = false;
  bool json = false;
};

/// An open container and its reader.
struct Container {
  std::unique_ptr<fs::ByteAccess> bytes;
  std::unique_ptr<format::ContainerReader> reader;
};

/// The containers of a checkpoint, or a single one.
struct Containers {
  std::string shown;  ///< as named by the user
  std::uint32_t first_rank = 0;
  std::uint32_t ranks = 0;
  std::function<Container(std::uint32_t rank)> open;
};

Containers containers_of_tag(fs::FileSystem& file_system, const TagLocation& place) {
  const auto manifest = std::make_shared<OpenedManifest>(open_manifest(file_system, place));
  Containers containers{place.shown, 0, manifest->entry.commit.world_size, {}};
  containers.open = [&file_system, place, manifest](std::uint32_t rank) {
    const format::ShardRow row = manifest->reader->row(LogicalRank{rank});
    auto opened = open_container(file_system, place, manifest->reader->head(), row, LogicalRank{rank});
    return Container{std::move(opened.bytes), std::move(opened.reader)};
  };
  return containers;
}

Containers containers_of_file(fs::FileSystem& file_system, const std::string& path) {
  const std::string real_path = file_system.canonical(path);  // users may name links
  if (const auto status = file_system.status(real_path); status && status->kind == Kind::directory) {
    refuse(ErrorCode::invalid_argument,
           "a directory without checkpoint.h5; name a tag on the prefix, or one of the containers in this directory",
           path);
  }
  const auto open = [&file_system, real_path, path] {
    OpenedFile opened = open_file(file_system, real_path);
    if (opened.kind == FileKind::set_file || is_manifest(opened, std::nullopt)) {
      refuse(ErrorCode::mismatch, "not a container; name a rank-<r>.<n>.h5, or a tag on the prefix", path);
    }
    if (opened.kind != FileKind::container) throw refusal(opened.kind, path);
    auto reader = std::make_unique<format::ContainerReader>(*opened.file, opened.size_bytes, path);
    return Container{std::move(opened.file), std::move(reader)};
  };
  const std::uint32_t rank = open().reader->superblock().logical_rank.value;
  return {path, rank, 1, [open](std::uint32_t) { return open(); }};
}

/// Extracts files and collects the results.
class Extraction {
 public:
  Extraction(fs::FileSystem& file_system, const ExtractArguments& arguments, Containers containers)
      : file_system_(file_system), arguments_(arguments), containers_(std::move(containers)) {}

  [[nodiscard]] Outcome run();

 private:
  /// Calls a function for each requested, undamaged container.
  void for_each_container(const std::set<std::uint32_t>* only,
                          const std::function<void(std::uint32_t, const format::ContainerReader&)>& visit);
  void find_files();
  [[noreturn]] void refuse_unmatched(const std::string& name) const;
  void require_free(const RoutedFile& file) const;
  void extract(const RoutedFile& file, const format::ContainerReader& reader);
  void record_failure(const std::string& what, const Failure& failure);
  void report() const;

  fs::FileSystem& file_system_;
  const ExtractArguments& arguments_;
  Containers containers_;
  std::string directory_;            ///< canonical
  std::vector<RoutedFile> files_;    ///< all of the checkpoint
  std::set<std::string> in_memory_;  ///< names of regions that are not files
  std::vector<RoutedFile> done_;
  std::vector<std::pair<std::string, Failure>> problems_;
  Outcome outcome_ = Outcome::ok;
  std::uint64_t unfinished_ = 0;
};

void Extraction::record_failure(const std::string& what, const Failure& failure) {
  problems_.emplace_back(what, failure);
  if (failure.code == ErrorCode::corrupt) outcome_ = Outcome::damaged;
  else if (outcome_ == Outcome::ok) outcome_ = Outcome::not_checked;
  print_error(compose("{}: {}", printable(what), describe(failure)));
}

void Extraction::for_each_container(const std::set<std::uint32_t>* only,
                                    const std::function<void(std::uint32_t, const format::ContainerReader&)>& visit) {
  for (std::uint32_t rank = containers_.first_rank; rank - containers_.first_rank < containers_.ranks; ++rank) {
    if (only != nullptr && !only->contains(rank)) continue;
    std::optional<Container> container;
    if (const auto failure = attempt([&] { container = containers_.open(rank); })) {
      record_failure(compose("the container of rank {}", rank), *failure);
      continue;
    }
    visit(rank, *container->reader);
  }
}

void Extraction::find_files() {
  for_each_container(nullptr, [&](std::uint32_t rank, const format::ContainerReader& reader) {
    for (const format::StoredRegion& region : reader.regions()) {
      if (region.spec.is_routed) {
        files_.push_back({rank, region.spec.name, region.size_bytes, {}, format::is_empty_directory(region.spec)});
      } else in_memory_.insert(region.spec.name);
    }
  });
  assign_targets(files_, problems_.empty());
}

void Extraction::refuse_unmatched(const std::string& name) const {
  const std::string of_rank = arguments_.wanted.rank ? compose(" of rank {}", *arguments_.wanted.rank) : "";
  if (in_memory_.contains(name)) {
    refuse(
        ErrorCode::mismatch,
        compose("'{}' was saved from memory and is not a file; any HDF5 tool reads it (h5dump, h5py)", printable(name)),
        containers_.shown);
  }
  std::vector<std::string> known;
  for (const RoutedFile& file : files_) known.push_back(file.name);
  const auto meant = nearest_name(name, known);
  const bool may_be_hidden = !problems_.empty();
  refuse(
      outcome_ == Outcome::damaged ? ErrorCode::corrupt : ErrorCode::not_found,
      compose("there is no routed file '{}'{}{}; {}", printable(name), of_rank,
              meant ? compose(" (did you mean '{}'?)", printable(*meant)) : "",
              may_be_hidden ? "it may be in a container that could not be read" : "kedge show lists the routed files"),
      containers_.shown);
}

/// Keeps names inside the output directory: their parents must be directories, not links.
void Extraction::require_free(const RoutedFile& file) const {
  for (std::size_t slash = file.target.find('/'); slash != std::string::npos;
       slash = file.target.find('/', slash + 1)) {
    const std::string path = fs::join(directory_, file.target.substr(0, slash));
    const auto status = file_system_.status(path);
    if (!status) break;
    if (status->kind == Kind::directory) continue;
    refuse(
        ErrorCode::io,
        status->kind == Kind::link
            ? "a symbolic link is in the place of a directory and is not followed; remove it or choose another --output"
            : "a file is in the place of a directory; move it away",
        path);
  }
  const std::string path = fs::join(directory_, file.target);
  const auto status = file_system_.status(path);
  if (!status || (arguments_.force && status->kind != Kind::directory)) return;
  if (file.is_directory && status->kind == Kind::directory) return;
  refuse(ErrorCode::io,
         status->kind == Kind::directory ? "a directory is in the place of a file; move it away"
                                         : "file already exists; remove it, or add --force to replace it",
         path);
}

/// Writes to a temporary name until the file is complete, verified and synced.
void Extraction::extract(const RoutedFile& file, const format::ContainerReader& reader) {
  const std::string path = fs::join(directory_, file.target);
  const std::string unfinished =
      fs::join(path.substr(0, path.rfind('/')), compose(".kedge-extract-{}-{}", ::getpid(), unfinished_++));
  fs::make_parents(file_system_, directory_, file.target, 0777);
  bool is_mine = false;
  const auto failure = attempt([&] {
    if (file.is_directory) return file_system_.make_directory(path, 0777);
    const auto to = file_system_.create(unfinished, 0666);
    if (!to) refuse(ErrorCode::io, "file already exists; remove it", unfinished);
    is_mine = true;
    const format::StoredRegion* region = reader.find_region(file.name);
    if (region == nullptr) refuse(ErrorCode::io, "the container changed meanwhile; try again", containers_.shown);
    to->reserve(region->size_bytes);
    reader.read(*region, *to);
    to->sync();
    require_free(file);
    file_system_.rename(unfinished, path);
  });
  if (!failure) {
    done_.push_back(file);
    return;
  }
  if (is_mine) (void)attempt([&] { file_system_.remove(unfinished); });
  record_failure(file.target, *failure);
}

Outcome Extraction::run() {
  find_files();
  if (const auto name = find_unmatched_name(files_, arguments_.wanted)) refuse_unmatched(*name);
  const std::vector<RoutedFile> wanted = select_files(files_, arguments_.wanted);
  if (wanted.empty() && problems_.empty()) {
    refuse(ErrorCode::not_found, "it has no routed files; kedge show lists its content", containers_.shown);
  }
  fs::make_directories(file_system_, arguments_.output, 0777);
  directory_ = file_system_.canonical(arguments_.output);  // links in the user's path are permitted
  for (const RoutedFile& file : wanted) require_free(file);
  std::set<std::uint32_t> ranks;
  for (const RoutedFile& file : wanted) ranks.insert(file.rank);
  for_each_container(&ranks, [&](std::uint32_t rank, const format::ContainerReader& reader) {
    for (const RoutedFile& file : wanted) {
      if (file.rank == rank) extract(file, reader);
    }
  });
  report();
  return outcome_;
}

void Extraction::report() const {
  std::uint64_t bytes = 0;
  for (const RoutedFile& file : done_) bytes += file.bytes;
  if (arguments_.json) {
    Json json = {{"path", containers_.shown},
                 {"output", arguments_.output},
                 {"bytes", bytes},
                 {"files", Json::array()},
                 {"problems", Json::array()}};
    for (const RoutedFile& file : done_) {
      json["files"].push_back({{"file", file.target}, {"name", file.name}, {"rank", file.rank}, {"bytes", file.bytes}});
    }
    for (const auto& [what, failure] : problems_) {
      json["problems"].push_back(
          {{"what", what}, {"damaged", failure.code == ErrorCode::corrupt}, {"reason", describe(failure)}});
    }
    print(json_text(json));
    return;
  }
  Table table("lrr");
  table.add({"file", "rank", "bytes"});
  for (const RoutedFile& file : done_) {
    table.add({printable(file.target), compose("{}", file.rank), compose("{}", file.bytes)});
  }
  print(compose("{}{}, {}, in {}\n", done_.empty() ? "" : table.text() + "\n", count_text(done_.size(), "file"),
                human_bytes(bytes), printable(arguments_.output)));
}

Outcome extract(const ExtractArguments& arguments) {
  const auto file_system = fs::posix_file_system();
  const auto place = resolve_tag(*file_system, {arguments.what, arguments.prefix, arguments.run});
  Containers containers =
      place ? containers_of_tag(*file_system, *place) : containers_of_file(*file_system, arguments.what);
  return Extraction(*file_system, arguments, std::move(containers)).run();
}

}  // namespace

Command add_extract(CLI::App& program) {
  auto arguments = std::make_shared<ExtractArguments>();
  CLI::App* parser = program.add_subcommand("extract", "Write the routed files of a checkpoint as plain files");
  parser
      ->add_option(kCheckpointOperand, arguments->what,
                   "A tag on the prefix (latest: the newest), a tag directory, or a container: rank-<r>.<n>.h5 of a "
                   "store, rank-<r>.h5 of a tag directory")
      ->required();
  parser->add_option("NAME", arguments->wanted.names,
                     "Files to extract, by the names that route_out was called with, or directories that they are in; "
                     "default: all");
  parser
      ->add_option("-o,--output", arguments->output,
                   "Directory to write to; made if it is missing; default: the current one")
      ->type_name("DIRECTORY");
  parser->add_option("--rank", arguments->wanted.rank, "Only the files of this rank")->type_name("RANK");
  parser->add_flag("--force", arguments->force, "Replace files that exist");
  add_tag_options(*parser, arguments->prefix, arguments->run);
  parser->add_flag("--json", arguments->json, "JSON output for programs");
  parser->footer(
      "A file that only one rank saved is written under its own name; one that several ranks saved, as rank-<r>/NAME "
      "for each. If names conflict or a container cannot be read, all are written below rank-<r>.\n"
      "Every byte is checked; a damaged file is reported and not written, the others are.\n"
      "Exit status: 0, 1 if something is damaged or missing, 2 if something could not be extracted.");
  return {parser, [arguments] { return extract(*arguments); }};
}

}  // namespace kedge::tools
