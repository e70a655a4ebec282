// Converts values between Python and the engine.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kedge/kedge.hpp"

namespace kedge::python {

/// A region from an address (the package `kedge` keeps its owner alive), a data type's number and a shape.
[[nodiscard]] Region region_at(std::uintptr_t address, int dtype, const std::vector<std::uint64_t>& shape);
[[nodiscard]] MutableRegion mutable_region_at(std::uintptr_t address, int dtype,
                                              const std::vector<std::uint64_t>& shape);

/// A dict of str to int, float, str, or a list of numbers. Throws Error{invalid_argument}.
[[nodiscard]] Attributes attributes_of(const nanobind::dict& values);
[[nodiscard]] nanobind::dict dict_of(const Attributes& attributes);

/// Wraps a callable that the engine keeps and may release in any thread, also after the interpreter has ended.
[[nodiscard]] std::shared_ptr<nanobind::object> kept_by_engine(nanobind::object object);

/// From None, a shard as (global_shape, offset, holes_allowed), or True for replicated.
[[nodiscard]] Placement placement_of(const nanobind::object& value);
[[nodiscard]] nanobind::object library_at(const Placement& placement);

[[nodiscard]] nanobind::tuple tuple_of(const Shape& shape);

/// Options::load() overridden by these texts by name. Engine's constructor reports the first error (`load_failure`) on
/// all ranks.
[[nodiscard]] Options options_of(const nanobind::dict& values, const nanobind::object& log);

}  // namespace kedge::python
