// Pins a file of the node-local store for its own lifetime.
#pragma once

#include <utility>

#include "base/attempt.hpp"
#include "store/stored_files.hpp"

namespace kedge::store {

/// One pin of StoredFiles; movable. They must outlive it.
class Pin {
 public:
  Pin() = default;
  /// Throws not_found, io.
  Pin(StoredFiles& files, FileKind kind, LogicalRank owner, const FileKey& key)
      : files_(&files), file_(&files.pin(kind, owner, key)) {}
  Pin(Pin&& other) noexcept : files_(other.files_), file_(std::exchange(other.file_, nullptr)) {}
  Pin& operator=(Pin&& other) noexcept {
    std::swap(files_, other.files_);
    std::swap(file_, other.file_);
    return *this;
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() {
    if (file_ != nullptr) (void)attempt([&] { files_->unpin(*file_); });
  }

  [[nodiscard]] explicit operator bool() const noexcept { return file_ != nullptr; }
  [[nodiscard]] StoreFile& operator*() const noexcept { return *file_; }
  [[nodiscard]] StoreFile* operator->() const noexcept { return file_; }

 private:
  StoredFiles* files_ = nullptr;
  StoreFile* file_ = nullptr;
};

}  // namespace kedge::store
