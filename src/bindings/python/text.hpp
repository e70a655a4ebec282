// Converts texts between Python and the engine, which takes bytes: a name or path that is not UTF-8 is passed on, so
// that the engine reports it, or returned unchanged.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace kedge::python {

/// A Python str. Bytes that os.fsdecode converted become bytes again.
struct Text {
  std::string bytes;

  operator const std::string&() const noexcept { return bytes; }  // NOLINT(google-explicit-constructor)
};

/// Reads the bytes of a str; false if it is another object.
[[nodiscard]] inline bool read_text(nanobind::handle value, std::string& bytes) noexcept {
  if (!PyUnicode_Check(value.ptr())) return false;
  Py_ssize_t size = 0;
  if (const char* utf8 = PyUnicode_AsUTF8AndSize(value.ptr(), &size)) {
    bytes.assign(utf8, static_cast<std::size_t>(size));
    return true;
  }
  for (const char* how : {"surrogateescape", "surrogatepass"}) {
    PyErr_Clear();
    const auto encoded = nanobind::steal(PyUnicode_AsEncodedString(value.ptr(), "utf-8", how));
    if (!encoded.is_valid()) continue;
    bytes.assign(PyBytes_AS_STRING(encoded.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(encoded.ptr())));
    return true;
  }
  PyErr_Clear();
  return false;
}

/// Converts back.
[[nodiscard]] inline nanobind::object text_object(const std::string& bytes) {
  const auto size = static_cast<Py_ssize_t>(bytes.size());
  auto text = nanobind::steal(PyUnicode_DecodeUTF8(bytes.data(), size, "surrogateescape"));
  if (!text.is_valid()) throw nanobind::python_error();
  return text;
}

}  // namespace kedge::python

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)

template <>
struct type_caster<kedge::python::Text> {
  NB_TYPE_CASTER(kedge::python::Text, const_name("str"))

  bool from_python(handle source, uint8_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
    return kedge::python::read_text(source, value.bytes);
  }

  static handle from_cpp(const kedge::python::Text& text, rv_policy /*policy*/, cleanup_list* /*cleanup*/) {
    return kedge::python::text_object(text.bytes).release();
  }
};

NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)
