// Imports arrays by DLPack: dlpack.h, and array.__dlpack__ of the array API standard.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "base/text.hpp"
#include "bindings/python/engine.hpp"
#include "bindings/python/text.hpp"
#include "kedge/error.hpp"

namespace nb = nanobind;

namespace kedge::python {
namespace {

// DLPack's binary interface: do not change. nanobind's own import does not show the version and all flags, and before
// 2.10 refuses versioned tensors.
struct Unversioned {
  static constexpr const char* kName = "dltensor";
  static constexpr const char* kUsed = "used_dltensor";
  nb::dlpack::dltensor tensor;
  void* manager = nullptr;
  void (*deleter)(Unversioned*) = nullptr;
};

struct Versioned {
  static constexpr const char* kName = "dltensor_versioned";
  static constexpr const char* kUsed = "used_dltensor_versioned";
  static constexpr std::uint32_t kMajor = 1;
  std::uint32_t major = kMajor;
  std::uint32_t minor = 0;
  void* manager = nullptr;
  void (*deleter)(Versioned*) = nullptr;
  std::uint64_t flags = 0;
  nb::dlpack::dltensor tensor;
};

static_assert(sizeof(nb::dlpack::dltensor) == 48 && sizeof(Unversioned) == 64 && sizeof(Versioned) == 80);

struct Release {
  template <class Managed>
  void operator()(Managed* managed) const {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};

template <class Managed>
using Held = std::unique_ptr<Managed, Release>;

/// Takes over a tensor. Renaming the capsule tells its destructor, which releases only tensors not taken over.
template <class Managed>
Held<Managed> take(PyObject* capsule, Managed* managed) {
  if (PyCapsule_SetName(capsule, Managed::kUsed) != 0) throw nb::python_error();
  return Held<Managed>(managed);
}

template <class Managed>
Managed* managed_in(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, Managed::kName) == 0) return nullptr;
  return static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::kName));
}

/// Another library's tensor from a capsule, released by the destructor, which needs the interpreter's lock.
class DlpackTensor {
 public:
  /// `what` names it in errors. Throws Error{invalid_argument} and leaves the capsule unchanged then.
  DlpackTensor(const Text& what, nb::handle capsule) {
    if (auto* versioned = managed_in<Versioned>(capsule.ptr())) {
      // Of another major version, only the version field may be read.
      if (versioned->major != Versioned::kMajor) {
        throw Error(
            ErrorCode::invalid_argument,
            compose("{} uses DLPack {}.{}, but this Kedge supports DLPack up to 1.x: copy it to a NumPy array or a "
                    "PyTorch tensor first",
                    what.bytes, versioned->major, versioned->minor));
      }
      held_ = take(capsule.ptr(), versioned);
    } else if (auto* unversioned = managed_in<Unversioned>(capsule.ptr())) {
      held_ = take(capsule.ptr(), unversioned);
    } else {
      throw Error(
          ErrorCode::invalid_argument,
          compose("{} cannot be read: its __dlpack__ did not return an unused DLPack capsule; copy it to a NumPy "
                  "array or a PyTorch tensor first",
                  what.bytes));
    }
  }

  [[nodiscard]] std::uintptr_t address() const {
    return reinterpret_cast<std::uintptr_t>(tensor().data) + tensor().byte_offset;
  }
  /// (code, bits, lanes).
  [[nodiscard]] nb::tuple dtype() const {
    const auto& type = tensor().dtype;
    return nb::make_tuple(type.code, type.bits, type.lanes);
  }
  [[nodiscard]] nb::tuple shape() const { return extents_of(tensor().shape); }
  /// In elements; None for C-contiguous.
  [[nodiscard]] nb::object strides() const {
    return tensor().strides == nullptr ? nb::object(nb::none()) : nb::object(extents_of(tensor().strides));
  }
  [[nodiscard]] int device_type() const { return tensor().device.device_type; }
  /// None if the library's DLPack version has no flags.
  [[nodiscard]] nb::object flags() const {
    const auto* versioned = std::get_if<Held<Versioned>>(&held_);
    return versioned == nullptr ? nb::object(nb::none()) : nb::object(nb::int_((*versioned)->flags));
  }

 private:
  [[nodiscard]] const nb::dlpack::dltensor& tensor() const {
    return std::visit([](const auto& held) -> const nb::dlpack::dltensor& { return held->tensor; }, held_);
  }
  [[nodiscard]] nb::tuple extents_of(const std::int64_t* extents) const {
    nb::list list;
    for (std::int32_t i = 0; i < tensor().ndim; ++i) list.append(extents[i]);
    return nb::tuple(list);
  }

  std::variant<Held<Unversioned>, Held<Versioned>> held_;
};

}  // namespace

void bind_dlpack(nb::module_& module) {
  nb::class_<DlpackTensor>(module, "DlpackTensor")
      .def(nb::init<const Text&, nb::handle>(), nb::arg(), nb::arg().none())
      .def_prop_ro("address", &DlpackTensor::address)
      .def_prop_ro("dtype", &DlpackTensor::dtype)
      .def_prop_ro("shape", &DlpackTensor::shape)
      .def_prop_ro("strides", &DlpackTensor::strides)
      .def_prop_ro("device_type", &DlpackTensor::device_type)
      .def_prop_ro("flags", &DlpackTensor::flags);
}

}  // namespace kedge::python
