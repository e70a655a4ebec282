#include <exception>
#include <string>

#include "base/printable.hpp"
#include "bindings/python/engine.hpp"
#include "bindings/python/text.hpp"
#include "kedge/error.hpp"

namespace nb = nanobind;

namespace kedge::python {

nb::object exception_of(const Failure& failure) {
  return nb::module_::import_("kedge._errors")
      .attr("from_failure")(text_object(std::string(to_string(failure.code))),
                            text_object(printable_lines(failure.message)), failure.rank, text_object(failure.path),
                            failure.system_errno, text_object(to_string(failure)));
}

/// kedge::Error becomes what kedge._errors.from_failure returns.
void bind_errors(nb::module_&) {
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
