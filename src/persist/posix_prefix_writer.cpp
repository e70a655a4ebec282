// Publishes commits on a parallel filesystem.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "fs/copy.hpp"
#include "fs/file_system.hpp"
#include "persist/new_file.hpp"
#include "persist/posix_prefix.hpp"
#include "persist/prefix_markers.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {
namespace {

/// One for every directory of containers.
template <class Visit>
void for_each_container_directory(const std::string& path, std::uint32_t world_size, Visit&& visit) {
  for (std::uint64_t rank = 0; rank < world_size; rank += kContainersPerDirectory) {
    visit(fs::join(path, container_directory(LogicalRank{static_cast<std::uint32_t>(rank)})));
  }
}

class PosixWriter final : public PrefixWriter {
 public:
  explicit PosixWriter(std::shared_ptr<PosixPrefix> prefix)
      : prefix_(std::move(prefix)), file_system_(prefix_->file_system()) {}

  [[nodiscard]] fs::IoChoice choose_io(Io io) override {
    return fs::choose_io(file_system_, io,
                         {prefix_->run_start().directory().path(), "probe-of-writes", fs::ProbeTarget::Storage::fresh});
  }

  void enable_direct_writes() noexcept override { direct_ = true; }

  [[nodiscard]] bool is_complete(const TagEntry& entry) override {
    if (!prefix_->is_published(entry.directory)) return false;
    const std::string path = prefix_->path_of(entry.directory);
    persist::require_trusted(file_system_, path, prefix_->options().trust);
    bool is_it = false;
    const auto failure =
        attempt([&] { is_it = read_tag(file_system_, prefix_->path(), entry.directory).commit.id == entry.commit.id; });
    if (failure && failure->code != ErrorCode::corrupt) throw Error(*failure);
    if (!is_it) return false;  // a damaged one is written anew
    file_system_.sync_directory(path);
    return true;
  }

  [[nodiscard]] std::uint64_t missing_bytes(const TagEntry& entry, std::uint64_t manifest_bytes,
                                            const PlainFileTotals& plain_files) override {
    const std::uint64_t total_bytes = entry.total_bytes + manifest_bytes + plain_files.total_bytes;
    return total_bytes - std::min(total_bytes, file_system_.space(prefix_->path()).free_bytes);
  }

  void begin_commit(const TagEntry& entry, std::uint64_t manifest_bytes, const PlainFileTotals& plain_files) override {
    prefix_->run_start().require_newest();
    require_space(entry, manifest_bytes, plain_files);
    prefix_->unfinished_tags().mark(entry.directory);
    const std::string path = prefix_->path_of(entry.directory);
    make_directory(path);
    make_directory(fs::join(path, kDataDirectory));
    for_each_container_directory(path, entry.commit.world_size,
                                 [&](const std::string& directory) { make_directory(directory); });
    if (plain_files.file_count != 0)
      prefix_->plain_directory(entry.directory).make_directories(entry.commit.world_size);
  }

  [[nodiscard]] std::uint32_t put_container(const TagEntry& entry, LogicalRank logical_rank,
                                            const ContainerContent& content) override {
    const std::string path = fs::join(prefix_->path_of(entry.directory), container_file(logical_rank));
    const std::uint32_t mode = parse_mode(prefix_->options().mode) & kFileBits;
    auto file = file_system_.create(path, mode);
    if (!file) {
      file_system_.remove(path);  // of an attempt that failed
      file = file_system_.create(path, mode);
    }
    if (!file) throw_name_taken(path);
    if (direct_ && file->enable_direct_writes())
      file->truncate(content.size_bytes);  // or every write moves the end of the file
    std::optional<fs::RateLimitedAccess> paced;
    if (content.pace != nullptr) paced.emplace(*file, *content.pace);
    fs::ByteAccess& to = paced ? static_cast<fs::ByteAccess&>(*paced) : *file;
    const std::uint32_t crc = content.mapped.empty() ? fs::copy(content.bytes, to, content.size_bytes)
                                                     : to.write_with_crc(0, content.mapped, 0);
    file->sync();
    return crc;
  }

  void write_plain_file(const TagEntry& entry, LogicalRank logical_rank, const std::string& name,
                        const std::function<void(fs::ByteAccess& to)>& write) override {
    prefix_->plain_directory(entry.directory).write_file(logical_rank, name, write);
  }

