// Opens files for the subcommands and says what they are, without believing any of their bytes.
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
  container,      ///< a sealed container, or the remains of one
  set_file,       ///< a sealed parity file or set descriptor, or the remains of one
  unsealed,       ///< the file is being written, or free to be written
  other_version,  ///< of a format that this program does not know
  foreign,        ///< no file of Kedge's
};

/// Pure. `first` is the first 4096 bytes of the file, or all if it is shorter; `named` is what the
/// file would be by its name in a store's directory, if it has one of those: then its content is damage rather than
/// somebody else's file.
[[nodiscard]] FileKind classify(std::span<const std::byte> first, std::optional<store::FileKind> named);

/// A file that was opened to be looked at.
struct OpenedFile {
  std::unique_ptr<fs::File> file;
  std::uint64_t size_bytes = 0;
  std::vector<std::byte> first;  ///< as `first` of classify()
  FileKind kind = FileKind::foreign;
};

/// Throws Error{not_found | io}.
[[nodiscard]] OpenedFile open_file(fs::FileSystem& file_system, const std::string& path);

/// The error to throw for a file that is neither FileKind::container nor FileKind::set_file: not Error{corrupt}, which
/// is damage.
[[nodiscard]] Error refusal(FileKind kind, const std::string& path);

/// The file's expected kind and rank: by its name in a store's directory, if it has one of those.
[[nodiscard]] store::ExpectedFile expected_from_name(const std::optional<store::FileName>& name, bool manifest = false);

/// The fault that was found, in words for people who look at files.
[[nodiscard]] std::string describe_fault(const OpenedFile& opened, const store::VerifiedFile& found,
                                         const std::optional<store::FileName>& name);

/// True for a manifest, as a store keeps it beside containers until its commit is on the prefix: by its name there,
/// else by its content.
[[nodiscard]] bool is_manifest(const OpenedFile& opened, const std::optional<store::FileName>& name);

/// Result of checking one file.
struct Finding {
  enum class State : std::uint8_t { ok, damaged, unsealed, uncommitted, not_checked };
  State state = State::not_checked;
  std::string path;
  std::uint64_t size_bytes = 0;
  std::optional<store::FileKind> kind;           ///< by its content, else by its name, if either tells
  std::optional<format::Superblock> superblock;  ///< of a container, if it could be read
  std::optional<format::SetDescriptor> set;      ///< of a parity file or set descriptor, likewise
  std::optional<format::ManifestHead> manifest;  ///< of a checkpoint's manifest, likewise
  std::vector<format::Damage> damages;           ///< if state is damaged and the places are known
  std::string reason;                            ///< one sentence, unless ok
};

/// Sets the finding's state by the failure: corrupt is damage, bad_state unsealed, anything else cannot be looked at.
void judge(const Failure& failure, Finding& finding);
/// Damaged if there is any damage, else ok.
void judge(std::vector<format::Damage> damages, Finding& finding);

/// Reads the whole file and checks every byte against its checksum. In a store's directory, `name` is the file's, and
/// the file must be of that kind and rank. Never throws Error: what went wrong is in the finding. A file that the
/// running job recycles meanwhile is reported as unsealed, not as damaged.
[[nodiscard]] Finding check_file(fs::FileSystem& file_system, const std::string& path,
                                 const std::optional<store::FileName>& name,
                                 const std::function<void(std::uint64_t)>& on_progress);

}  // namespace kedge::tools
