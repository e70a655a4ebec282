// Saves the same variables at each checkpoint and restores them at the start: the common case.
#pragma once

#include <concepts>
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

/// Shape and placement of a variable. Extents and offsets count the variable's elements: unlike in Engine::save, a
/// struct or std::array is one element.
struct Block {
  Block() = default;
  /// A placement for all of the variable's elements.
  template <class P>
  // NOLINTNEXTLINE(google-explicit-constructor): a Shard is one
  requires std::constructible_from<Placement, const P&> Block(const P& placed) : placement(placed) {}
  /// A block of this shape and placement.
  Block(const Shape& extents, Placement placed = {}) : shape(extents), placement(std::move(placed)) {}  // NOLINT

  /// Must have as many elements as the variable; without dimensions, all elements in one row.
  Shape shape;
  Placement placement;  ///< position in a global array, if any
};

/// For a variable that is each rank's own, when another number of ranks saved it. Then restore calls the function once
/// for each rank that saved it, on one process or another (each gets the ranks whose containers it reads, ascending),
/// after all other variables are loaded. The function must not communicate. With as many ranks as saved it, restore
/// loads the variable as any other, and does not call the function.
struct PerRank {
  /// `bytes` are those of the variable as `saved_by` saved it, valid during the call.
  std::function<void(LogicalRank saved_by, std::span<const std::byte> bytes)> restore;
};

namespace detail {

template <class T>
concept Contiguous = requires(T& container) {
  { container.data() } -> std::convertible_to<const void*>;
  { container.size() } -> std::convertible_to<std::size_t>;
}
&&!is_std_array<std::remove_const_t<T>>;

/// A function that returns a MutableRegion.
template <class F>
concept GivesRegion = std::is_invocable_r_v<MutableRegion, F&>;

/// A random number engine, which is saved as the bytes of the object.
template <class T>
concept RandomEngine = requires {
  typename T::result_type;
  { T::min() } -> std::same_as<typename T::result_type>;
  { T::max() } -> std::same_as<typename T::result_type>;
};

template <class T>
concept Resizable = requires(T& container, std::size_t count) {
  container.resize(count);
};

}  // namespace detail

/// The named variables that make up a rank's state. A State refers to them: the caller owns them and keeps them alive
/// while the State is used. Ranks may have different lists. Adding a name again replaces the earlier entry. checkpoint
/// and restore refuse a block whose number of elements differs from the variable's. If one of the functions given to
/// add throws, checkpoint or restore fails on all ranks; the functions must not communicate.
class State {
 public:
  /// Adds a variable: a vector or anything else with data() and size(), a number, an enum, an array, a random number
  /// engine such as std::mt19937, or a trivially copyable struct (see kedge::members; do not save pointers in it, which
  /// are meaningless in a new process). A vector may be resized between checkpoints; restore resizes it to the saved
  /// number of elements. `block` is the variable's shape and its position in a global array.
  template <class T>
  requires(!std::is_same_v<std::remove_const_t<T>, MutableRegion> &&
           !detail::GivesRegion<std::remove_const_t<T>>) State& add(const std::string& name, T& variable,
                                                                    const Block& block = {}) {
    return add_item(
        name, view_of(variable), resize_of(variable), [block] { return block; }, false);
  }
  /// Adds a variable whose block changes: each checkpoint calls the function `block`. restore does not call it and
  /// accepts the saved position; a variable that cannot be resized must have the saved number of elements.
  template <class T, class F>
  requires(!std::is_same_v<std::remove_const_t<T>, MutableRegion> && !detail::GivesRegion<std::remove_const_t<T>> &&
           std::convertible_to<std::invoke_result_t<F&>, Block>) State& add(const std::string& name, T& variable,
                                                                            F block) {
    return add_item(
        name, view_of(variable), resize_of(variable), [block]() mutable -> Block { return block(); }, true);
  }
  /// Adds a variable of each rank's own that can be restored on another number of ranks.
  template <class T>
  requires(!std::is_same_v<std::remove_const_t<T>, MutableRegion> &&
           !detail::GivesRegion<std::remove_const_t<T>>) State& add(const std::string& name, T& variable,
                                                                    PerRank per_rank) {
    add_item(
        name, view_of(variable), resize_of(variable), [] { return Block(); }, false);
    return set_per_rank(name, std::move(per_rank));
  }
  /// Adds memory of any shape whose address and size never change.
  State& add(const std::string& name, const MutableRegion& fixed, const Placement& placement = {}) {
    return add_item(
        name, view_of(fixed), {}, [placement] { return Block(placement); }, false);
  }
  /// Adds memory of a fixed address and size that is each rank's own and can be restored on another number of ranks.
  State& add(const std::string& name, const MutableRegion& fixed, PerRank per_rank) {
    add_item(
        name, view_of(fixed), {}, [] { return Block(); }, false);
    return set_per_rank(name, std::move(per_rank));
  }
  /// Adds memory of a fixed address and size whose block changes: each checkpoint calls the function `block`.
  template <class F>
  requires std::convertible_to<std::invoke_result_t<F&>, Block> State& add(const std::string& name,
                                                                           const MutableRegion& fixed, F block) {
    return add_item(
        name, view_of(fixed), {}, [block]() mutable -> Block { return block(); }, true);
  }

