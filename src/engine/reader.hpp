// The read side: open, load, close.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/context.hpp"
#include "format/container_reader.hpp"
#include "recovery/recovery.hpp"

namespace kedge::engine {

class Reader {
 public:
  explicit Reader(Context& context) : context_(context) {}

  std::optional<Tag> open(const Selection& selection, Newer newer);
  [[nodiscard]] std::vector<RegionInfo> regions() const;
  [[nodiscard]] CheckpointInfo info() const;
  Status load(std::string_view name, const MutableRegion& region);
  Routed route_in(std::string_view name);
  void close();

 private:
  struct OpenCheckpoint {
    store::StoreFile* file = nullptr;              ///< of the store, pinned; null for a Source
    std::unique_ptr<fs::ByteAccess> source_bytes;  ///< a Source's container, read where it lies
    std::string source_prefix;                     ///< as it was given
    Id128 parent_before;                           ///< what the next commit's parent was before this was opened
    std::unique_ptr<format::ContainerReader> container;
    std::vector<std::string> extracted;
    std::optional<Failure> first_failure;
  };

  [[nodiscard]] Tag open_source(const Source& source, double begin_s);
  void take_hold(const recovery::Opened& opened);
  void tell(const recovery::Opened& opened, double begin_s);
  void hold(CheckpointInfo info);
  void share_attributes();
  void check_present() const;
  void release();
  Status remember(Failure failure);
  [[nodiscard]] const format::PlacedRegion& region(std::string_view name) const;
  [[nodiscard]] std::optional<Failure> not_reading(std::string_view call) const;

  Context& context_;
  mutable std::mutex mutex_;  ///< guards what load and route_in change from several threads
  std::unique_ptr<OpenCheckpoint> open_;
  std::optional<CheckpointInfo> info_;  ///< of the checkpoint open now, or opened last
};

}  // namespace kedge::engine
