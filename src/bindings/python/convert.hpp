// Python's values as the engine's, and back.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kedge/kedge.hpp"

namespace kedge::python {

/// A region as Python names it: an address (the package `kedge` keeps its owner alive), a data type's number, a shape.
[[nodiscard]] Region region_at(std::uintptr_t address, int dtype, const std::vector<std::uint64_t>& shape);
[[nodiscard]] MutableRegion mutable_region_at(std::uintptr_t address, int dtype,
                                              const std::vector<std::uint64_t>& shape);

/// A dict of str to int, float, str, or a list of numbers. Throws Error{invalid_argument}.
[[nodiscard]] Attributes attributes_of(const nanobind::dict& values);
[[nodiscard]] nanobind::dict dict_of(const Attributes& attributes);

/// An object with a callable that the engine keeps and may release in any thread, also when the interpreter is gone.
[[nodiscard]] std::shared_ptr<nanobind::object> kept_by_engine(nanobind::object object);

/// None, a shard as (global_shape, offset, holes_allowed), or True for replicated.
[[nodiscard]] Placement placement_of(const nanobind::object& value);
[[nodiscard]] nanobind::object library_at(const Placement& placement);

[[nodiscard]] nanobind::tuple tuple_of(const Shape& shape);

/// The options of Options::load with these on top: texts by name, as in the environment. The first error is kept in
/// `load_failure`, which Engine's constructor reports on all ranks.
[[nodiscard]] Options options_of(const nanobind::dict& values, const nanobind::object& log);

}  // namespace kedge::python