  /// Adds memory whose address may change between checkpoints, such as one of two buffers that a step swaps. The
  /// function `where` is copied, so it should capture changing variables by reference. Each checkpoint and restore
  /// calls it, perhaps several times; in restore it must return as much memory as was saved. `block` is the memory's
  /// shape and its position in a global array.
  template <detail::GivesRegion F>
  requires std::copy_constructible<F> State& add(const std::string& name, F where, const Block& block = {}) {
    return add_item(
        name, view_by(std::move(where)), {}, [block] { return block; }, false);
  }
  /// Adds memory whose address and block may change: checkpoint and restore call `where`, checkpoint also `block`.
  template <detail::GivesRegion F, class B>
  requires(std::copy_constructible<F>&& std::convertible_to<std::invoke_result_t<B&>, Block>) State& add(
      const std::string& name, F where, B block) {
    return add_item(
        name, view_by(std::move(where)), {}, [block]() mutable -> Block { return block(); }, true);
  }

  /// Does not compile: the function must return a MutableRegion.
  template <class F, class... Rest>
  requires(!std::is_lvalue_reference_v<F> && std::is_invocable_v<F&> &&
           !detail::GivesRegion<F>) State& add(const std::string&, F&&, const Rest&...) {
    static_assert(sizeof(F) == 0,
                  "this would save the function itself: let it return a MutableRegion, which says where memory is");
    return *this;
  }
  /// Does not compile: a temporary span.
  template <class T, std::size_t extent, class... Rest>
  State& add(const std::string&, std::span<T, extent>&&, const Rest&...) {
    static_assert(sizeof(T) == 0,
                  "a span would not notice reallocation: add the vector itself, or, for memory "
                  "that never moves, mutable_region(span)");
    return *this;
  }

  /// A variable's current memory.
  struct View {
    MutableRegion region;                ///< of one row, and of what one element is
    std::size_t element_dimensions = 0;  ///< how many dimensions at its end belong to one element
  };
  /// One entry of the list.
  struct Item {
    std::string name;                               ///< as given to add
    std::function<View()> view;                     ///< the variable, when it is asked for
    std::function<void(std::size_t count)> resize;  ///< empty: its size is fixed
    std::function<Block()> block;                   ///< its block, when it is asked for
    bool block_is_function = false;                 ///< its block changes from checkpoint to checkpoint
    /// Takes what each rank saved, on another number of ranks; empty: nothing does.
    std::function<void(LogicalRank saved_by, std::span<const std::byte> bytes)> per_rank = {};
  };
  [[nodiscard]] const std::vector<Item>& items() const noexcept { return items_; }  ///< In the order of add.

 private:
  template <class F>
  static std::function<View()> view_by(F where) {
    return [where]() mutable { return View{where(), 0}; };
  }
  static std::function<View()> view_of(const MutableRegion& fixed) {
    return [fixed] { return View{fixed, 0}; };
  }
  template <class T>
  static std::function<View()> view_of(T& variable) {
    static_assert(!std::is_invocable_v<T&> || detail::RandomEngine<T>,
                  "this would save the function itself: let it return a MutableRegion, which says where memory is");
    static_assert(!std::is_same_v<T, Region>,
                  "a Region only describes memory: add the variable itself, or a MutableRegion");
    static_assert(!detail::is_view<T>,
                  "a span would not notice reallocation: add the vector itself, or, for memory that never "
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
  [[nodiscard]] static View row_of(void* data, std::size_t count, const ElementType& type);
  [[nodiscard]] static View one_of(void* data, const ElementType& type);
  State& add_item(const std::string& name, std::function<View()> view, std::function<void(std::size_t)> resize,
                  std::function<Block()> block, bool block_is_function);
  State& set_per_rank(const std::string& name, PerRank per_rank);

  std::vector<Item> items_;
};

}  // namespace kedge
