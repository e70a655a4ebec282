#include "bindings/python/engine.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/option_by_name.hpp"
#include "bindings/python/convert.hpp"
#include "bindings/python/text.hpp"
#include "kedge/engine.hpp"

namespace nb = nanobind;

namespace kedge::python {
namespace {

/// The interpreter's lock is released around calls that do I/O or wait for other ranks.
using Unlocked = nb::call_guard<nb::gil_scoped_release>;
using Extents = std::vector<std::uint64_t>;

/// Its end may wait for a thread that logs by calling into Python: without the interpreter's lock.
class Engine final : public kedge::Engine {
 public:
  using kedge::Engine::Engine;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() {
    const nb::gil_scoped_release unlocked;
    const kedge::Engine ends(std::move(*this));
  }
};

void check(const Status& status) {
  if (!status) throw Error(status.failure());
}

Text path_of(Routed routed) {
  check(routed.status);
  return {std::move(routed.path)};
}

void start(Engine* where, Ranks& ranks, const nb::dict& values, const nb::object& log) {
  if (ranks.communicator == nullptr) {
    throw Error(ErrorCode::bad_state, "this communicator belongs to another engine; make one for each engine");
  }
  Options options = options_of(values, log);
  auto communicator = std::move(ranks.communicator);
  const nb::gil_scoped_release unlocked;
  new (where) Engine(std::move(communicator), std::move(options));
}

/// Attributes that cannot be used on this rank: to throw at once would leave the other ranks waiting, so it takes part
/// with a tag that the engine refuses on all of them.
void create(Engine& engine, const Text& tag, const nb::dict& values, bool is_output) {
  Attributes attributes;
  const auto refused = attempt([&] { attributes = attributes_of(values); });
  const nb::gil_scoped_release unlocked;
  try {
    const std::string usable = refused ? std::string() : tag.bytes;
    if (is_output) engine.create_output(usable, attributes);
    else engine.create(usable, attributes);
  } catch (const Error& error) {
    if (refused && error.code() == ErrorCode::invalid_argument) throw Error(*refused);
    throw;
  }
}

std::optional<DeviceStream> stream_at(std::optional<std::uintptr_t> address) {
  if (!address) return std::nullopt;
  return DeviceStream{reinterpret_cast<void*>(*address)};
}

void save(Engine& engine, const Text& name, std::uintptr_t address, int dtype, const Extents& shape,
          const nb::object& placement, std::optional<std::uintptr_t> stream) {
  const Placement where = placement_of(placement);
  Region region = region_at(address, dtype, shape);
  region.stream = stream_at(stream);
  const nb::gil_scoped_release unlocked;
  check(engine.save(name.bytes, region, where));
}

void load(Engine& engine, const Text& name, std::uintptr_t address, int dtype, const Extents& shape,
          std::optional<std::uintptr_t> stream) {
  MutableRegion region = mutable_region_at(address, dtype, shape);
  region.stream = stream_at(stream);
  check(engine.load(name.bytes, region));
}

std::optional<Text> open_selected(Engine& engine, const Selection& selection, bool discard_newer) {
  const auto tag = engine.open(selection, discard_newer ? Newer::discard : Newer::keep);
  return tag ? std::optional(Text{*tag}) : std::nullopt;
}

nb::list regions(const Engine& engine) {
  nb::list all;
  for (const RegionInfo& region : engine.regions()) {
    all.append(nb::make_tuple(text_object(region.name), static_cast<int>(region.dtype), tuple_of(region.shape),
                              object_of(region.placement), region.size_bytes, region.routed));
  }
  return all;
}

nb::dict info(const Engine& engine) {
  const CheckpointInfo found = engine.info();
  nb::dict facts;
  facts["tag"] = text_object(found.tag);
  facts["commit_id"] = text_object(to_string(found.id));
  facts["parent_commit_id"] = text_object(to_string(found.parent_id));
  facts["generation"] = found.generation;
  facts["incarnation"] = found.incarnation;
  facts["world_size"] = found.world_size;
  facts["logical_rank"] = found.logical_rank.value;
  facts["time_ns"] = found.time_ns;
  facts["is_output"] = found.is_output;
  facts["source"] = text_object(std::string(to_string(found.source)));
  facts["total_bytes"] = found.total_bytes;
  facts["attributes"] = dict_of(found.attributes);
  return facts;
}

nb::dict counters(const Engine& engine) {
  const Counters known = engine.counters();
  nb::dict numbers;
  numbers["commits"] = known.commits;
  numbers["commits_failed"] = known.commits_failed;
  numbers["protections"] = known.protections;
  numbers["protections_failed"] = known.protections_failed;
  numbers["flushes"] = known.flushes;
  numbers["flushes_failed"] = known.flushes_failed;
  numbers["flush_retries"] = known.flush_retries;
  numbers["flushes_skipped"] = known.flushes_skipped;
  numbers["retired"] = known.retired;
  numbers["opens"] = known.opens;
  numbers["pending"] = known.pending;
  numbers["saved_bytes"] = known.saved_bytes;
  numbers["protected_bytes"] = known.protected_bytes;
  numbers["flushed_bytes"] = known.flushed_bytes;
  numbers["fetched_bytes"] = known.fetched_bytes;
  numbers["blocked_s"] = known.blocked_s;
  numbers["blocked_last_s"] = known.blocked_last_s;
  numbers["protected_last_s"] = known.protected_last_s;
  numbers["protected_max_s"] = known.protected_max_s;
  numbers["persistent_last_s"] = known.persistent_last_s;
  numbers["persistent_max_s"] = known.persistent_max_s;
  return numbers;
}

/// The engine calls it without the interpreter's lock, within a call of the application's thread.
void on_complete(Engine& engine, const Text& tag, int level, nb::object callback) {
  const std::shared_ptr<nb::object> callable = kept_by_engine(std::move(callback));
  engine.on_complete(tag.bytes, static_cast<Level>(level), [callable](const std::optional<Failure>& failure) {
    const nb::gil_scoped_acquire gil;
    try {
      (*callable)(failure ? exception_of(*failure) : nb::object(nb::none()));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("kedge: the callback of on_complete");
    }
  });
}

/// What kedge.toml and the environment give this option.
Text loaded_option(const Text& name) { return {get_option(Options::load(), name.bytes)}; }

/// Whether that is another value than the built-in default. Throws invalid_argument if there is no such option.
bool differs_from_default(const Text& name) { return loaded_option(name).bytes != get_option(Options{}, name.bytes); }

}  // namespace

void bind_engine(nb::module_& module) {
  nb::class_<Engine>(module, "Engine")
      .def("__init__", &start, nb::arg(), nb::arg(), nb::arg().none())
      .def("need_checkpoint", &Engine::need_checkpoint, Unlocked())
      .def("should_exit", &Engine::should_exit, Unlocked())
      .def("create", &create, nb::arg("tag"), nb::arg("attributes"), nb::arg("is_output") = false)
      .def("save", &save, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg("stream") = nb::none())
      .def(
          "refuse",
          [](Engine& engine, const Text& name, const Text& reason) {
            static_cast<void>(engine.refuse(name.bytes, reason.bytes));
          },
          Unlocked())
      .def(
          "route_out",
          [](Engine& engine, const Text& name, std::uint64_t max_bytes) {
            return path_of(engine.route_out(name.bytes, max_bytes));
          },
          Unlocked())
      .def("commit", &Engine::commit, Unlocked())
      .def("committed",
           [](const Engine& engine, const Text& name) {
             const auto bytes = [&] {
               const nb::gil_scoped_release unlocked;  // it may wait for the worker, whose log may be Python's
               return engine.committed(name.bytes);
             }();
             return nb::make_tuple(reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size());
           })
      .def("abandon", &Engine::abandon, Unlocked())
      .def(
          "level", [](const Engine& engine, const Text& tag) { return static_cast<int>(engine.level(tag.bytes)); },
          Unlocked())
      .def(
          "wait", [](Engine& engine, const Text& tag, int level) { engine.wait(tag.bytes, static_cast<Level>(level)); },
          Unlocked())
      .def(
          "wait_for",
          [](Engine& engine, const Text& tag, int level, double seconds) {
            return engine.wait_for(tag.bytes, static_cast<Level>(level), std::chrono::duration<double>(seconds));
          },
          Unlocked())
      .def("on_complete", &on_complete)
      .def(
          "pin", [](Engine& engine, const Text& tag) { engine.pin(tag.bytes); }, Unlocked())
      .def(
          "unpin", [](Engine& engine, const Text& tag) { engine.unpin(tag.bytes); }, Unlocked())
      .def("pause", &Engine::pause)
      .def("resume", &Engine::resume)
      .def(
          "open",
          [](Engine& engine, const Text& tag, bool discard_newer) {
            return open_selected(engine, Tag(tag.bytes), discard_newer);
          },
          Unlocked())
      .def(
          "open_before",
          [](Engine& engine, const Text& tag, bool discard_newer) {
            return open_selected(engine, Before{tag.bytes}, discard_newer);
          },
          Unlocked())
      .def(
          "open_source",
          [](Engine& engine, const Text& prefix, const Text& run, const Text& tag) {
            return open_selected(engine, Source{prefix.bytes, run.bytes, tag.bytes}, false);
          },
          Unlocked())
      .def("regions", &regions)
      .def("info", &info)
      .def("counters", &counters)
      .def("load", &load, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg("stream") = nb::none(), Unlocked())
      .def(
          "route_in", [](Engine& engine, const Text& name) { return path_of(engine.route_in(name.bytes)); }, Unlocked())
      .def("close", &Engine::close, Unlocked())
      .def("leave_by_error", &Engine::leave_by_error)
      .def(
          "finalize",
          [](Engine& engine, std::optional<double> timeout_s) {
            if (timeout_s) return engine.finalize(std::chrono::duration<double>(*timeout_s));
            engine.finalize();
            return true;
          },
          nb::arg("timeout_s").none(), Unlocked());
  module.attr("HAS_CUDA") = KEDGE_HAS_CUDA != 0;
  module.def("loaded_option", &loaded_option);
  module.def("differs_from_default", &differs_from_default);
  module.attr("__version__") = KEDGE_VERSION;
}

}  // namespace kedge::python
