#include <exception>
#include <string>

#include "base/text.hpp"
#include "bindings/python/engine.hpp"
#include "bindings/python/text.hpp"
#include "kedge/error.hpp"
#include "kedge/exit_status.hpp"

namespace nb = nanobind;

namespace kedge::python {

nb::object exception_of(const Failure& failure) {
  return nb::module_::import_("kedge._errors")
      .attr("from_failure")(text_object(std::string(to_string(failure.code))),
                            text_object(printable_lines(failure.message)), failure.rank, text_object(failure.path),
                            failure.system_errno, text_object(to_string(failure)));
}

std::optional<ErrorCode> code_of(const std::string& name) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::device_failed); ++code) {
    if (name == to_string(static_cast<ErrorCode>(code))) return static_cast<ErrorCode>(code);
  }
  return std::nullopt;
}

/// The exit status for a code's name; 1 for an unknown name.
int exit_status_of(const Text& name) {
  const auto code = code_of(name.bytes);
  return code ? exit_status(*code) : 1;
}

/// Makes Python raise kedge._errors.from_failure for kedge::Error.
void bind_errors(nb::module_& module) {
  module.def("exit_status", &exit_status_of);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      try {
        const nb::object value = exception_of(error.failure());
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())), value.ptr());
      } catch (nb::python_error& raised) {
        raised.restore();
      }
    }
  });
}

}  // namespace kedge::python
