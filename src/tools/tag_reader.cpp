#include "tools/tag_reader.hpp"

#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "persist/tag_directory.hpp"
#include "tools/text_format.hpp"

namespace kedge::tools {
namespace {

using Problem = persist::ContainerProblem::Kind;

persist::TagPath path_of(const TagLocation& place) { return {fs::join(place.prefix, place.directory), place.shown}; }

std::string describe_size(std::uint64_t size_bytes, const format::ShardRow& row) {
  return size_bytes < row.size_bytes
             ? compose("truncated: {} of its {} bytes are left", size_bytes, row.size_bytes)
             : compose("{} bytes were appended to its {}", size_bytes - row.size_bytes, row.size_bytes);
}

std::string describe_identity(const format::Superblock& found, const format::ManifestHead& head) {
  std::string whose = compose("of rank {}", found.logical_rank.value);
  if (found.commit != head.commit) {
    whose += compose(" of {} (generation {}, commit {})", printable(found.commit.tag), found.commit.generation,
                     short_id(found.commit.id));
  }
  if (found.commit.run_id != head.commit.run_id) whose += " of another run";
  return compose("swapped: it is the container {}", whose);
}

/// Nothing if the original message is good enough.
std::optional<std::string> describe_problem(const persist::ContainerProblem& problem, const format::ManifestHead& head,
                                            const format::ShardRow& row, LogicalRank rank) {
  switch (problem.kind) {
    case Problem::file_name:
      return compose("the manifest gives an unexpected file name for the container of rank {}", rank.value);
    case Problem::missing: return "missing";
    case Problem::missing_directory: return "missing, and so is its directory";
    case Problem::link: return compose("{} is a symbolic link, which is not followed", problem.problem_path);
    case Problem::not_a_directory: return compose("missing: {} is not a directory", problem.problem_path);
    case Problem::identity: return describe_identity(problem.found_superblock.value(), head);
    case Problem::size: return describe_size(problem.size_bytes, row);
    case Problem::unsealed:
    case Problem::unreadable:
    case Problem::content: return std::nullopt;
  }
  return std::nullopt;
}

/// A missing container is damage of the checkpoint; a link is not, since the container may be behind it.
ErrorCode code_of(const persist::ContainerProblem& problem) {
  return problem.kind == Problem::link ? ErrorCode::io : ErrorCode::corrupt;
}

bool has_manifest(fs::FileSystem& file_system, const TagLocation& place) {
  bool exists = true;
  const auto failure = attempt([&] {
    const std::string directory = fs::join(place.prefix, place.directory);
    exists = file_system.status(fs::join(directory, persist::kManifestFile)).has_value();
  });
  return failure || exists;
}

Finding check_manifest(const TagLocation& place, const OpenedManifest& manifest,
                       const std::function<void(std::uint64_t)>& on_progress) {
  Finding finding;
  finding.path = fs::join(place.shown, persist::kManifestFile);
  finding.manifest = manifest.reader->head();
  finding.size_bytes = finding.manifest->file_size;
  const auto failure = attempt([&] { add_failure(manifest.reader->verify(on_progress), finding); });
  if (failure) add_failure(*failure, finding);
  return finding;
}

Finding check_rank(fs::FileSystem& file_system, const TagLocation& place, const OpenedManifest& manifest,
                   LogicalRank rank, const std::function<void(std::uint64_t)>& on_progress) {
  Finding finding;
  finding.path = fs::join(place.shown, persist::container_file(rank));
  finding.kind = store::FileKind::container;
  std::optional<format::ShardRow> row;
  if (const auto failure = attempt([&] { row = manifest.reader->row(rank); })) {
    finding.reason = "the manifest's row for it is damaged, so its size and checksum are unknown";
    return finding;  // the manifest is damaged
  }
  const auto failure = attempt([&] {
    const auto opened = open_container(file_system, place, manifest.reader->head(), *row, rank);
    finding.size_bytes = row->size_bytes;
    finding.superblock = opened.reader->superblock();
    add_failure(opened.reader->verify(on_progress), finding);
  });
  if (failure) add_failure(*failure, finding);
  return finding;
}

void ignore_if_removed(fs::FileSystem& file_system, const TagLocation& place, Finding& finding) {
  if (finding.state == Finding::State::ok || has_manifest(file_system, place)) return;
  finding.state = Finding::State::uncommitted;
  finding.damages.clear();
  finding.reason = "the checkpoint was removed while it was read";
}

}  // namespace

OpenedManifest open_manifest(fs::FileSystem& file_system, const TagLocation& place) {
  OpenedManifest opened;
  opened.entry = persist::read_tag(file_system, place.prefix, place.directory);
  persist::OpenedManifest manifest = persist::open_manifest(file_system, path_of(place));
  opened.bytes = std::move(manifest.bytes);
  opened.reader = std::move(manifest.reader);
  return opened;
}

persist::OpenedContainer open_container(fs::FileSystem& file_system, const TagLocation& place,
                                        const format::ManifestHead& head, const format::ShardRow& row,
                                        LogicalRank rank) {
  try {
    return persist::open_container(file_system, path_of(place), head, row, rank);
  } catch (const persist::ContainerError& error) {
    Failure failure = error.failure();
    if (error.problem().kind == Problem::unreadable) {
      const OpenedFile opened = open_file(file_system, fs::join(path_of(place).directory, row.file));
      if (opened.kind == FileKind::other_version) throw refusal(opened.kind, failure.path);
    }
    failure.code = code_of(error.problem());
    if (auto words = describe_problem(error.problem(), head, row, rank)) failure.message = std::move(*words);
    throw Error(std::move(failure));
  }
}

void check_tag(fs::FileSystem& file_system, const TagLocation& place,
               const std::function<void(std::uint64_t)>& on_progress,
               const std::function<void(const Finding&)>& report) {
  OpenedManifest manifest;
  if (const auto failure = attempt([&] { manifest = open_manifest(file_system, place); })) {
    Finding finding;
    add_failure(*failure, finding);
    const bool uncommitted = failure->code == ErrorCode::not_found;
    finding.path = uncommitted ? place.shown : fs::join(place.shown, persist::kManifestFile);
    if (uncommitted) finding.state = Finding::State::uncommitted;
    return report(finding);
  }
  Finding of_manifest = check_manifest(place, manifest, on_progress);
  ignore_if_removed(file_system, place, of_manifest);
  report(of_manifest);
  for (std::uint32_t rank = 0; rank < manifest.reader->head().commit.world_size; ++rank) {
    Finding finding = check_rank(file_system, place, manifest, LogicalRank{rank}, on_progress);
    ignore_if_removed(file_system, place, finding);
    report(finding);
    if (finding.state == Finding::State::uncommitted) return;
  }
}

std::uint64_t bytes_of_tag(fs::FileSystem& file_system, const TagLocation& place) {
  std::uint64_t bytes = 0;
  static_cast<void>(attempt([&] {
    const OpenedManifest manifest = open_manifest(file_system, place);
    bytes = manifest.reader->head().file_size + manifest.reader->head().total_bytes;
  }));
  return bytes;
}

}  // namespace kedge::tools
