// Files that the model's devices write.
#include <stdexcept>

#include "harness/model_devices.hpp"

namespace kedge::faults {

class ModelDevices::ModelFile final : public device::DirectFile {
 public:
  ModelFile(std::shared_ptr<ModelDevices> devices, int descriptor)
      : devices_(std::move(devices)), descriptor_(descriptor) {
    const std::lock_guard guard(devices_->mutex_);
    ++devices_->direct_files_;
  }
  ~ModelFile() override {
    const std::lock_guard guard(devices_->mutex_);
    --devices_->direct_files_;
  }
  void write(const device::MemoryLocation& location, std::uint64_t offset, std::span<const std::byte> memory) override {
    devices_->count("direct_write");
    constexpr std::uint64_t kPage = 4096;
    if (offset % kPage != 0 || memory.size() % kPage != 0 || memory.empty()) {
      throw std::logic_error("a device writes parts of pages");
    }
    const std::byte* inside = nullptr;
    {
      const std::lock_guard guard(devices_->mutex_);
      inside = devices_->inside_of(location, memory.data(), memory.size());
      devices_->written_directly_ += memory.size();
    }
    devices_->write_file(descriptor_, offset, {inside, memory.size()});
  }
  std::string_view method() const noexcept override { return "as the model does"; }

 private:
  std::shared_ptr<ModelDevices> devices_;
  int descriptor_;
};

std::unique_ptr<device::DirectFile> ModelDevices::open_direct_file(const device::MemoryLocation& /*location*/,
                                                                   int descriptor) {
  count("direct_file");
  if (!write_file) {
    throw Error(ErrorCode::bad_state, "the model has no such way to files");
  }
  return std::make_unique<ModelFile>(shared_from_this(), descriptor);
}

std::size_t ModelDevices::direct_files() const {
  const std::lock_guard guard(mutex_);
  return direct_files_;
}

std::size_t ModelDevices::written_directly() const {
  const std::lock_guard guard(mutex_);
  return written_directly_;
}

}  // namespace kedge::faults
