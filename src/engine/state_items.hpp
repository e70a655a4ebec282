// The variables of a State: their memory, blocks and sizes, asked of functions of the application. Local.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <string_view>

#include "base/text.hpp"
#include "format/region_spec.hpp"
#include "kedge/error.hpp"
#include "kedge/state.hpp"

namespace kedge::engine {

using Extents = std::span<const std::uint64_t>;

/// The extents that belong to one element.
[[nodiscard]] Extents of_element(const State::View& view);
/// Number of elements, whatever one element is.
[[nodiscard]] std::uint64_t count_of(Extents extents);
[[nodiscard]] std::uint64_t count_of(const State::View& view);
/// Shape of the region in this block: the block's shape, then an element's.
[[nodiscard]] Shape shape_in(const Block& block, const State::View& view);
/// The user counts elements; the placement of a region counts what elements consist of, too.
[[nodiscard]] Placement place_in(const Block& block, const State::View& view, const Shape& shape);
/// Throws invalid_argument if the block has another number of elements than the variable.
void require_fit(const State::Item& item, const State::View& view, const Block& block);
/// Whether the saved region consists of such elements, whatever their number.
[[nodiscard]] bool has_elements_of(const State::View& view, const Shape& saved);
[[nodiscard]] State::View view_of(const State::Item& item);
[[nodiscard]] Block block_of(const State::Item& item);
/// Resizes the variable. Throws invalid_argument if it has another size then.
void resize(const State::Item& item, State::View& view, std::uint64_t count);
/// Makes room for what was saved, if it was saved of such elements; if not, load says so.
void make_room(const State::Item& item, State::View& view, const format::RegionSpec& saved);

/// Calls a function of the application, which may throw what it likes. `what` completes "the function for".
template <class Function>
auto in_application(const State::Item& item, std::string_view what, Function&& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::invalid_argument,
                compose("the function for {} '{}' threw: {}", what, item.name, error.what()));
  } catch (...) {
    throw Error(ErrorCode::invalid_argument,
                compose("the function for {} '{}' threw something that is not a std::exception", what, item.name));
  }
}

}  // namespace kedge::engine
