// Pins a file of the node-local store for its own lifetime.
#pragma once

#include <utility>

#include "base/attempt.hpp"
#include "store/node_store.hpp"

namespace kedge::store {

/// One pin of NodeStore; movable. The store must outlive it.
class Pin {
 public:
  Pin() = default;
  /// Throws not_found, io.
  Pin(NodeStore& store, FileKind kind, LogicalRank whose, const FileKey& key)
      : store_(&store), file_(&store.pin(kind, whose, key)) {}
  Pin(Pin&& other) noexcept : store_(other.store_), file_(std::exchange(other.file_, nullptr)) {}
  Pin& operator=(Pin&& other) noexcept {
    std::swap(store_, other.store_);
    std::swap(file_, other.file_);
    return *this;
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() {
    if (file_ != nullptr) (void)attempt([&] { store_->unpin(*file_); });
  }

  [[nodiscard]] explicit operator bool() const noexcept { return file_ != nullptr; }
  [[nodiscard]] StoreFile& operator*() const noexcept { return *file_; }
  [[nodiscard]] StoreFile* operator->() const noexcept { return file_; }

 private:
  NodeStore* store_ = nullptr;
  StoreFile* file_ = nullptr;
};

}  // namespace kedge::store
