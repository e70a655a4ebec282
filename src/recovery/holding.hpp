// A container of the opened commit that this process reads: its own, or one of another number of ranks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "format/container_reader.hpp"
#include "persist/prefix_storage.hpp"
#include "store/pin.hpp"

namespace kedge::recovery {

/// Movable. Storage must outlive it.
class Holding {
 public:
  /// Pins the file. Throws not_found, io, corrupt.
  [[nodiscard]] static Holding in_store(store::StoredFiles& files, const Id128& commit_id, LogicalRank logical_rank,
                                        unsigned copy_threads);
  /// Reads superblock and index. Throws not_found, io, corrupt.
  [[nodiscard]] static Holding on_prefix(persist::PrefixReader& storage, const std::string& directory,
                                         const CommitHead& commit, LogicalRank logical_rank);

  [[nodiscard]] LogicalRank logical_rank() const noexcept { return logical_rank_; }
  [[nodiscard]] bool is_in_store() const noexcept { return static_cast<bool>(file_); }
  [[nodiscard]] const format::ContainerReader& container() const noexcept { return *reader(); }
  [[nodiscard]] const std::string& path() const noexcept { return file_ ? file_->path() : opened_->path; }
  /// A mapped file that another process truncated is noticed before it is read; one on the prefix is read by calls.
  /// Throws io.
  void require_present() const {
    if (file_) file_->require_present();
  }

 private:
  explicit Holding(LogicalRank logical_rank) : logical_rank_(logical_rank) {}
  [[nodiscard]] const format::ContainerReader* reader() const noexcept {
    return opened_ ? opened_->reader.get() : reader_.get();
  }

  LogicalRank logical_rank_;
  store::Pin file_;                                  ///< in this node's store; else none
  std::unique_ptr<format::ContainerReader> reader_;  ///< of `file_`
  std::optional<persist::OpenedContainer> opened_;   ///< on the prefix
};

}  // namespace kedge::recovery
