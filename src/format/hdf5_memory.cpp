#include "format/hdf5_memory.hpp"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <cstring>
#include <new>

namespace kedge::format {
namespace {

/// Driver information in a file access list.
struct Info {
  SparseMemory* memory;
};

/// HDF5's state of an open file, which must begin with HDF5's own part.
struct OpenFile {
  H5FD_t common;
  SparseMemory* memory;
  haddr_t end_allocated;
};

OpenFile& file_of(H5FD_t* file) { return *reinterpret_cast<OpenFile*>(file); }
const OpenFile& file_of(const H5FD_t* file) { return *reinterpret_cast<const OpenFile*>(file); }

extern "C" {

H5FD_t* open_memory(const char* /*name*/, unsigned flags, hid_t access, haddr_t /*most*/) {
  const auto* info = static_cast<const Info*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  auto* file = new (std::nothrow) OpenFile{{}, info->memory, 0};
  if (file == nullptr) return nullptr;
  if ((flags & H5F_ACC_TRUNC) != 0) info->memory->resize(0);
  return &file->common;
}

herr_t close_memory(H5FD_t* file) {
  delete &file_of(file);
  return 0;
}

// The features of HDF5's drivers for single files on disk, because the structure must not depend on the driver.
herr_t query_memory(const H5FD_t* /*file*/, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t get_end_allocated(const H5FD_t* file, H5FD_mem_t /*type*/) { return file_of(file).end_allocated; }

herr_t set_end_allocated(H5FD_t* file, H5FD_mem_t /*type*/, haddr_t end) {
  file_of(file).end_allocated = end;
  return 0;
}

haddr_t get_end(const H5FD_t* file, H5FD_mem_t /*type*/) { return file_of(file).memory->size_bytes(); }

herr_t read_memory(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t at, size_t size, void* to) {
  file_of(file).memory->read(at, {static_cast<std::byte*>(to), size});
  return 0;
}

herr_t write_memory(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t at, size_t size, const void* from) {
  SparseMemory& memory = *file_of(file).memory;
  try {
    memory.write(at, {static_cast<const std::byte*>(from), size});
  } catch (const std::bad_alloc&) {
    memory.set_incomplete();
  }
  return 0;
}

herr_t truncate_memory(H5FD_t* file, hid_t /*transfer*/, hbool_t /*closing*/) {
  file_of(file).memory->resize(file_of(file).end_allocated);
  return 0;
}

}  // extern "C"

H5FD_class_t driver() {
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = H5_VFD_RESERVED;
#endif
  driver.name = "kedge-memory";
  driver.maxaddr = (haddr_t{1} << 63U) - 1;
  driver.fc_degree = H5F_CLOSE_WEAK;  // access lists decide
  driver.fapl_size = sizeof(Info);
  driver.open = open_memory;
  driver.close = close_memory;
  driver.query = query_memory;
  driver.get_eoa = get_end_allocated;
  driver.set_eoa = set_end_allocated;
  driver.get_eof = get_end;
  driver.read = read_memory;
  driver.write = write_memory;
  driver.truncate = truncate_memory;
  constexpr std::array<H5FD_mem_t, H5FD_MEM_NTYPES> kFreeLists = H5FD_FLMAP_DICHOTOMY;
  std::ranges::copy(kFreeLists, std::begin(driver.fl_map));
  return driver;
}

}  // namespace

void SparseMemory::read(std::uint64_t offset, std::span<std::byte> bytes) const noexcept {
  while (!bytes.empty()) {
    const std::uint64_t within = offset % kPageBytes;
    const std::size_t size = std::min<std::uint64_t>(bytes.size(), kPageBytes - within);
    const auto page = pages_.find(offset / kPageBytes);
    if (page == pages_.end()) std::memset(bytes.data(), 0, size);
    else std::memcpy(bytes.data(), page->second->data() + within, size);
    offset += size;
    bytes = bytes.subspan(size);
  }
}

void SparseMemory::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  size_bytes_ = std::max(size_bytes_, offset + bytes.size());
  while (!bytes.empty()) {
    const std::uint64_t within = offset % kPageBytes;
    const std::size_t size = std::min<std::uint64_t>(bytes.size(), kPageBytes - within);
    auto page = pages_.find(offset / kPageBytes);
    if (page == pages_.end()) page = pages_.emplace(offset / kPageBytes, std::make_unique<Page>()).first;
    std::memcpy(page->second->data() + within, bytes.data(), size);
    offset += size;
    bytes = bytes.subspan(size);
  }
}

void SparseMemory::resize(std::uint64_t size_bytes) noexcept {
  size_bytes_ = size_bytes;
  const std::uint64_t within = size_bytes % kPageBytes;
  auto page = pages_.lower_bound(size_bytes / kPageBytes);
  if (within != 0 && page != pages_.end() && page->first == size_bytes / kPageBytes) {
    std::fill(page->second->begin() + static_cast<std::ptrdiff_t>(within), page->second->end(), std::byte{0});
    ++page;
  }
  pages_.erase(page, pages_.end());
}

void select_memory(hid_t access, SparseMemory& memory) {
  const H5FD_class_t of_memory = driver();
  // HDF5 keeps the driver registered until the last list and file that use it are closed.
  const Hdf5Handle id(check_hdf5(H5FDregister(&of_memory), "register a file driver"), H5FDunregister);
  const Info info{&memory};
  check_hdf5(H5Pset_driver(access, id.get(), &info), "select the file driver");
}

}  // namespace kedge::format
