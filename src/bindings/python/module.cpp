// The extension module kedge._kedge: the engine for the package `kedge`, which alone uses it.
#include <nanobind/nanobind.h>

#include "bindings/python/engine.hpp"

NB_MODULE(_kedge, module) {
  // An engine in a module's variable lives until the interpreter exits; nanobind would report it as a leak.
  nanobind::set_leak_warnings(false);
  module.doc() = "Kedge's engine; use the package kedge.";
  kedge::python::bind_errors(module);
  kedge::python::bind_communicators(module);
  kedge::python::bind_dlpack(module);
  kedge::python::bind_engine(module);
}
