// Opens files for the subcommands and determines their kind, without trusting their content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/container_reader.hpp"
#include "format/manifest.hpp"
#include "format/set_descriptor.hpp"
#include "fs/file_system.hpp"
#include "store/file_name.hpp"
#include "store/verify_file.hpp"

namespace kedge::tools {

enum class FileKind : std::uint8_t {
  container,      ///< a sealed container, or its remains
  set_file,       ///< a sealed parity file or set descriptor, or its remains
  unsealed,       ///< being written, or free
  other_version,  ///< of an unknown format version
  foreign,        ///< not Kedge's
};

/// Pure. `first` has the first 4096 bytes, or all of a shorter file. `named` is the kind according to the name in a
/// store's directory, if it has one: unexpected content then counts as damage, not as a foreign file.
[[nodiscard]] FileKind classify(std::span<const std::byte> first, std::optional<store::FileKind> named);

/// A file opened for inspection.
struct OpenedFile {
  std::unique_ptr<fs::File> file;
  std::uint64_t size_bytes = 0;
  std::vector<std::byte> first;  ///< for classify()
  FileKind kind = FileKind::foreign;
};

/// Throws Error{not_found | io}.
[[nodiscard]] OpenedFile open_file(fs::FileSystem& file_system, const std::string& path);

/// The error for a file that is neither a container nor a set file; not Error{corrupt}, which means damage.
[[nodiscard]] Error refusal(FileKind kind, const std::string& path);

/// Expected kind and rank according to the name in a store's directory.
[[nodiscard]] store::ExpectedFile expected_from_name(const std::optional<store::FileName>& name, bool manifest = false);

/// The fault as text for people.
[[nodiscard]] std::string describe_fault(const OpenedFile& opened, const store::VerifiedFile& found,
                                         const std::optional<store::FileName>& name);

/// Whether it is a manifest, judging by its name in a store's directory (where manifests stay until their commit is
/// persistent), or else by its content.
[[nodiscard]] bool is_manifest(const OpenedFile& opened, const std::optional<store::FileName>& name);

/// Result of checking a file.
struct Finding {
  enum class State : std::uint8_t { ok, damaged, unsealed, uncommitted, not_checked };
  State state = State::not_checked;
  std::string path;
  std::uint64_t size_bytes = 0;
  std::optional<store::FileKind> kind;           ///< by content or name; nothing if unknown
  std::optional<format::Superblock> superblock;  ///< of a readable container
  std::optional<format::SetDescriptor> set;      ///< of a readable parity file or set descriptor
  std::optional<format::ManifestHead> manifest;  ///< of a readable manifest
  std::vector<format::Damage> damages;           ///< if the state is damaged and the locations are known
  std::string reason;                            ///< one sentence; empty if ok
};

/// Sets the state: corrupt becomes damaged, bad_state unsealed, other failures unchecked.
void add_failure(const Failure& failure, Finding& finding);
/// Sets the state to damaged if there is any damage, else to ok.
void add_failure(std::vector<format::Damage> damages, Finding& finding);

/// Reads the whole file and compares every byte with its checksum. In a store's directory, `name` is the file's, and
/// determines the expected kind and rank. Never throws Error: failures are in the finding. A file that a running job
/// reuses meanwhile is unsealed, not damaged.
[[nodiscard]] Finding check_file(fs::FileSystem& file_system, const std::string& path,
                                 const std::optional<store::FileName>& name,
                                 const std::function<void(std::uint64_t)>& on_progress);

}  // namespace kedge::tools
