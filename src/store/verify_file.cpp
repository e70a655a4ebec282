#include "store/verify_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "format/on_disk.hpp"

namespace kedge::store {
namespace {

using Head = std::array<std::byte, format::kSuperblockBytes>;

constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20U;  // between two reports of progress

/// Ends the verification at the first fault.
struct Refusal : std::exception {
  Refusal(FileFault its_fault, std::string its_message) : fault(its_fault), message(std::move(its_message)) {}

  FileFault fault;
  std::string message;
};

[[noreturn]] void reject(FileFault fault, std::string message) { throw Refusal(fault, std::move(message)); }

bool begins_with(const Head& head, const std::array<unsigned char, 8>& magic) {
  return std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

/// The kind by the first eight bytes, which parity and descriptors share.
std::optional<FileKind> kind_by_magic(const Head& head, FileKind of_set_files) {
  if (begins_with(head, format::kMagic)) return FileKind::container;
  if (begins_with(head, format::kManifestMagic)) return FileKind::manifest;
  if (begins_with(head, format::kSetMagic)) return of_set_files;
  return std::nullopt;
}

bool is_set_file(FileKind kind) { return kind == FileKind::parity || kind == FileKind::descriptor; }

class Verification {
 public:
  Verification(fs::ByteAccess& bytes, std::uint64_t size_bytes, const std::string& path, const ExpectedFile& expected,
               Verify verify, const OnProgress& on_progress)
      : bytes_(bytes),
        size_bytes_(size_bytes),
        path_(path),
        expected_(expected),
        verify_(verify),
        on_progress_(on_progress) {}

  VerifiedFile run() {
    try {
      read_head();
      if (read_as_ == FileKind::container) check_container();
      else if (read_as_ == FileKind::manifest) check_manifest();
      else check_set_file();
    } catch (Refusal& refusal) {
      found_.fault = refusal.fault;
      found_.message = std::move(refusal.message);
    }
    return std::move(found_);
  }

 private:
  /// Runs a reader's step; corruption becomes this fault.
  template <class Step>
  static auto reading(FileFault fault, Step&& step) {
    try {
      return std::forward<Step>(step)();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::corrupt) throw;
      reject(fault, error.failure().message);
    }
  }

  void read_head() {
    if (size_bytes_ < format::kSuperblockBytes) {
      reject(FileFault::truncated, compose("truncated to {} bytes, too short for a {}", size_bytes_,
                                           expected_.kind ? kind_name(*expected_.kind) : "Kedge file"));
    }
    bytes_.read(0, head_);
    if (format::is_unsealed(head_)) reject(FileFault::unsealed, "nothing is sealed in it");
    const FileKind of_set_files = expected_.kind && is_set_file(*expected_.kind) ? *expected_.kind : FileKind::parity;
    const std::optional<FileKind> by_magic = kind_by_magic(head_, of_set_files);
    has_magic_ = by_magic.has_value();
    if (!has_magic_ && !expected_.kind) reject(FileFault::bad_magic, "bad magic number");
    // The reader of the expected kind reports a wrong magic number.
    read_as_ = has_magic_ ? *by_magic : *expected_.kind;
  }

  [[nodiscard]] FileFault head_fault() const { return has_magic_ ? FileFault::head : FileFault::bad_magic; }

  void check_kind() const {
    if (!expected_.kind || found_.kind == expected_.kind) return;
    reject(FileFault::kind, compose("it is not a {}, as its name says", kind_name(*expected_.kind)));
  }

  void check_run(const Id128& run_id) const {
    if (expected_.run_id && run_id != *expected_.run_id) reject(FileFault::run, "it belongs to another run");
  }

  void check_rank(LogicalRank logical_rank, std::uint32_t world_size) const {
    if (expected_.logical_rank && logical_rank != *expected_.logical_rank) {
      reject(FileFault::rank, compose("it is the {} of rank {}", kind_name(*found_.kind), logical_rank.value));
    }
    if (logical_rank.value >= world_size) {
      reject(FileFault::rank, compose("it is the {} of rank {}, and its commit has {} ranks", kind_name(*found_.kind),
                                      logical_rank.value, world_size));
    }
  }

  void check_commit(const FileKey& key, std::uint64_t generation, std::uint32_t world_size) const {
    if (expected_.key && key.commit_id != expected_.key->commit_id) {
      reject(FileFault::commit, compose("it is the {} of another commit", kind_name(*found_.kind)));
    }
    if (expected_.generation && generation != *expected_.generation) {
      reject(FileFault::commit, compose("it is of generation {} instead of {}", generation, *expected_.generation));
    }
    if (expected_.world_size && world_size != *expected_.world_size) {
      reject(FileFault::commit,
             compose("it is of a commit of {} ranks instead of {}", world_size, *expected_.world_size));
    }
    if (expected_.key && key.protection_id != expected_.key->protection_id) {
      reject(FileFault::protection, compose("it is the {} of another protection", kind_name(*found_.kind)));
    }
  }

  void check_tag(const Tag& tag) const {
    if (!expected_.tag || tag == *expected_.tag) return;
    reject(FileFault::commit, compose("it is of tag '{}' instead of '{}'", tag, *expected_.tag));
  }

  void check_size(std::uint64_t by_head) const {
    if (size_bytes_ == by_head) return;
    reject(FileFault::size, compose("it has {} bytes instead of {}: {}", size_bytes_, by_head,
                                    size_bytes_ < by_head ? "truncated" : "bytes were appended"));
  }

  void check_container() {
    found_.kind = FileKind::container;
    found_.superblock = reading(head_fault(), [&] { return format::decode_superblock(head_, path_); });
    const CommitHead& commit = found_.superblock->commit;
    check_kind();
    check_run(commit.run_id);
    check_rank(found_.superblock->logical_rank, commit.world_size);
    check_commit({commit.id, {}}, commit.generation, commit.world_size);
    check_tag(commit.tag);
    check_size(found_.superblock->file_size);
    const auto reader =
        reading(FileFault::structure, [&] { return format::ContainerReader(bytes_, size_bytes_, path_); });
    if (verify_ == Verify::all) check_content(reader.verify(on_progress_));
  }

  void check_set_file() {
    found_.set_descriptor = reading(head_fault(), [&] { return format::decode_set_descriptor(head_, path_); });
    const format::SetDescriptor& set = *found_.set_descriptor;
    found_.kind = set.kind == format::SetFileKind::parity ? FileKind::parity : FileKind::descriptor;
    check_kind();
    check_run(set.run_id);
    check_rank(set.members.at(set.position).logical_rank, set.world_size);
    check_commit({set.commit_id, set.protection_id}, set.generation, set.world_size);
    check_size(format::kSuperblockBytes + (found_.kind == FileKind::parity ? set.parity_bytes : 0));
    found_.copied_commit = head_of_copy(set);
    if (on_progress_) on_progress_(format::kSuperblockBytes);
    if (found_.kind != FileKind::parity || verify_ != Verify::all) return;
    if (parity_crc() == set.parity_crc) return;
    found_.damages = {{"parity", format::kSuperblockBytes, set.parity_bytes}};
    reject(FileFault::content, "its parity is damaged");
  }

  /// The head of a container copy, if it fits the set; it has its own checksum.
  [[nodiscard]] std::optional<CommitHead> head_of_copy(const format::SetDescriptor& set) const {
    const bool is_copy = found_.kind == FileKind::parity && set.scheme == Scheme::partner;
    if (!is_copy || set.parity_bytes < format::kSuperblockBytes) return std::nullopt;
    const std::size_t members = set.members.size();
    const LogicalRank owner = set.members.at((set.position + members - 1) % members).logical_rank;
    std::optional<CommitHead> commit;
    (void)attempt([&] {  // otherwise unknown; reading the whole file says why
      Head head{};
      bytes_.read(format::kSuperblockBytes, head);
      const format::Superblock copy = format::decode_superblock(head, path_);
      const bool fits = copy.commit.run_id == set.run_id && copy.commit.id == set.commit_id &&
                        copy.commit.generation == set.generation && copy.commit.world_size == set.world_size &&
                        copy.logical_rank == owner;
      if (fits) commit = copy.commit;
    });
    return commit;
  }

  [[nodiscard]] std::uint32_t parity_crc() const {
    if (!on_progress_) return bytes_.checksum(format::kSuperblockBytes, found_.set_descriptor->parity_bytes, 0);
    std::uint32_t crc = 0;
    for (std::uint64_t done = 0; done < found_.set_descriptor->parity_bytes;) {
      const std::uint64_t piece = std::min(kPieceBytes, found_.set_descriptor->parity_bytes - done);
      crc = bytes_.checksum(format::kSuperblockBytes + done, piece, crc);
      done += piece;
      on_progress_(piece);
    }
    return crc;
  }

  /// Any rank may keep a manifest.
  void check_manifest() {
    found_.kind = FileKind::manifest;
    const auto reader = reading(head_fault(), [&] { return format::ManifestReader(bytes_, size_bytes_, path_); });
    found_.manifest = reader.head();
    const CommitHead& commit = found_.manifest->commit;
    check_kind();
    check_run(commit.run_id);
    check_commit({commit.id, {}}, commit.generation, commit.world_size);
    check_tag(commit.tag);
    if (verify_ == Verify::all) check_content(reader.verify(on_progress_));
  }

  void check_content(std::vector<format::Damage> damages) {
    if (damages.empty()) return;
    found_.damages = std::move(damages);
    reject(FileFault::content, found_.damages.front().description + " is damaged");
  }

  fs::ByteAccess& bytes_;
  std::uint64_t size_bytes_;
  const std::string& path_;
  const ExpectedFile& expected_;
  Verify verify_;
  const OnProgress& on_progress_;
  Head head_{};
  bool has_magic_ = false;
  FileKind read_as_ = FileKind::container;
  VerifiedFile found_;
};

}  // namespace

std::string_view kind_name(FileKind kind) noexcept {
  switch (kind) {
    case FileKind::container: return "container";
    case FileKind::parity: return "parity";
    case FileKind::descriptor: return "set descriptor";
    case FileKind::manifest: return "manifest";
  }
  return "file";
}

std::optional<LogicalRank> VerifiedFile::logical_rank() const {
  if (superblock) return superblock->logical_rank;
  if (set_descriptor) return set_descriptor->members.at(set_descriptor->position).logical_rank;
  return std::nullopt;
}

std::optional<FileKey> VerifiedFile::key() const {
  if (superblock) return FileKey{superblock->commit.id, {}};
  if (set_descriptor) return FileKey{set_descriptor->commit_id, set_descriptor->protection_id};
  if (manifest) return FileKey{manifest->commit.id, {}};
  return std::nullopt;
}

VerifiedFile verify_file(fs::ByteAccess& bytes, std::uint64_t size_bytes, const std::string& path,
                         const ExpectedFile& expected, Verify verify, const OnProgress& on_progress) {
  return Verification(bytes, size_bytes, path, expected, verify, on_progress).run();
}

VerifiedFile require_intact_file(fs::ByteAccess& bytes, std::uint64_t size_bytes, const std::string& path,
                                 const ExpectedFile& expected, Verify verify) {
  VerifiedFile found = verify_file(bytes, size_bytes, path, expected, verify);
  if (!found.is_intact()) throw Error(Failure{ErrorCode::corrupt, found.message, -1, path, 0});
  return found;
}

}  // namespace kedge::store
