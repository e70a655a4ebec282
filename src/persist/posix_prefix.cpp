#include "persist/posix_prefix.hpp"

#include <utility>

#include "base/invariant.hpp"
#include "persist/tag_directory.hpp"
#include "persist/tags.hpp"

namespace kedge::persist {
namespace {

class PosixReader : public PrefixReader {
 public:
  explicit PosixReader(std::shared_ptr<PosixPrefix> prefix) : prefix_(std::move(prefix)) {}

  [[nodiscard]] const std::string& location() const noexcept override { return prefix_->path(); }
  [[nodiscard]] TagList list_commits() override { return list_tags(prefix_->file_system(), prefix_->path()); }
  [[nodiscard]] TagEntry read_commit(const std::string& name) override {
    return read_tag(prefix_->file_system(), prefix_->path(), name);
  }
  [[nodiscard]] bool is_published(const std::string& name) override { return prefix_->is_published(name); }
  [[nodiscard]] bool is_own(const TagEntry& entry) override {
    const auto directory = prefix_->file_system().status(prefix_->path_of(entry.directory));
    return directory && directory->owner == prefix_->file_system().user();
  }
  void require_trusted(const TagEntry& entry) override {
    const std::string directory = prefix_->path_of(entry.directory);
    persist::require_trusted(prefix_->file_system(), directory, prefix_->options().trust);
    persist::require_trusted(prefix_->file_system(), fs::join(directory, kManifestFile), prefix_->options().trust);
  }
  [[nodiscard]] OpenedContainer open_container(const std::string& name, const CommitHead& commit,
                                               LogicalRank logical_rank) override {
    OpenedContainer container =
        persist::open_container(prefix_->file_system(), {prefix_->path_of(name)}, commit, logical_rank);
    persist::require_trusted(prefix_->file_system(), container.path, prefix_->options().trust);
    return container;
  }

 protected:
  std::shared_ptr<PosixPrefix> prefix_;
};

class PosixSourceReader final : public PosixReader {
 public:
  using PosixReader::PosixReader;
  [[nodiscard]] TagList list_commits() override {
    require_trusted_parent(prefix_->file_system(), prefix_->path(), prefix_->options().trust);
    if (!prefix_->is_published(kSelfDirectory)) return PosixReader::list_commits();
    TagList list;
    list.entries.push_back(read_commit(std::string(kSelfDirectory)));
    return list;
  }
};

}  // namespace

PosixPrefix::PosixPrefix(std::shared_ptr<fs::FileSystem> file_system, std::string path, Options::Persistent options,
                         const RunStart* run_start)
    : file_system_(std::move(file_system)),
      path_(std::move(path)),
      options_(std::move(options)),
      run_start_(run_start) {}

std::string PosixPrefix::path_of(std::string_view name) const {
  return name == kSelfDirectory ? path_ : fs::join(path_, name);
}

bool PosixPrefix::is_published(std::string_view name) const {
  return file_system_->status(fs::join(path_of(name), kManifestFile)).has_value();
}

bool PosixPrefix::is_own_directory(std::string_view name) const {
  const auto status = file_system_->status(path_of(name));
  return status && status->kind == fs::FileStatus::Kind::directory && status->owner == file_system_->user();
}

const RunStart& PosixPrefix::run_start() const {
  invariant(run_start_ != nullptr, "who changes the prefix has the run's records");
  return *run_start_;
}

TagCatalog& PosixPrefix::catalog() {
  if (!catalog_) catalog_ = std::make_unique<TagCatalog>(*file_system_, run_start().directory().path());
  return *catalog_;
}

PrefixStorage posix_prefix_storage(std::shared_ptr<fs::FileSystem> file_system, std::string prefix,
                                   Options::Persistent options, const RunStart* start) {
  const auto posix =
      std::make_shared<PosixPrefix>(std::move(file_system), std::move(prefix), std::move(options), start);
  PrefixStorage storage{std::make_unique<PosixReader>(posix), make_posix_writer(posix), nullptr};
  storage.remover = make_posix_remover(posix, *storage.reader);
  return storage;
}

std::unique_ptr<PrefixReader> posix_source_reader(std::shared_ptr<fs::FileSystem> file_system, const std::string& path,
                                                  Options::Persistent options) {
  std::string prefix = file_system->canonical(path);
  return std::make_unique<PosixSourceReader>(
      std::make_shared<PosixPrefix>(std::move(file_system), std::move(prefix), std::move(options), nullptr));
}

}  // namespace kedge::persist
