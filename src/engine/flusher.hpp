// The engine's part in persistence: the manifest's bytes, and what follows from a flush.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/context.hpp"
#include "format/container_reader.hpp"
#include "format/manifest.hpp"

namespace kedge::engine {

class Flusher {
 public:
  explicit Flusher(Context& context) : context_(context) {}

  /// COLLECTIVE. Moves a commit whose containers lie with their owners to the prefix. The failure, the same on every
  /// rank; the commit is then as it was. With busy, a later start of the run has begun: this engine is dead. Throws
  /// Error{timeout} only.
  [[nodiscard]] std::optional<Failure> flush(const commits::Entry& commit);

 private:
  /// This rank's container of the commit.
  struct Container {
    store::StoreFile* file = nullptr;
    std::unique_ptr<format::ContainerReader> reader;
    std::uint32_t crc = 0;
    std::uint64_t structure_hash = 0;
    Attributes attributes;  ///< rank 0's
  };

  [[nodiscard]] std::optional<Failure> flush_pinned(const commits::Entry& commit, const Container& container);
  void look_at(const commits::Entry& commit, Container& container) const;
  [[nodiscard]] std::optional<Failure> make_layout(const Container& container);
  [[nodiscard]] bool needs_layout(const Container& container) const;
  [[nodiscard]] persist::TagEntry entry_of(const Container& container) const;
  [[nodiscard]] std::optional<Failure> make_manifest(const persist::TagEntry& entry, const Container& container,
                                                     std::vector<std::byte>& manifest) const;
  void keep_copies(const persist::TagEntry& entry, const std::vector<std::byte>& manifest) const;
  [[nodiscard]] std::optional<Failure> sweep();
  [[nodiscard]] std::optional<Failure> retain(const commits::Entry& commit);

  Context& context_;
  bool must_sweep_ = true;                                ///< (same) something may lie half made on the prefix
  bool has_layout_ = false;                               ///< (same)
  std::uint64_t structure_hash_ = 0;                      ///< of this rank's part of the structure of the layout
  std::shared_ptr<const format::ManifestLayout> layout_;  ///< rank 0's: of the last manifest
};

}  // namespace kedge::engine
