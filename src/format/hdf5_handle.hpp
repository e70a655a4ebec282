// Private to hdf5_structure and hdf5_view: RAII for HDF5, checked calls, the process-wide mutex. Exposes hdf5.h, so
// include it there only.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "kedge/types.hpp"

namespace kedge::format {

/// Hold it around every sequence of HDF5 calls: it locks the process-wide mutex and switches off HDF5's error printing
/// in this thread, which it restores afterwards.
class Hdf5Lock {
 public:
  Hdf5Lock();
  ~Hdf5Lock();
  Hdf5Lock(const Hdf5Lock&) = delete;
  Hdf5Lock& operator=(const Hdf5Lock&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  unsigned is_v2_ = 1;
  H5E_auto2_t auto2_ = nullptr;
#ifndef H5_NO_DEPRECATED_SYMBOLS
  H5E_auto1_t auto1_ = nullptr;
#endif
  void* data_ = nullptr;
  bool has_saved_handler_ = false;
};

class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close closer) : id_(id), close_(closer) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }

  [[nodiscard]] hid_t get() const noexcept { return id_; }
  [[nodiscard]] bool is_open() const noexcept { return id_ >= 0; }
  /// Closes the handle now and returns the result.
  [[nodiscard]] herr_t close() { return close_(std::exchange(id_, -1)); }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// Returns `result`; throws Error{io} "HDF5 could not <what>: <HDF5's message>" if it is negative.
hid_t check_hdf5(hid_t result, const std::string& action);

/// The file type of a region's elements. Requires an Hdf5Lock.
[[nodiscard]] Hdf5Handle make_file_type(kedge::DataType dtype);

/// A compound type of `size_bytes` with the described members (members.hpp). Requires an Hdf5Lock.
[[nodiscard]] Hdf5Handle make_struct_type(std::string_view members, std::uint64_t size_bytes);

}  // namespace kedge::format
