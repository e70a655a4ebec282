#include "format/hdf5_handle.hpp"

#include <array>
#include <atomic>

#include "base/text.hpp"
#include "format/hdf5_structure.hpp"
#include "format/members.hpp"
#include "kedge/error.hpp"

namespace kedge::format {
namespace {

// State of the whole process, as HDF5 itself is (share/doc/architecture.md lists all such state).
struct ProcessWide {
  std::mutex mutex;
  std::atomic<std::uint64_t> entries{0};
};
ProcessWide& process_wide() {
  static ProcessWide instance;
  return instance;
}

// Keeps the innermost description, the first that HDF5 pushed.
extern "C" herr_t keep_description(unsigned /*n*/, const H5E_error2_t* error, void* text) {
  if (error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 1;  // stop
}

// Sign, exponent and mantissa, from the highest bit. HDF5 always takes the greatest exponent for infinity and NaN.
Hdf5Handle small_float(std::size_t exponent_bits, std::size_t mantissa_bits, std::size_t bias) {
  const std::size_t sign_at = exponent_bits + mantissa_bits;
  Hdf5Handle type(check_hdf5(H5Tcopy(H5T_IEEE_F32LE), "copy a type"), H5Tclose);
  check_hdf5(H5Tset_fields(type.get(), sign_at, mantissa_bits, exponent_bits, 0, mantissa_bits), "set a type's fields");
  check_hdf5(H5Tset_size(type.get(), (sign_at + 1) / 8), "set a type's size");
  check_hdf5(H5Tset_ebias(type.get(), bias), "set a type's exponent bias");
  return type;
}

Hdf5Handle complex_of(hid_t part) {
  const std::size_t part_bytes = H5Tget_size(part);
  Hdf5Handle type(check_hdf5(H5Tcreate(H5T_COMPOUND, 2 * part_bytes), "create a type"), H5Tclose);
  check_hdf5(H5Tinsert(type.get(), "r", 0, part), "add to a type");
  check_hdf5(H5Tinsert(type.get(), "i", part_bytes, part), "add to a type");
  return type;
}

// The type that h5py gives numpy.bool_.
Hdf5Handle boolean_type() {
  Hdf5Handle type(check_hdf5(H5Tenum_create(H5T_STD_I8LE), "create a type"), H5Tclose);
  constexpr signed char kHdf5False = 0;
  constexpr signed char kHdf5True = 1;
  check_hdf5(H5Tenum_insert(type.get(), "FALSE", &kHdf5False), "add to a type");
  check_hdf5(H5Tenum_insert(type.get(), "TRUE", &kHdf5True), "add to a type");
  return type;
}

Hdf5Handle opaque_type() {
  Hdf5Handle type(check_hdf5(H5Tcreate(H5T_OPAQUE, 1), "create a type"), H5Tclose);
  check_hdf5(H5Tset_tag(type.get(), ""), "name a type");  // h5py reads no type with another tag
  return type;
}

hid_t predefined_type(DataType dtype) {
  switch (dtype) {
    case DataType::int8: return H5T_STD_I8LE;
    case DataType::int16: return H5T_STD_I16LE;
    case DataType::int32: return H5T_STD_I32LE;
    case DataType::int64: return H5T_STD_I64LE;
    case DataType::uint8: return H5T_STD_U8LE;
    case DataType::uint16: return H5T_STD_U16LE;
    case DataType::uint32: return H5T_STD_U32LE;
    case DataType::uint64: return H5T_STD_U64LE;
    case DataType::float32: return H5T_IEEE_F32LE;
    case DataType::float64: return H5T_IEEE_F64LE;
    default: return -1;
  }
}

}  // namespace

Hdf5Lock::Hdf5Lock() : lock_(process_wide().mutex) {
  ++process_wide().entries;
  std::array<unsigned, 3> linked{};
  H5get_libversion(&linked[0], &linked[1], &linked[2]);
  check_hdf5_version({H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE}, linked);
  H5Eauto_is_v2(H5E_DEFAULT, &is_v2_);
#ifndef H5_NO_DEPRECATED_SYMBOLS
  if (is_v2_ == 0) has_saved_handler_ = H5Eget_auto1(&auto1_, &data_) >= 0;
#endif
  if (is_v2_ != 0) has_saved_handler_ = H5Eget_auto2(H5E_DEFAULT, &auto2_, &data_) >= 0;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Lock::~Hdf5Lock() {
  if (!has_saved_handler_) return;
#ifndef H5_NO_DEPRECATED_SYMBOLS
  if (is_v2_ == 0) {
    H5Eset_auto1(auto1_, data_);
    return;
  }
#endif
  H5Eset_auto2(H5E_DEFAULT, auto2_, data_);
}

hid_t check_hdf5(hid_t result, const std::string& action) {
  if (result >= 0) return result;
  std::string words = "no reason given";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_description, &words);
  H5Eclear2(H5E_DEFAULT);
  throw Error(ErrorCode::io, kedge::compose("HDF5 could not {}: {}", action, words));
}

Hdf5Handle make_file_type(DataType dtype) {
  switch (dtype) {
    case DataType::float16: return small_float(5, 10, 15);
    case DataType::bfloat16: return small_float(8, 7, 127);
    // The greatest exponent of float8_e4m3fn holds the numbers 256 to 448, which HDF5 converts to infinity and NaN. No
    // HDF5 type can express that; share/doc/format.md tells readers how to handle it.
    case DataType::float8_e4m3fn: return small_float(4, 3, 7);
    case DataType::float8_e5m2: return small_float(5, 2, 15);
    case DataType::complex64: return complex_of(H5T_IEEE_F32LE);
    case DataType::complex128: return complex_of(H5T_IEEE_F64LE);
    case DataType::boolean: return boolean_type();
    case DataType::opaque: return opaque_type();
    default: return {check_hdf5(H5Tcopy(predefined_type(dtype)), "copy a type"), H5Tclose};
  }
}

Hdf5Handle make_struct_type(std::string_view members, std::uint64_t size_bytes) {
  Hdf5Handle type(check_hdf5(H5Tcreate(H5T_COMPOUND, size_bytes), "create a type"), H5Tclose);
  for (const Member& member : parse_members(members)) {
    Hdf5Handle of = make_file_type(member.dtype);
    if (member.shape.dimensions() != 0) {
      std::array<hsize_t, Shape::kMaxDimensions> extents{};
      for (std::size_t i = 0; i < member.shape.dimensions(); ++i) extents.at(i) = member.shape[i];
      const auto dimensions = static_cast<unsigned>(member.shape.dimensions());
      of = {check_hdf5(H5Tarray_create2(of.get(), dimensions, extents.data()), "create a type"), H5Tclose};
    }
    check_hdf5(H5Tinsert(type.get(), member.name.c_str(), member.offset, of.get()), "add to a type");
  }
  return type;
}

std::uint64_t hdf5_call_count() noexcept { return process_wide().entries; }

void check_hdf5_version(const std::array<unsigned, 3>& built_with, const std::array<unsigned, 3>& linked) {
  if (built_with == linked) return;
  throw Error(ErrorCode::bad_state,
              kedge::compose("this program runs with HDF5 {}.{}.{}, but Kedge was built with {}.{}.{}; build both "
                             "against the same version",
                             linked[0], linked[1], linked[2], built_with[0], built_with[1], built_with[2]));
}

}  // namespace kedge::format
