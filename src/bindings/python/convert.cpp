#include "bindings/python/convert.hpp"

#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/attempt.hpp"
#include "base/options_load.hpp"
#include "base/text.hpp"
#include "bindings/python/calls.hpp"
#include "bindings/python/text.hpp"
#include "bindings/python/thread_state.hpp"

namespace nb = nanobind;

namespace kedge::python {
namespace {

Shape shape_of(const std::vector<std::uint64_t>& extents) { return Shape{std::span(extents)}; }

AttributeValue attribute_of(const std::string& key, nb::handle value) {
  std::int64_t integer = 0;
  if (nb::isinstance<nb::int_>(value) && nb::try_cast(value, integer)) return integer;
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (std::string text; read_text(value, text)) return text;
  std::vector<std::int64_t> integers;
  if (nb::try_cast(value, integers, false)) return integers;
  std::vector<double> numbers;
  if (nb::try_cast(value, numbers)) return numbers;
  throw Error(ErrorCode::invalid_argument,
              compose("attribute {} must be an int that fits in 64 bits, a float, a str, or a list of numbers; convert "
                      "NumPy's numbers with int() or float()",
                      key));
}

/// The engine calls it without the interpreter's lock, perhaps from several threads, as long as it exists.
std::function<void(LogLevel, std::string_view)> sink_of(nb::object log) {
  const std::shared_ptr<nb::object> callable = kept_by_engine(std::move(log));
  return [callable](LogLevel level, std::string_view line) {
    if (!keep_thread_state()) return;  // nobody reads the log any more
    in_interpreter([&] {
      try {
        (*callable)(static_cast<int>(level), text_object(std::string(line)));
      } catch (nb::python_error& error) {
        error.discard_as_unraisable("kedge: the log callable");
      }
    });
  };
}

}  // namespace

std::shared_ptr<nb::object> kept_by_engine(nb::object object) {
  const auto release = [](nb::object* held) {
    if (is_interpreter_ending()) return;  // the interpreter has freed the object
    in_interpreter([&] { delete held; });
  };
  return {new nb::object(std::move(object)), release};
}

Region region_at(std::uintptr_t address, int dtype, const std::vector<std::uint64_t>& shape) {
  return {reinterpret_cast<const void*>(address), static_cast<DataType>(dtype), shape_of(shape)};
}

MutableRegion mutable_region_at(std::uintptr_t address, int dtype, const std::vector<std::uint64_t>& shape) {
  return {reinterpret_cast<void*>(address), static_cast<DataType>(dtype), shape_of(shape)};
}

Attributes attributes_of(const nb::dict& values) {
  Attributes attributes;
  for (const auto& [key, value] : values) {
    std::string name;
    if (!read_text(key, name)) throw Error(ErrorCode::invalid_argument, "the names of attributes must be of type str");
    attributes.emplace(name, attribute_of(name, value));
  }
  return attributes;
}

nb::dict dict_of(const Attributes& attributes) {
  nb::dict values;
  for (const auto& [key, value] : attributes) {
    values[text_object(key)] = std::visit(
        [](const auto& held) {
          if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>) return text_object(held);
          else return nb::object(nb::cast(held));
        },
        value);
  }
  return values;
}

Placement placement_of(const nb::object& value) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::bool_>(value)) {
    return nb::cast<bool>(value) ? Placement(Replicated{}) : Placement();
  }
  const auto shard = nb::cast<nb::tuple>(value);
  return Shard{shape_of(nb::cast<std::vector<std::uint64_t>>(shard[0])),
               shape_of(nb::cast<std::vector<std::uint64_t>>(shard[1])), nb::cast<bool>(shard[2])};
}

nb::object library_at(const Placement& placement) {
  if (const auto* shard = std::get_if<Shard>(&placement)) {
    return nb::make_tuple(tuple_of(shard->global_shape), tuple_of(shard->offset), shard->holes_allowed);
  }
  return std::holds_alternative<Replicated>(placement) ? nb::object(nb::bool_(true)) : nb::object(nb::none());
}

nb::tuple tuple_of(const Shape& shape) {
  nb::list extents;
  for (const std::uint64_t extent : shape.extents()) extents.append(extent);
  return nb::tuple(extents);
}

Options options_of(const nb::dict& values, const nb::object& log) {
  Options options = Options::load();
  for (const auto& [key, value] : values) {
    const auto failure = attempt([&] { set_option(options, nb::cast<Text>(key).bytes, nb::cast<Text>(value).bytes); });
    if (failure && !options.load_failure) options.load_failure = failure;
  }
  if (!log.is_none()) options.log.sink = sink_of(log);
  return options;
}

}  // namespace kedge::python
