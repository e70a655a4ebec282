#include "device/cuda_direct_file.hpp"

#include <cerrno>
#include <string>
#include <system_error>

#include "base/run_on_threads.hpp"
#include "base/text.hpp"
#include "device/cuda_context.hpp"
#include "kedge/error.hpp"

namespace kedge::device {
namespace {

constexpr int kForceCompatMode = 2;  // CUFILE_PARAM_FORCE_COMPAT_MODE

[[noreturn]] void throw_unavailable(std::string why) { throw Error(ErrorCode::bad_state, std::move(why)); }

void open_driver(const CuFile& cufile) {
  const ScopedSignalBlock blocked;  // in the threads that cuFile starts
  const CuFileError opened = cufile.driver_open();
  if (opened.code != kCuFileSuccess && opened.code != kCuFileAlreadyOpen) {
    throw_unavailable("cannot open cuFile's driver: " + cufile_error_text(opened.code));
  }
}

/// In compatibility mode cuFile copies through host memory, which only its properties reveal.
bool is_native(const CuFile& cufile, unsigned kinds) {
  bool is_forced = false;
  if (cufile.get_flag != nullptr && cufile.get_flag(kForceCompatMode, &is_forced).code == kCuFileSuccess && is_forced) {
    return false;
  }
  CuFileProperties properties;
  if (cufile.driver_get_properties(&properties).code != kCuFileSuccess) return false;
  return (properties.status_flags & kinds) != 0;
}

class CudaDirectFile final : public DirectFile {
 public:
  CudaDirectFile(const CudaDriver& driver, const CuFile& cufile, int descriptor, bool native)
      : driver_(driver), cufile_(cufile), is_native_(native) {
    CuFileDescription description;
    description.descriptor = descriptor;
    const CuFileError registered = cufile_.handle_register(&handle_, &description);
    if (registered.code != kCuFileSuccess) {
      throw_unavailable("cannot register the file with cuFile: " + cufile_error_text(registered.code));
    }
  }
  ~CudaDirectFile() override { cufile_.handle_deregister(handle_); }

  void write(const MemoryLocation& location, std::uint64_t offset, std::span<const std::byte> memory) override {
    const ScopedContext current(driver_, location);
    const ScopedRelaxedCapture uncaptured(driver_);
    while (!memory.empty()) {
      errno = 0;
      const auto written = cufile_.write(handle_, memory.data(), memory.size(), static_cast<::off_t>(offset), 0);
      if (written <= 0) fail(location, written, written == -1 ? errno : 0);
      const auto bytes = static_cast<std::size_t>(written);
      if (bytes > memory.size()) throw_unavailable("cuFile reports that it wrote more than was asked for");
      offset += bytes;
      memory = memory.subspan(bytes);
    }
  }
  std::string_view method() const noexcept override {
    return is_native_ ? "past host memory" : "in cuFile's compatibility mode, which copies through host memory";
  }

 private:
  [[noreturn]] void fail(const MemoryLocation& location, ::ssize_t result, int system_error) const;

  const CudaDriver& driver_;
  const CuFile& cufile_;
  bool is_native_;
  void* handle_ = nullptr;
};

/// Requires the context. Throws bad_state for failures of neither disk nor memory: another way may work.
void CudaDirectFile::fail(const MemoryLocation& location, ::ssize_t result, int system_error) const {
  const std::string what = compose("write memory of GPU {} by cuFile", location.ordinal);
  if (result == -1) {
    const std::string why = std::generic_category().message(system_error);
    switch (system_error) {
      case ENOSPC:
      case EDQUOT:
        throw Error(ErrorCode::no_space, compose("cannot {}: {}; free some space, or set store.path to a larger "
                                                 "filesystem",
                                                 what, why));
      case 0:
      case EINVAL:
      case EOPNOTSUPP:
      case ENOSYS:
      case ENOMEM:
      case EPERM: throw_unavailable(compose("cannot {}: {}", what, why));
      default:
        throw Error(Failure{ErrorCode::io, compose("cannot {}: {}; check the disk", what, why), -1, {}, system_error});
    }
  }
  const int code = static_cast<int>(-result);
  const std::string why = result == 0 ? std::string("short write") : cufile_error_text(code);
  driver_.require_success(driver_.context_synchronize(), what);  // errors that disable the device are reported first
  switch (code) {
    case 0:
    case kCuFileIoError: throw Error(ErrorCode::io, compose("cannot {}: {}; check the disk", what, why));
    case kCuFilePointerInvalid:
    case kCuFileMemoryTypeInvalid:
    case kCuFilePointerRange:
      throw Error(ErrorCode::invalid_argument, compose("cannot {}: {}; check the pointer and the shape", what, why));
    default: throw_unavailable(compose("cannot {}: {}", what, why));
  }
}

}  // namespace

std::unique_ptr<DirectFile> cuda_direct_file(const CudaDriver& driver, const CuFile& cufile,
                                             const MemoryLocation& location, int descriptor, unsigned kinds) {
  const ScopedContext current(driver, location);
  const ScopedRelaxedCapture uncaptured(driver);
  open_driver(cufile);
  return std::make_unique<CudaDirectFile>(driver, cufile, descriptor, is_native(cufile, kinds));
}

}  // namespace kedge::device
