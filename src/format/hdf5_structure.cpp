#include "format/hdf5_structure.hpp"

#include <new>

#include "format/hdf5_handle.hpp"
#include "format/hdf5_memory.hpp"
#include "format/on_disk.hpp"
#include "kedge/error.hpp"

namespace kedge::format {
namespace {

constexpr const char* kName = "structure";  // names no file on disk

Hdf5Handle file_creation() {
  Hdf5Handle list = make_object_properties(H5P_FILE_CREATE);
  check_hdf5(H5Pset_userblock(list.get(), kSuperblockBytes), "set the user block");
  return list;
}

// A file version that every current reader knows, and no locking, since the file is private.
Hdf5Handle file_access(SparseMemory& memory, std::uint64_t meta_block_bytes, Hdf5Versions versions,
                       H5F_libver_t oldest = H5F_LIBVER_V18) {
  Hdf5Handle list(check_hdf5(H5Pcreate(H5P_FILE_ACCESS), "create a property list"), H5Pclose);
  select_memory(list.get(), memory);
  const H5F_libver_t newest = versions == Hdf5Versions::v1_8 ? H5F_LIBVER_V18 : H5F_LIBVER_V110;
  check_hdf5(H5Pset_libver_bounds(list.get(), oldest, newest), "set the version bounds");
  check_hdf5(H5Pset_alignment(list.get(), kLargeRegionBytes, kAlignmentBytes), "set the alignment");
  check_hdf5(H5Pset_meta_block_size(list.get(), meta_block_bytes), "set the size of metadata blocks");
  check_hdf5(H5Pset_fclose_degree(list.get(), H5F_CLOSE_STRONG), "set how the file closes");
#if H5_VERSION_GE(1, 10, 7)
  check_hdf5(H5Pset_file_locking(list.get(), false, true), "switch file locking off");
#endif
  return list;
}

Hdf5Handle dataset_creation() {
  Hdf5Handle list = make_object_properties(H5P_DATASET_CREATE);
  check_hdf5(H5Pset_layout(list.get(), H5D_CONTIGUOUS), "set the layout");
  check_hdf5(H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY), "set the allocation time");
  check_hdf5(H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER), "switch filling off");
  return list;
}

Hdf5Handle link_creation() {
  Hdf5Handle list(check_hdf5(H5Pcreate(H5P_LINK_CREATE), "create a property list"), H5Pclose);
  check_hdf5(H5Pset_char_encoding(list.get(), H5T_CSET_UTF8), "set the encoding of names");
  return list;
}

Hdf5Handle create_file(const Hdf5Handle& access) {
  const Hdf5Handle creation = file_creation();
  return {check_hdf5(H5Fcreate(kName, H5F_ACC_TRUNC, creation.get(), access.get()), "create its scratch file"),
          H5Fclose};
}

// Makes a root group with an object header of the old version, the only one without a checksum. HDF5 creates that
// version while the version bounds permit the oldest libraries, so only the root group is created under them.
Hdf5Handle create_with_old_root(SparseMemory& memory, std::uint64_t meta_block_bytes) {
  Hdf5Handle file = create_file(file_access(memory, meta_block_bytes, Hdf5Versions::v1_10, H5F_LIBVER_EARLIEST));
  check_hdf5(H5Fset_libver_bounds(file.get(), H5F_LIBVER_V18, H5F_LIBVER_V110), "set the version bounds");
#if H5_VERSION_GE(1, 12, 0)
  H5O_native_info_t root;
  check_hdf5(H5Oget_native_info(file.get(), &root, H5O_NATIVE_INFO_HDR), "describe the root group");
#else
  H5O_info_t root;
  check_hdf5(H5Oget_info2(file.get(), &root, H5O_INFO_HDR), "describe the root group");
#endif
  if (root.hdr.version != 1) {
    throw Error(ErrorCode::io, "HDF5 made a root group whose attributes cannot be overwritten; please report this");
  }
  return file;
}

}  // namespace

// Object times would make files of one structure differ.
Hdf5Handle make_object_properties(hid_t kind) {
  Hdf5Handle list(check_hdf5(H5Pcreate(kind), "create a property list"), H5Pclose);
  check_hdf5(H5Pset_obj_track_times(list.get(), false), "switch object times off");
  return list;
}

