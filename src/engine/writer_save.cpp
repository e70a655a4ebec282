// What a rank puts into its container: regions of memory, and files that it was given a path for.
#include <string>
#include <utility>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "engine/device_memory.hpp"
#include "engine/writer.hpp"

namespace kedge::engine {
namespace {

// How much is copied into a mapping before the file is checked again.
constexpr std::uint64_t kCheckEveryBytes = std::uint64_t{1} << 20U;

}  // namespace

Status Writer::save(std::string_view name, const Region& region, const Placement& placement) {
  if (auto failure = check_writing("save")) return *failure;
  const double begin_s = uses_.clock.seconds();
  double waited_s = 0;
  auto failure = attempt([&] {
    const format::RegionSpec spec{std::string(name), region.dtype, region.shape,
                                  placement,         false,        std::string(region.members)};
    if (const auto problem = format::check_region_spec(spec)) throw Error(*problem);
    if (format::is_attributes_region(spec)) {
      throw Error(ErrorCode::invalid_argument, "the name '.kedge/attributes' is reserved; give attributes to create");
    }
    std::uint64_t elements = 0;
    (void)element_count(region.shape, elements);  // check() refused what does not fit
    const std::uint64_t bytes = elements * size_bytes(region.dtype);
    if (region.data == nullptr && bytes != 0) {
      throw Error(ErrorCode::invalid_argument, compose("region '{}' has no memory (null pointer)", name));
    }
    const auto memory = wait_for_device(spec.name, region, bytes, waited_s);
    // While neither a rank, whose worker may need this one's, nor a device is waited for.
    const pipeline::BackgroundPause::Guard guard(uses_.pause);
    require_present(bytes);
    copy(spec, {static_cast<const std::byte*>(region.data), bytes}, memory);
  });
  const double spent_s = uses_.clock.seconds() - begin_s - waited_s;
  {
    const std::lock_guard guard(mutex_);
    checkpoint_->blocked_s += spent_s;
  }
  return failure ? remember(std::move(*failure)) : Status{};
}

/// Local. Where a region is, if that is on a device. How many seconds this waited for what the device was still to do:
/// that is the application's own work, and no cost of the checkpoint.
std::optional<device::Span> Writer::wait_for_device(std::string_view name, const Region& region, std::uint64_t bytes,
                                                    double& waited_s) {
  const double begin_s = uses_.clock.seconds();
  std::optional<device::Span> memory;
  const auto failure = attempt(
      [&] { memory = with_region_name(name, [&] { return find_device_memory(uses_.staging, region, bytes); }); });
  waited_s = uses_.clock.seconds() - begin_s;
  comm::throw_if(failure);
  return memory;
}

/// Local. From the host, or from a device.
void Writer::copy(const format::RegionSpec& spec, std::span<const std::byte> on_host,
                  const std::optional<device::Span>& on_device) {
  format::ContainerWriter& container = *checkpoint_->container;
  if (!on_device) return container.add(spec, on_host);
  checkpoint_->device_bytes += on_device->size_bytes;
  const bool may_be_on_host = on_device->location.is_managed;
  if (!may_be_on_host) checkpoint_->might_have_snapshots = true;
  with_region_name(spec.name, [&] {
    if (checkpoint_->takes_snapshots && !may_be_on_host && take_snapshot(spec, *on_device)) return;
    // The whole file is registered for it, which must be worth it.
    container.add(spec, uses_.staging, *on_device, pattern().mostly_of_devices);
  });
}

/// To check the file costs a system call: once per MiB, not once per region.
void Writer::require_present(std::uint64_t bytes) {
  Checkpoint& checkpoint = *checkpoint_;
  if (checkpoint.copied_since_check.fetch_add(bytes) + bytes < kCheckEveryBytes) return;
  checkpoint.copied_since_check = 0;
  checkpoint.draft->file().require_present();
}

Routed Writer::route_out(std::string_view name, std::uint64_t max_bytes) {
  if (auto failure = check_writing("route_out")) return {{}, *failure};
  std::string path;
  auto failure = attempt([&] {
    const std::lock_guard guard(mutex_);
    if (const Route* other = checkpoint_->routed.find_conflict(name)) {
      throw Error(ErrorCode::invalid_argument,
                  compose("'{}' cannot be routed beside '{}'; route each file once, and none in the place of a "
                          "directory",
                          name, other->name));
    }
    path = checkpoint_->routed.add(name, max_bytes).path;
  });
  if (failure) return {{}, remember(std::move(*failure))};
  return {path, {}};
}

/// Local. Streams what was written to the routes into the container.
void Writer::collect_routed_files() {
  checkpoint_->routed.copy_into([&](const format::RegionSpec& spec, fs::ByteAccess& from, std::uint64_t bytes) {
    require_present(bytes);
    checkpoint_->container->add(spec, from, bytes);
  });
}

}  // namespace kedge::engine
