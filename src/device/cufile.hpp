// NVIDIA's cuFile (GPUDirect Storage), loaded on first use, not linked. Declared here as in the cuFile API reference,
// because some CUDA toolkits lack its header.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

namespace kedge::device {

// cuFile's binary interface, unchanged since its first release: do not change.

struct CuFileError {
  int code = 0;  ///< CUfileOpError
  int cuda = 0;  ///< CUresult
};

struct CuFileDescription {
  int type = 1;  ///< CU_FILE_HANDLE_TYPE_OPAQUE_FD
  union {
    int descriptor;
    void* handle = nullptr;
  };
  const void* operations = nullptr;
};

struct CuFileProperties {
  unsigned version_major = 0;  ///< version of nvidia-fs; 0 if not loaded
  unsigned version_minor = 0;
  std::size_t poll_threshold_bytes = 0;
  std::size_t direct_io_bytes_max = 0;
  unsigned status_flags = 0;  ///< a bit for each supported kind of storage
  unsigned control_flags = 0;
  std::array<unsigned, 64> others{};  ///< reserve
};

static_assert(sizeof(CuFileError) == 8 && sizeof(CuFileDescription) == 24);
static_assert(offsetof(CuFileProperties, status_flags) == 24 && offsetof(CuFileProperties, control_flags) == 28);

/// Error codes that Kedge handles.
enum CuFileCode : int {
  kCuFileSuccess = 0,
  kCuFilePointerInvalid = 5012,
  kCuFileMemoryTypeInvalid = 5013,
  kCuFilePointerRange = 5014,
  kCuFileAlreadyOpen = 5026,
  kCuFileIoError = 5044
};

/// The cuFile functions that Kedge calls. Once opened, cuFile's driver stays open until the process ends: the
/// application may use it too.
struct CuFile {
  CuFileError (*driver_open)() = nullptr;
  CuFileError (*driver_get_properties)(CuFileProperties*) = nullptr;
  CuFileError (*handle_register)(void** handle, CuFileDescription*) = nullptr;
  void (*handle_deregister)(void* handle) = nullptr;
  ::ssize_t (*write)(void* handle, const void* memory, std::size_t size_bytes, ::off_t file_offset,
                     ::off_t memory_offset) = nullptr;
  CuFileError (*get_flag)(int parameter, bool* value) = nullptr;  ///< may be null

  /// Throws Error{bad_state} if the library is not installed or lacks a function.
  [[nodiscard]] static std::unique_ptr<const CuFile> load(const char* name = "libcufile.so.0");
};

/// The error's text and number.
[[nodiscard]] std::string cufile_error_text(int code);

}  // namespace kedge::device
