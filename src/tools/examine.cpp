#include "tools/examine.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "format/on_disk.hpp"
#include "tools/outcome.hpp"

namespace kedge::tools {
namespace {

constexpr std::size_t kMagicBytesEnough = 5;

std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t place) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.subspan(place, sizeof value).data(), sizeof value);
  return value;
}

using Magic = std::array<unsigned char, 8>;

std::size_t matching_bytes(std::span<const std::byte> first, const Magic& magic) {
  std::size_t matching = 0;
  for (std::size_t i = 0; i < std::min(first.size(), magic.size()); ++i) {
    if (first[i] == std::byte{magic[i]}) ++matching;
  }
  return matching;
}

// Judges by the first bytes, some of which may be damaged.
FileKind kind_of_content(std::span<const std::byte> first) {
  const std::size_t container = matching_bytes(first, format::kMagic);
  const std::size_t set_file = matching_bytes(first, format::kSetMagic);
  if (std::max(container, set_file) < kMagicBytesEnough) return FileKind::foreign;
  return container > set_file ? FileKind::container : FileKind::set_file;
}

FileKind kind_of_name(std::optional<store::FileKind> named) {
  if (!named) return FileKind::foreign;
  return *named == store::FileKind::container ? FileKind::container : FileKind::set_file;
}

// Whether the first bytes changed since opening: the job unsealed the file, and perhaps sealed it again.
bool changed_meanwhile(const OpenedFile& opened) {
  std::vector<std::byte> now(opened.first.size());
  const auto failure = attempt([&] { opened.file->read(0, now); });
  return !failure && now != opened.first;
}

// Copies the verification's result to the finding, without further checks.
void add_failure(store::VerifiedFile&& found, const OpenedFile& opened, const std::optional<store::FileName>& name,
                 Finding& finding) {
  const std::string message = describe_fault(opened, found, name);
  if (found.kind) finding.kind = found.kind;
  finding.superblock = std::move(found.superblock);
  finding.set = std::move(found.set_descriptor);
  finding.manifest = std::move(found.manifest);
  switch (found.fault) {
    case store::FileFault::none:
    case store::FileFault::content: add_failure(std::move(found.damages), finding); break;
    case store::FileFault::unsealed: throw refusal(FileKind::unsealed, finding.path);
    default: refuse(ErrorCode::corrupt, message, finding.path);
  }
}

}  // namespace

store::ExpectedFile expected_from_name(const std::optional<store::FileName>& name, bool manifest) {
  store::ExpectedFile expected;
  if (manifest) expected.kind = store::FileKind::manifest;
  if (!name) return expected;
  expected.kind = name->kind;
  expected.logical_rank = name->logical_rank;
  return expected;
}

FileKind classify(std::span<const std::byte> first, std::optional<store::FileKind> named) {
  const bool whole = first.size() >= format::kSuperblockBytes;
  if ((whole || named) && format::is_unsealed(first)) return FileKind::unsealed;
  const FileKind content = kind_of_content(first);
  if (content == FileKind::foreign) return kind_of_name(named);
  // The version is only reliable if the checksum is right. Both kinds have these fields at the same offset.
  const auto known = content == FileKind::container ? format::kFormatVersion : format::kSetVersion;
  const bool other = whole && number_at(first, format::at::kVersion) != known &&
                     crc32c(first.first(format::at::kCrc)) == number_at(first, format::at::kCrc);
  return other ? FileKind::other_version : content;
}

bool is_manifest(const OpenedFile& opened, const std::optional<store::FileName>& name) {
  if (opened.kind == FileKind::unsealed) return false;
  if (name) return name->kind == store::FileKind::manifest;
  return matching_bytes(opened.first, format::kManifestMagic) >= kMagicBytesEnough;
}

OpenedFile open_file(fs::FileSystem& file_system, const std::string& path) {
  OpenedFile opened;
  opened.file = file_system.open(path, fs::Access::read);
  opened.size_bytes = opened.file->status().size_bytes;
  opened.first.resize(std::min<std::uint64_t>(opened.size_bytes, format::kSuperblockBytes));
  opened.file->read(0, opened.first);
  const std::string file_name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const auto name = store::parse_file_name(file_name);
  opened.kind = classify(opened.first, name ? std::optional(name->kind) : std::nullopt);
  return opened;
}

