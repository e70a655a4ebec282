#include "tools/tag_verify.hpp"

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "persist/tag_directory.hpp"
#include "tools/tag_reader.hpp"

namespace kedge::tools {
namespace {

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
