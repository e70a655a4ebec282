// The common case: the same variables are saved at each checkpoint and loaded once at the start.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kedge/elements.hpp"
#include "kedge/engine.hpp"

namespace kedge {

/// How a variable's elements are arranged now.
struct Block {
  Block() = default;
  template <class P>
  requires std::constructible_from<Placement, P> Block(P&& placed)
      : placement(std::forward<P>(placed)) {}  // NOLINT(google-explicit-constructor): a Shard is one
  Block(const Shape& extents, Placement placed = {}) : shape(extents), placement(std::move(placed)) {}  // NOLINT

  /// Of the elements, as many as the variable has; without dimensions: one row of all of them.
  Shape shape;
  Placement placement;
};

namespace detail {

template <class T>
concept Contiguous = requires(T& container) {
  { container.data() } -> std::convertible_to<const void*>;
  { container.size() } -> std::convertible_to<std::size_t>;
}
&&!is_std_array<std::remove_const_t<T>>;

template <class T>
concept Resizable = requires(T& container, std::size_t count) {
  container.resize(count);
};

template <class T>
inline constexpr bool is_span = false;
template <class T, std::size_t extent>
inline constexpr bool is_span<std::span<T, extent>> = true;

}  // namespace detail

/// The named variables that make up a rank's state. A State refers to them: the caller owns them and keeps them alive
/// while the State is used. Ranks may have different lists. To add a name again replaces what it stood for.
class State {
 public:
  /// Adds a variable: a container with data() and size() (std::vector, std::string, ...), a number, an enum, an array,
  /// or a trivially copyable struct (see kedge::members). Where a container's elements lie, and how many there are, is
  /// looked up at each checkpoint; restore resizes it to what was saved. `block` says how they are arranged and, if the
  /// variable is part of a global array, where it stands there.
  template <class T>
  requires(!std::is_same_v<std::remove_const_t<T>, MutableRegion>) State& add(std::string name, T& variable,
                                                                              const Block& block = {}) {
    return add_item(
        std::move(name), look_at(variable), resize_of(variable), [block] { return block; }, false);
  }
  /// The same for a block that changes: the function is called at each checkpoint, on this rank. restore compares the
  /// number of elements, not the place.
  template <class T, class F>
  requires std::convertible_to<std::invoke_result_t<F&>, Block> State& add(std::string name, T& variable, F block) {
    return add_item(
        std::move(name), look_at(variable), resize_of(variable), [block]() mutable -> Block { return block(); }, true);
  }
  /// Adds memory of any shape that stays where it is and as large as it is.
  State& add(std::string name, const MutableRegion& fixed, const Placement& placement = {}) {
    return add_item(
        std::move(name),
        [fixed] {
          return Seen{fixed, 0};
        },
        {}, [placement] { return Block(placement); }, false);
  }

  template <class T, std::size_t extent, class... Rest>
  State& add(std::string, std::span<T, extent>&&, const Rest&...) {
    static_assert(sizeof(T) == 0,
                  "a span does not follow what it points into: add the container itself, or, for memory "
                  "that never moves, mutable_region(span)");
    return *this;
  }

  /// A variable as it is now.
  struct Seen {
    MutableRegion region;   ///< of one row, and of what one element is
    std::size_t inner = 0;  ///< how many dimensions at its end belong to one element
  };
  struct Item {
    std::string name;
    std::function<Seen()> look;
    std::function<void(std::size_t count)> resize;  ///< empty: its size is fixed
    std::function<Block()> block;
    bool moves = false;  ///< its block changes from checkpoint to checkpoint
  };
  [[nodiscard]] const std::vector<Item>& items() const noexcept { return items_; }

 private:
  template <class T>
  static std::function<Seen()> look_at(T& variable) {
    static_assert(!detail::is_span<T>,
                  "a span does not follow what it points into: add the container itself, or, for memory that never "
                  "moves, mutable_region(span)");
    static_assert(!std::is_const_v<T>, "restore writes to the variable: it must not be const");
    if constexpr (detail::Contiguous<T>) {
      using Element = std::remove_pointer_t<decltype(variable.data())>;
      static_assert(!std::is_const_v<Element>, "restore writes to the elements: they must not be const");
      return [&variable] { return row_of(variable.data(), variable.size(), element_type<Element>()); };
    } else {
      static_assert(!std::is_same_v<T, std::vector<bool>>,
                    "std::vector<bool> has no memory of its own for each element: use std::vector<char>");
      return [&variable] { return one_of(std::addressof(variable), element_type<T>()); };
    }
  }
  template <class T>
  static std::function<void(std::size_t)> resize_of(T& variable) {
    if constexpr (detail::Contiguous<T> && detail::Resizable<T>) {
      return [&variable](std::size_t count) {
        if (static_cast<std::size_t>(variable.size()) == count) return;
        variable.resize(static_cast<decltype(variable.size())>(count));
      };
    } else {
      return {};
    }
  }
  [[nodiscard]] static Seen row_of(void* data, std::size_t count, const ElementType& type);
  [[nodiscard]] static Seen one_of(void* data, const ElementType& type);
  State& add_item(std::string name, std::function<Seen()> look, std::function<void(std::size_t)> resize,
                  std::function<Block()> block, bool moves);

  std::vector<Item> items_;
};

}  // namespace kedge
