// A transport that is written in Python: over torch.distributed, in kedge/_transport.py.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "kedge/transport.hpp"

namespace kedge::python {

/// `transport` is a Python object with the methods of kedge._transport.Transport. Its calls are made with the
/// interpreter's lock, which the engine does not hold; what they raise is communication that failed.
[[nodiscard]] std::unique_ptr<Transport> python_transport(nanobind::object transport);

}  // namespace kedge::python