  [[nodiscard]] std::string publish(const TagEntry& entry, std::span<const std::byte> manifest) override {
    const std::string path = prefix_->path_of(entry.directory);
    for_each_container_directory(path, entry.commit.world_size,
                                 [&](const std::string& directory) { file_system_.sync_directory(directory); });
    file_system_.sync_directory(fs::join(path, kDataDirectory));
    if (prefix_->options().plain_routed)
      prefix_->plain_directory(entry.directory).sync_directories(entry.commit.world_size);
    write_manifest(entry, manifest);
    std::string left_out;
    const auto convenience = [&](std::string_view what, auto&& step) {
      if (const auto failure = attempt(step)) {
        left_out += compose("{}{}: {}", left_out.empty() ? "" : "; ", what, to_string(*failure));
      }
    };
    convenience("the run record", [&] {
      // Outputs are nothing to restart from.
      const PrefixMarkers markers(prefix_->run_start());
      if (!entry.commit.is_output && !markers.has_first_manifest(entry.commit.run_id))
        markers.mark_first_manifest(entry.commit.run_id, entry.commit.id);
    });
    convenience("the catalog", [&] { prefix_->catalog().add(entry); });
    convenience("latest", [&] {
      if (!entry.commit.is_output) write_latest(entry.directory);
    });
    convenience("the record of unfinished work", [&] { prefix_->unfinished_tags().unmark(entry.directory); });
    return left_out;
  }

 private:
  void require_space(const TagEntry& entry, std::uint64_t manifest_bytes, const PlainFileTotals& plain_files) const {
    const std::uint64_t total_bytes = entry.total_bytes + manifest_bytes + plain_files.total_bytes;
    const std::uint64_t files = entry.commit.world_size + plain_files.file_count;
    const fs::Space space = file_system_.space(prefix_->path());
    if (space.free_bytes >= total_bytes && space.free_inodes >= files) return;
    refuse(ErrorCode::no_space,
           compose("the prefix has {} and {} files free, but {} and {} files are needed; free some space, for example "
                   "with persistent.keep",
                   human_bytes(space.free_bytes), space.free_inodes, human_bytes(total_bytes), files),
           prefix_->path());
  }

  void make_directory(const std::string& path) const {
    file_system_.make_directory(path, parse_mode(prefix_->options().mode));
    persist::require_trusted(file_system_, path, prefix_->options().trust);
  }

  void write_manifest(const TagEntry& entry, std::span<const std::byte> manifest) {
    const std::string path = prefix_->path_of(entry.directory);
    const std::string temporary_path = fs::join(path, temporary_name(kManifestFile));
    file_system_.remove(temporary_path);
    {
      const auto file = file_system_.create(temporary_path, parse_mode(prefix_->options().mode) & kFileBits);
      if (!file) throw_name_taken(temporary_path);
      (void)fs::copy(manifest, *file);
      file->sync();
    }
    // The directory's own name and all on the way to it: a manifest that a power loss makes unreachable was no commit.
    if (path_is_durable_) file_system_.sync_directory(prefix_->path());
    else fs::sync_parent_directories(file_system_, path);
    path_is_durable_ = true;
    // Names in the directory become durable first: the rename must not reach stable storage before the name of the data
    // directory.
    file_system_.sync_directory(path);
    prefix_->run_start().require_newest();
    file_system_.rename(temporary_path, fs::join(path, kManifestFile));
    file_system_.sync_directory(path);
  }

  void write_latest(const std::string& directory) {
    prefix_->run_start().require_newest();
    const std::string temporary_path =
        fs::join(prefix_->path(), temporary_name(compose(".latest.{}", prefix_->run_start().directory().run())));
    file_system_.remove(temporary_path);
    const auto file = file_system_.create(temporary_path, parse_mode(prefix_->options().mode) & kFileBits);
    if (!file) throw_name_taken(temporary_path);
    const auto failure = attempt([&] {
      const std::string text = directory + "\n";
      (void)fs::copy(std::as_bytes(std::span(text)), *file);
      file->sync();
      file_system_.rename(temporary_path, fs::join(prefix_->path(), kLatestFile));
    });
    if (failure) {
      (void)attempt([&] { file_system_.remove(temporary_path); });
      throw Error(*failure);
    }
    file_system_.sync_directory(prefix_->path());
  }

  std::shared_ptr<PosixPrefix> prefix_;
  fs::FileSystem& file_system_;
  bool direct_ = false;           ///< containers are written past the page cache
  bool path_is_durable_ = false;  ///< every name on the way to the prefix
};

}  // namespace

std::unique_ptr<PrefixWriter> make_posix_writer(std::shared_ptr<PosixPrefix> prefix) {
  return std::make_unique<PosixWriter>(std::move(prefix));
}

}  // namespace kedge::persist
