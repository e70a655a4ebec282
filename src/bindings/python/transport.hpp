// A transport written in Python: over torch.distributed, in kedge/_transport.py.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "kedge/transport.hpp"

namespace kedge::python {

/// `transport` is a Python object with the methods of kedge._transport.Transport. Its calls take the interpreter's
/// lock, which the engine does not hold; exceptions become failures of communication.
[[nodiscard]] std::unique_ptr<Transport> python_transport(nanobind::object transport);

}  // namespace kedge::python
