// Objects that only manifests have: a table, a text, virtual datasets, links to other files.
#include <array>
#include <optional>

#include "format/hdf5_memory.hpp"
#include "format/on_disk.hpp"
#include "format/region_spec.hpp"

namespace kedge::format {
namespace {

using Extents = std::array<hsize_t, Shape::kMaxDimensions>;

Extents extents_of(const Shape& shape) {
  Extents extents{};
  for (std::size_t i = 0; i < shape.dimensions(); ++i) extents[i] = shape[i];
  return extents;
}

Hdf5Handle text_type(std::size_t size_bytes, H5T_str_t padding) {
  Hdf5Handle type(check_hdf5(H5Tcopy(H5T_C_S1), "copy a type"), H5Tclose);
  check_hdf5(H5Tset_size(type.get(), size_bytes), "set a string's size");
  check_hdf5(H5Tset_strpad(type.get(), padding), "set a string's padding");
  check_hdf5(H5Tset_cset(type.get(), H5T_CSET_UTF8), "set a string's encoding");
  return type;
}

Hdf5Handle row_type() {
  Hdf5Handle type(check_hdf5(H5Tcreate(H5T_COMPOUND, kShardRowBytes), "create a type"), H5Tclose);
  const Hdf5Handle file = text_type(kShardFileBytesMax, H5T_STR_NULLPAD);
  const auto column = [&](const char* name, std::size_t at, hid_t of) {
    check_hdf5(H5Tinsert(type.get(), name, at, of), "add to a type");
  };
  column("file", row_at::kFile, file.get());
  column("size_bytes", row_at::kSizeBytes, H5T_STD_U64LE);
  column("index_offset", row_at::kIndexOffset, H5T_STD_U64LE);
  column("index_size", row_at::kIndexSize, H5T_STD_U32LE);
  column("index_crc", row_at::kIndexCrc, H5T_STD_U32LE);
  column("crc", row_at::kCrc, H5T_STD_U32LE);
  column("row_crc", row_at::kRowCrc, H5T_STD_U32LE);
  return type;
}

Hdf5Handle type_of(const Hdf5Attribute& attribute) {
  if (attribute.kind == Hdf5Attribute::Kind::text) return text_type(attribute.capacity_bytes, H5T_STR_NULLTERM);
  const bool whole = attribute.kind == Hdf5Attribute::Kind::integer;
  return make_file_type(whole ? DataType::int64 : DataType::float64);
}

// HDF5 takes % in source names of virtual datasets for the start of a pattern.
std::string escaped(std::string_view name) {
  std::string result;
  for (const char letter : name) result.append(letter == '%' ? 2 : 1, letter);
  return result;
}

}  // namespace

std::uint64_t Hdf5Scratch::create_shard_table(const std::string& path, std::uint64_t rows) {
  const Hdf5Lock gate;
  return impl_->create_allocated_dataset(path, row_type().get(), make_dataspace(Shape{rows}).get(),
                                         impl_->datasets.get());
}

std::uint64_t Hdf5Scratch::create_text(const std::string& path, std::uint64_t size_bytes) {
  const Hdf5Lock gate;
  return impl_->create_allocated_dataset(path, text_type(size_bytes, H5T_STR_SPACEPAD).get(),
                                         make_dataspace(Shape{}).get(), impl_->datasets.get());
}

void Hdf5Scratch::create_virtual(const std::string& path, const Elements& elements, const Shape& shape,
                                 const std::string& source, const std::vector<VirtualPart>& parts,
                                 std::span<const std::byte> fill) {
  const Hdf5Lock gate;
  const Hdf5Handle creation = make_object_properties(H5P_DATASET_CREATE);
  if (!fill.empty()) {  // of the type in the file: HDF5 converts nothing, so NaNs keep their bits
    check_hdf5(H5Pset_fill_value(creation.get(), impl_->dataset_type(elements, shape).get(), fill.data()),
               "set a fill value");
  }
  const Hdf5Handle whole = make_dataspace(shape_in_file(elements, shape));
  const std::string source_pattern = escaped(source);
  // HDF5 copies dataspaces, and adjacent parts often have one shape.
  std::optional<Hdf5Handle> part_space;
  Shape part_shape;
  for (const VirtualPart& part : parts) {
    if (!part_space || part_shape != part.shape) {
      part_space = make_dataspace(shape_in_file(elements, part.shape));
      part_shape = part.shape;
    }
    const Extents offset = extents_of(part.offset);
    const Extents extents = extents_of(part.shape);
    constexpr Extents kOnce{1, 1, 1, 1, 1, 1, 1, 1};
    check_hdf5(H5Sselect_hyperslab(whole.get(), H5S_SELECT_SET, offset.data(), nullptr, kOnce.data(), extents.data()),
               "select a part of '" + path + "'");
    check_hdf5(H5Pset_virtual(creation.get(), whole.get(), escaped(part.file).c_str(), source_pattern.c_str(),
                              part_space->get()),
               "map a part of '" + path + "'");
  }
  // Without parts it becomes a dataset that was never written.
  const Hdf5Handle dataset(
      check_hdf5(H5Dcreate2(impl_->file.get(), path.c_str(), impl_->dataset_type(elements, shape).get(), whole.get(),
                            impl_->links.get(), creation.get(), H5P_DEFAULT),
                 "create dataset '" + path + "'"),
      H5Dclose);
}

void Hdf5Scratch::create_attribute(const Hdf5Attribute& attribute, std::span<const std::byte> value) {
  const Hdf5Lock gate;
  const std::string what = "create attribute '" + printable_name(attribute.key) + "'";
  const Hdf5Handle type = type_of(attribute);
  const Hdf5Handle creation(check_hdf5(H5Pcreate(H5P_ATTRIBUTE_CREATE), "create a property list"), H5Pclose);
  check_hdf5(H5Pset_char_encoding(creation.get(), H5T_CSET_UTF8), "set the encoding of names");
  const Hdf5Handle space = make_dataspace(attribute.count ? Shape{*attribute.count} : Shape{});
  const Hdf5Handle made(check_hdf5(H5Acreate2(impl_->file.get(), attribute.key.c_str(), type.get(), space.get(),
                                              creation.get(), H5P_DEFAULT),
                                   what),
                        H5Aclose);
  if (!value.empty()) check_hdf5(H5Awrite(made.get(), type.get(), value.data()), what);
}

void Hdf5Scratch::create_external_link(const std::string& path, const std::string& file, const std::string& target) {
  const Hdf5Lock gate;
  check_hdf5(H5Lcreate_external(file.c_str(), target.c_str(), impl_->file.get(), path.c_str(), impl_->links.get(),
                                H5P_DEFAULT),
             "create link '" + path + "'");
}

}  // namespace kedge::format