Error refusal(FileKind kind, const std::string& path) {
  switch (kind) {
    case FileKind::unsealed:
      return Error(Failure{ErrorCode::bad_state,
                           "being written or free: nothing is sealed in it yet; try again after the next commit", -1,
                           path, 0});
    case FileKind::other_version:
      return Error(
          Failure{ErrorCode::mismatch,
                  compose("not a format version that this kedge reads (containers {}, parity and set descriptors {}); "
                          "use the kedge command of the version that wrote it",
                          format::kFormatVersion, format::kSetVersion),
                  -1, path, 0});
    default:
      return Error(Failure{ErrorCode::mismatch,
                           "not a Kedge container, parity file or set descriptor; give a file named rank-<r>.<n>.h5, "
                           "parity-<r>.<n>.kedge or set-<r>.<n>.kedge in a store's directory",
                           -1, path, 0});
  }
}

std::string describe_fault(const OpenedFile& opened, const store::VerifiedFile& found,
                           const std::optional<store::FileName>& name) {
  const bool marked = opened.kind == FileKind::container || opened.kind == FileKind::set_file;
  const bool is_container = opened.kind == FileKind::container;
  if (marked && found.fault == store::FileFault::truncated) {
    return compose("truncated: {} bytes are left, less than its {}", opened.size_bytes,
                   is_container ? "superblock" : "set's description");
  }
  if (marked && found.fault == store::FileFault::bad_magic) {
    return is_container ? "superblock damaged: bad magic number" : "set's description damaged: bad magic number";
  }
  const std::optional<LogicalRank> rank = found.logical_rank();
  const bool misplaced = found.fault == store::FileFault::kind || found.fault == store::FileFault::rank;
  if (!misplaced || !name || !rank || (found.kind == name->kind && rank == name->logical_rank)) return found.message;
  const std::string says = found.kind == name->kind ? "" : compose("the {} of ", store::kind_name(name->kind));
  return compose("it holds the {} of rank {}, but its name says {}rank {}; it was put here by mistake",
                 store::kind_name(*found.kind), rank->value, says, name->logical_rank.value);
}

void add_failure(const Failure& failure, Finding& finding) {
  finding.state = failure.code == ErrorCode::corrupt     ? Finding::State::damaged
                  : failure.code == ErrorCode::bad_state ? Finding::State::unsealed
                                                         : Finding::State::not_checked;
  // The caller prints the path.
  finding.reason = describe(Failure{failure.code, failure.message, -1, {}, failure.system_errno});
}

void add_failure(std::vector<format::Damage> damages, Finding& finding) {
  finding.damages = std::move(damages);
  if (finding.damages.empty()) {
    finding.state = Finding::State::ok;
    return;
  }
  finding.state = Finding::State::damaged;
  const std::size_t count = finding.damages.size();
  finding.reason = compose("{} of its bytes {} damaged", count == 1 ? "one range" : compose("{} ranges", count),
                           count == 1 ? "is" : "are");
}

Finding check_file(fs::FileSystem& file_system, const std::string& path, const std::optional<store::FileName>& name,
                   const std::function<void(std::uint64_t)>& on_progress) {
  Finding finding;
  finding.path = path;
  if (name) finding.kind = name->kind;
  OpenedFile opened;
  const auto failure = attempt([&] {
    opened = open_file(file_system, path);
    finding.size_bytes = opened.size_bytes;
    const bool manifest = is_manifest(opened, name);
    if (!manifest && opened.kind != FileKind::container && opened.kind != FileKind::set_file) {
      throw refusal(opened.kind, path);
    }
    add_failure(store::verify_file(*opened.file, opened.size_bytes, path, expected_from_name(name, manifest),
                                   Verify::all, on_progress),
                opened, name, finding);
  });
  if (failure) add_failure(*failure, finding);
  if (finding.state == Finding::State::damaged && changed_meanwhile(opened)) {
    finding.state = Finding::State::unsealed;
    finding.damages.clear();
    finding.reason = "being written or free: the job reused the file for its next checkpoint while it was read";
  }
  return finding;
}

}  // namespace kedge::tools
