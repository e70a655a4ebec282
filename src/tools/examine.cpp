#include "tools/examine.hpp"

#include <algorithm>
#include <cstring>

#include "base/attempt.hpp"
#include "base/checksum.hpp"
#include "base/text.hpp"
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

std::size_t matching_magic_bytes(std::span<const std::byte> first) {
  std::size_t matching = 0;
  for (std::size_t i = 0; i < std::min(first.size(), format::kMagic.size()); ++i) {
    if (first[i] == std::byte{format::kMagic[i]}) ++matching;
  }
  return matching;
}

// Whether the file's first bytes changed since it was opened: the job unsealed it, and may have sealed it anew.
bool changed_meanwhile(const OpenedFile& opened) {
  std::vector<std::byte> now(opened.first.size());
  const auto failure = attempt([&] { static_cast<void>(opened.file->copy_out(0, now, 0)); });
  return !failure && now != opened.first;
}

void check_rank(const format::Superblock& superblock, const store::ContainerName& name, const std::string& path) {
  if (superblock.logical_rank == name.logical_rank) return;
  throw Error(Failure{ErrorCode::corrupt,
                      compose("it holds the container of rank {}, its name says rank {}; it was put here by mistake",
                              superblock.logical_rank.value, name.logical_rank.value),
                      -1, path, 0});
}

void check_opened(const OpenedFile& opened, const std::optional<store::ContainerName>& name,
                  const std::function<void(std::uint64_t)>& on_progress, Finding& finding) {
  const std::string beginning = damaged_beginning(opened);
  if (!beginning.empty()) throw Error(Failure{ErrorCode::corrupt, beginning, -1, finding.path, 0});
  finding.superblock = format::decode(opened.first, finding.path);
  const format::ContainerReader reader(*opened.file, opened.size_bytes, finding.path);
  if (name) check_rank(reader.superblock(), *name, finding.path);
  finding.damages = reader.verify(on_progress);
  if (finding.damages.empty()) {
    finding.state = Finding::State::ok;
    return;
  }
  finding.state = Finding::State::damaged;
  const std::size_t count = finding.damages.size();
  finding.reason = compose("{} of its bytes {} not what was written",
                           count == 1 ? "a stretch" : compose("{} stretches", count), count == 1 ? "is" : "are");
}

}  // namespace

FileKind classify(std::span<const std::byte> first, bool named) {
  const bool whole = first.size() >= format::kSuperblockBytes;
  if ((whole || named) && format::is_unsealed(first)) return FileKind::unsealed;
  if (matching_magic_bytes(first) < kMagicBytesEnough) return named ? FileKind::container : FileKind::foreign;
  // A version can be believed only if the checksum holds.
  const bool newer = whole && number_at(first, format::at::kVersion) > format::kFormatVersion &&
                     crc32c(first.first(format::at::kCrc)) == number_at(first, format::at::kCrc);
  return newer ? FileKind::newer : FileKind::container;
}

OpenedFile open_file(fs::FileSystem& file_system, const std::string& path) {
  OpenedFile opened;
  opened.file = file_system.open(path, fs::Access::read);
  opened.size_bytes = opened.file->status().size_bytes;
  opened.first.resize(std::min<std::uint64_t>(opened.size_bytes, format::kSuperblockBytes));
  static_cast<void>(opened.file->copy_out(0, opened.first, 0));
  const std::string file_name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  opened.kind = classify(opened.first, store::parse_container_name(file_name).has_value());
  return opened;
}

Error refusal(FileKind kind, const std::string& path) {
  switch (kind) {
    case FileKind::unsealed:
      return Error(Failure{ErrorCode::bad_state,
                           "being written or free: nothing is sealed in it yet; look again after the next commit", -1,
                           path, 0});
    case FileKind::newer:
      return Error(Failure{ErrorCode::mismatch,
                           compose("a container of a newer format than this kedge knows ({}); use a newer kedge",
                                   format::kFormatVersion),
                           -1, path, 0});
    default:
      return Error(Failure{ErrorCode::mismatch,
                           "not a Kedge container; give a file named rank-<r>.<n>.h5 in a store's folder", -1, path,
                           0});
  }
}

std::string damaged_beginning(const OpenedFile& opened) {
  if (opened.kind != FileKind::container) return {};
  if (opened.size_bytes < format::kSuperblockBytes) {
    return compose("truncated: {} bytes are left, less than its superblock", opened.size_bytes);
  }
  if (matching_magic_bytes(opened.first) < format::kMagic.size()) {
    return "superblock damaged: the bytes that mark a Kedge container are others";
  }
  return {};
}

Finding check_container(fs::FileSystem& file_system, const std::string& path,
                        const std::optional<store::ContainerName>& name,
                        const std::function<void(std::uint64_t)>& on_progress) {
  Finding finding;
  finding.path = path;
  OpenedFile opened;
  const auto failure = attempt([&] {
    opened = open_file(file_system, path);
    finding.size_bytes = opened.size_bytes;
    if (opened.kind != FileKind::container) throw refusal(opened.kind, path);
    check_opened(opened, name, on_progress, finding);
  });
  if (failure) {
    const bool unsealed = failure->code == ErrorCode::bad_state;
    finding.state = failure->code == ErrorCode::corrupt ? Finding::State::damaged
                    : unsealed                          ? Finding::State::unsealed
                                                        : Finding::State::cannot_look;
    // The path is said by whoever reports the finding.
    finding.reason = describe(Failure{failure->code, failure->message, -1, {}, failure->system_errno});
  }
  if (finding.state == Finding::State::damaged && changed_meanwhile(opened)) {
    finding.state = Finding::State::unsealed;
    finding.damages.clear();
    finding.reason = "being written or free: the job took the file for its next checkpoint while it was read";
  }
  return finding;
}

}  // namespace kedge::tools