Hdf5Handle make_dataspace(const Shape& shape) {
  if (shape.dimensions() == 0) return {check_hdf5(H5Screate(H5S_SCALAR), "create a dataspace"), H5Sclose};
  std::array<hsize_t, Shape::kMaxDimensions> extents{};
  for (std::size_t i = 0; i < shape.dimensions(); ++i) extents[i] = shape[i];
  const int dimensions = static_cast<int>(shape.dimensions());
  return {check_hdf5(H5Screate_simple(dimensions, extents.data(), nullptr), "create a dataspace"), H5Sclose};
}

const Hdf5Handle& Hdf5Scratch::Impl::dataset_type(const Elements& elements, const Shape& shape) {
  if (!elements.members.empty()) {
    const std::uint64_t struct_bytes = shape[shape.dimensions() - 1];  // includes padding behind the last member
    Hdf5Handle& type = struct_types[{std::string(elements.members), struct_bytes}];
    if (!type.is_open()) type = make_struct_type(elements.members, struct_bytes);
    return type;
  }
  Hdf5Handle& type = types.at(static_cast<std::size_t>(elements.dtype));
  if (!type.is_open()) type = make_file_type(elements.dtype);
  return type;
}

Shape shape_in_file(const Elements& elements, const Shape& shape) {
  return elements.members.empty() ? shape : Shape(shape.extents().first(shape.dimensions() - 1));
}

std::uint64_t Hdf5Scratch::Impl::create_allocated_dataset(const std::string& path, hid_t type, hid_t space,
                                                          hid_t creation) const {
  const Hdf5Handle dataset(
      check_hdf5(H5Dcreate2(file.get(), path.c_str(), type, space, links.get(), creation, H5P_DEFAULT),
                 "create dataset '" + path + "'"),
      H5Dclose);
  if (H5Sget_simple_extent_npoints(space) == 0) return 0;  // HDF5 would return 4095, inside the user block
  const haddr_t offset = H5Dget_offset(dataset.get());
  if (offset == HADDR_UNDEF || offset < kSuperblockBytes) check_hdf5(-1, "place dataset '" + path + "'");
  return offset;
}

Hdf5Scratch::Hdf5Scratch(std::uint64_t meta_block_bytes, Hdf5Versions versions) {
  const Hdf5Lock gate;
  auto impl = std::make_unique<Impl>(versions);  // destroyed before the lock if something below throws
  impl->groups = make_object_properties(H5P_GROUP_CREATE);
  impl->datasets = dataset_creation();
  impl->links = link_creation();
  impl->file = versions == Hdf5Versions::v1_10 ? create_with_old_root(impl->memory, meta_block_bytes)
                                               : create_file(file_access(impl->memory, meta_block_bytes, versions));
  impl_ = std::move(impl);
}

Hdf5Scratch::~Hdf5Scratch() {
  if (!impl_) return;
  const Hdf5Lock gate;
  impl_.reset();
}

void Hdf5Scratch::create_group(const std::string& path) {
  const Hdf5Lock gate;
  const Hdf5Handle group(
      check_hdf5(H5Gcreate2(impl_->file.get(), path.c_str(), impl_->links.get(), impl_->groups.get(), H5P_DEFAULT),
                 "create group '" + path + "'"),
      H5Gclose);
}

std::uint64_t Hdf5Scratch::create_dataset(const std::string& path, const Elements& elements, const Shape& shape) {
  const Hdf5Lock gate;
  return impl_->create_allocated_dataset(path, impl_->dataset_type(elements, shape).get(),
                                         make_dataspace(shape_in_file(elements, shape)).get(), impl_->datasets.get());
}

void Hdf5Scratch::reopen(std::uint64_t meta_block_bytes) {
  const Hdf5Lock gate;
  check_hdf5(impl_->file.close(), "close its scratch file");
  if (impl_->memory.is_incomplete()) throw std::bad_alloc();
  const Hdf5Handle access = file_access(impl_->memory, meta_block_bytes, impl_->versions);
  impl_->file = {check_hdf5(H5Fopen(kName, H5F_ACC_RDWR, access.get()), "reopen its scratch file"), H5Fclose};
}

std::uint64_t Hdf5Scratch::close() {
  {
    const Hdf5Lock gate;
    check_hdf5(impl_->file.close(), "close its scratch file");
  }
  if (impl_->memory.is_incomplete()) throw std::bad_alloc();
  return impl_->memory.size_bytes();
}

void Hdf5Scratch::read(std::uint64_t offset, std::span<std::byte> bytes) const { impl_->memory.read(offset, bytes); }

}  // namespace kedge::format
