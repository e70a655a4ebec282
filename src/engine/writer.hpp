// The write side: create, save, commit.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/context.hpp"
#include "engine/flusher.hpp"
#include "format/container_writer.hpp"
#include "store/sealing.hpp"

namespace kedge::engine {

class Writer {
 public:
  Writer(Context& context, Flusher& flusher) : context_(context), flusher_(flusher) {}

  void create(std::string_view tag, const Attributes& attributes);
  Status save(std::string_view name, const Region& region, const Placement& placement);
  Routed route_out(std::string_view name, std::uint64_t max_bytes);
  void commit();
  void abandon();

 private:
  struct RoutedFile {
    std::string name;
    std::string path;
    std::uint64_t max_bytes = 0;
  };
  /// What create began.
  struct Checkpoint {
    CommitHead commit;
    Attributes attributes;
    std::optional<store::Sealing> sealing;  ///< of the container alone
    store::Draft* draft = nullptr;          ///< until it is sealed; null only while create fails
    store::StoreFile* file = nullptr;       ///< the draft's
    std::unique_ptr<format::ContainerWriter> container;
    std::vector<RoutedFile> routed;
    std::optional<Failure> first_failure;
    double blocked_s = 0;
    std::atomic<std::uint64_t> copied_since_check = 0;
  };

  [[nodiscard]] CommitHead draw_identity(std::string_view tag);
  void copy(Checkpoint& checkpoint, const format::RegionSpec& spec, std::span<const std::byte> bytes);
  void take_in(Checkpoint& checkpoint, const RoutedFile& routed);
  void finish();
  void seal();
  void throw_given_up(const std::optional<Failure>& failure);
  void save_attributes(Checkpoint& checkpoint);
  void check_global_arrays(const std::shared_ptr<const format::Layout>& layout);
  void make_next_ready(std::uint64_t size_bytes) const;
  [[nodiscard]] std::optional<Failure> protect_if_due();
  [[nodiscard]] std::optional<Failure> flush_if_due();
  void tell(std::uint64_t total_bytes, double blocked_s) const;
  void give_up();
  void drop_routed();
  Status remember(Failure failure);
  [[nodiscard]] std::optional<Failure> not_writing(std::string_view call) const;

  Context& context_;
  Flusher& flusher_;
  std::mutex mutex_;  ///< guards what save and route_out change from several threads
  std::unique_ptr<Checkpoint> checkpoint_;
  std::uint64_t commits_ = 0;                     ///< (same) of this engine: every Nth is protected
  std::size_t attributes_room_ = 0;               ///< of the region for them; it never shrinks, so that places stay
  std::shared_ptr<const format::Layout> layout_;  ///< of the last commit: what the next is expected to look like
};

}  // namespace kedge::engine
