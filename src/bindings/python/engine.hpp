// The parts of the extension module kedge._kedge.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include "kedge/communicator.hpp"
#include "kedge/error.hpp"

namespace kedge::python {

/// A communicator, until an engine takes it.
struct Ranks {
  std::unique_ptr<Communicator> communicator;
  int rank = 0;
  int size = 0;
};

/// The exception of kedge._errors for a failure.
[[nodiscard]] nanobind::object exception_of(const Failure& failure);

/// The code of this name, if there is one.
[[nodiscard]] std::optional<ErrorCode> code_of(const std::string& name);

void bind_errors(nanobind::module_& module);
void bind_communicators(nanobind::module_& module);
void bind_dlpack(nanobind::module_& module);
void bind_engine(nanobind::module_& module);

}  // namespace kedge::python
