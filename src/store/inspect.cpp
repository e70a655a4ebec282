#include "store/inspect.hpp"

#include <array>
#include <memory>
#include <span>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "format/container_reader.hpp"
#include "format/manifest.hpp"

namespace kedge::store {
namespace {

using format::kSuperblockBytes;

[[noreturn]] void damaged(std::string what) { throw Error(ErrorCode::corrupt, std::move(what)); }

std::string_view noun(FileKind kind) {
  switch (kind) {
    case FileKind::container: return "container";
    case FileKind::parity: return "parity";
    case FileKind::descriptor: return "set descriptor";
    case FileKind::manifest: return "manifest";
  }
  return "file";
}

void check_owner(const Held& held, const Id128& run_id, const Id128& found_run, LogicalRank found_rank) {
  if (found_run != run_id) damaged("it belongs to another run");
  if (found_rank != held.logical_rank) damaged(compose("it is the {} of rank {}", noun(held.kind), found_rank.value));
}

void inspect_container(Held& held, fs::ByteAccess& bytes, std::span<const std::byte> first, const Id128& run_id,
                       Verify verify) {
  held.superblock = format::decode(first, held.path);
  check_owner(held, run_id, held.superblock->commit.run_id, held.superblock->logical_rank);
  const format::ContainerReader reader(bytes, held.size_bytes, held.path);
  if (verify != Verify::all) return;
  const auto damages = reader.verify();
  if (!damages.empty()) damaged(damages.front().what + " is damaged");
}

void inspect_set_file(Held& held, fs::ByteAccess& bytes, std::span<const std::byte> first, const Id128& run_id,
                      Verify verify) {
  const bool is_parity = held.kind == FileKind::parity;
  const format::SetDescriptor set = format::decode_set(first, held.path);
  if (set.kind != (is_parity ? format::SetFileKind::parity : format::SetFileKind::descriptor)) {
    damaged(compose("it is not the {} that its name says", noun(held.kind)));
  }
  held.set = set;
  check_owner(held, run_id, set.run_id, set.members.at(set.position).logical_rank);
  const std::uint64_t expected_bytes = kSuperblockBytes + (is_parity ? set.parity_bytes : 0);
  if (held.size_bytes != expected_bytes) {
    damaged(compose("it has {} bytes instead of {}", held.size_bytes, expected_bytes));
  }
  if (!is_parity || verify != Verify::all) return;
  if (bytes.checksum(kSuperblockBytes, set.parity_bytes, 0) != set.parity_crc) damaged("its parity is damaged");
}

/// Any rank may keep a manifest.
void inspect_manifest(Held& held, fs::ByteAccess& bytes, const Id128& run_id, Verify verify) {
  const format::ManifestReader reader(bytes, held.size_bytes, held.path);
  if (reader.head().commit.run_id != run_id) damaged("it belongs to another run");
  held.manifest = reader.head();
  if (verify != Verify::all) return;
  const auto damages = reader.verify();
  if (!damages.empty()) damaged(damages.front().what + " is damaged");
}

}  // namespace

Inspection inspect(const RunDirectory& directory, const FileName& name, const Id128& run_id, Verify verify,
                   fs::ByteAccess* bytes) {
  Inspection result;
  Held& held = result.held;
  held.kind = name.kind;
  held.logical_rank = name.logical_rank;
  held.path = directory.path_of(name);
  fs::FileSystem& file_system = directory.file_system();
  const auto failure = attempt([&] {
    const auto status = file_system.status(held.path);
    if (!status) return;  // gone is no damage: who misses it says where it should be
    if (status->owner != file_system.user() || status->kind != fs::FileStatus::Kind::file) {
      result.foreign = true;
      throw Error(Failure{ErrorCode::io, "not a file of this user: not used", -1, held.path, 0});
    }
    held.size_bytes = status->size_bytes;
    if (held.size_bytes == 0) return;  // given up by a checkpoint that failed, or not yet begun
    if (held.size_bytes < kSuperblockBytes) {
      damaged(compose("cut to {} bytes, too short for a {}", held.size_bytes, noun(held.kind)));
    }
    std::unique_ptr<fs::File> file;
    if (bytes == nullptr) {
      file = file_system.open(held.path, fs::Access::read);
      bytes = file.get();
    }
    std::array<std::byte, kSuperblockBytes> first{};
    (void)bytes->copy_out(0, first, 0);
    if (format::is_unsealed(first)) return;
    if (held.kind == FileKind::container) inspect_container(held, *bytes, first, run_id, verify);
    else if (held.kind == FileKind::manifest) inspect_manifest(held, *bytes, run_id, verify);
    else inspect_set_file(held, *bytes, first, run_id, verify);
    held.intact = true;
  });
  if (failure) held.damage = held.path + ": " + failure->message;
  return result;
}

}  // namespace kedge::store
