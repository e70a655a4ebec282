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
#include "base/options_load.hpp"
#include "bindings/python/calls.hpp"
#include "bindings/python/convert.hpp"
#include "bindings/python/text.hpp"
#include "kedge/engine.hpp"
#include "kedge/for_bindings.hpp"

namespace nb = nanobind;

namespace kedge::python {
namespace {

using Extents = std::vector<std::uint64_t>;

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
  auto engine = [&] {
    const Call under_way(nullptr, nullptr, CallKind::alone);
    return std::make_unique<kedge::Engine>(std::move(communicator), std::move(options));
  }();
  new (where) Engine(std::move(engine));
}

/// If the attributes are invalid on this rank, takes part with a tag that the engine refuses on all ranks, instead of
/// leaving the others waiting.
void create(const Engine& engine, const Text& tag, const nb::dict& values, bool is_output) {
  Attributes attributes;
  const auto refused = attempt([&] { attributes = attributes_of(values); });
  try {
    call(engine, [&](kedge::Engine& it) {
      const std::string usable = refused ? std::string() : tag.bytes;
      if (is_output) it.create_output(usable, attributes);
      else it.create(usable, attributes);
      engine.turns()->set_open(true);
    });
  } catch (const Error& error) {
    if (refused && error.code() == ErrorCode::invalid_argument) throw Error(*refused);
    throw;
  }
}

std::optional<DeviceStream> stream_at(std::optional<std::uintptr_t> address) {
  if (!address) return std::nullopt;
  return DeviceStream{reinterpret_cast<void*>(*address)};
}

void save(const Engine& engine, const Text& name, std::uintptr_t address, int dtype, const Extents& shape,
          const nb::object& placement, std::optional<std::uintptr_t> stream) {
  const Placement where = placement_of(placement);
  Region region = region_at(address, dtype, shape);
  region.stream = stream_at(stream);
  check(call(engine, CallKind::beside, [&](kedge::Engine& it) { return it.save(name.bytes, region, where); }));
}

void load(const Engine& engine, const Text& name, std::uintptr_t address, int dtype, const Extents& shape,
          std::optional<std::uintptr_t> stream) {
  MutableRegion region = mutable_region_at(address, dtype, shape);
  region.stream = stream_at(stream);
  check(call(engine, CallKind::beside, [&](kedge::Engine& it) { return it.load(name.bytes, region); }));
}

/// (code, words), by which one rank lets all fail.
std::optional<Failure> failure_of(const nb::object& value) {
  if (value.is_none()) return std::nullopt;
  const auto given = nb::cast<nb::tuple>(value);
  return Failure{code_of(nb::cast<Text>(given[0])).value_or(ErrorCode::invalid_argument),
                 nb::cast<Text>(given[1]).bytes};
}

/// Wants as (name, address, dtype, shape, placement, of, members).
void load_all(const Engine& engine, const nb::list& asked, const nb::object& failed) {
  std::vector<std::string> members(nb::len(asked));
  std::vector<Want> wants;
  for (const nb::handle item : asked) {
    const auto one = nb::cast<nb::tuple>(item);
    Want want{nb::cast<Text>(one[0]).bytes,
              mutable_region_at(nb::cast<std::uintptr_t>(one[1]), nb::cast<int>(one[2]), nb::cast<Extents>(one[3])),
              placement_of(one[4])};
    if (!one[5].is_none()) want.of = LogicalRank{nb::cast<std::uint32_t>(one[5])};
    members[wants.size()] = nb::cast<Text>(one[6]).bytes;
    want.region.members = members[wants.size()];
    wants.push_back(std::move(want));
  }
  const std::optional<Failure> failure = failure_of(failed);
  call(engine, [&](kedge::Engine& it) { kedge::ForBindings::load_all(it, wants, failure); });
}

/// Names as (name, of); the result as (how, dtype, shape, members, regions, is_alike).
nb::list find_saved(const Engine& engine, const nb::list& asked, const nb::object& failed) {
  using Saved = kedge::ForBindings::Saved;
  std::vector<kedge::ForBindings::NameToFind> names;
  for (const nb::handle item : asked) {
    const auto one = nb::cast<nb::tuple>(item);
    names.push_back({nb::cast<Text>(one[0]).bytes});
    if (!one[1].is_none()) names.back().of = LogicalRank{nb::cast<std::uint32_t>(one[1])};
  }
  const std::optional<Failure> failure = failure_of(failed);
  const auto found =
      call(engine, [&](kedge::Engine& it) { return kedge::ForBindings::find_saved(it, names, failure); });
  nb::list all;
  for (const Saved& saved : found) {
    const char* how = saved.as == Saved::As::shard ? "shard" : saved.as == Saved::As::replicated ? "replicated" : "own";
    all.append(nb::make_tuple(how, static_cast<int>(saved.dtype), tuple_of(saved.shape), text_object(saved.members),
                              saved.regions, saved.is_alike));
  }
  return all;
}

std::vector<std::uint32_t> logical_ranks(const Engine& engine) {
  std::vector<std::uint32_t> numbers;
  for (const LogicalRank rank : call(engine, CallKind::beside, [](kedge::Engine& it) { return it.logical_ranks(); })) {
    numbers.push_back(rank.value);
  }
  return numbers;
}

std::optional<Text> open_selected(const Engine& engine, const Selection& selection, bool discard_newer) {
  const Newer newer = discard_newer ? Newer::discard : Newer::keep;
  const auto tag = call(engine, [&](kedge::Engine& it) {
    auto opened = it.open(selection, newer);
    engine.turns()->set_open(opened.has_value());
    return opened;
  });
  return tag ? std::optional(Text{*tag}) : std::nullopt;
}

nb::list regions(const Engine& engine) {
  nb::list all;
  const auto found = call(engine, CallKind::beside, [](kedge::Engine& it) { return it.regions(); });
  for (const RegionInfo& region : found) {
    all.append(nb::make_tuple(text_object(region.name), static_cast<int>(region.dtype), tuple_of(region.shape),
                              library_at(region.placement), region.size_bytes, region.routed));
  }
  return all;
}

nb::dict info(const Engine& engine) {
  const CheckpointInfo found = call(engine, CallKind::beside, [](kedge::Engine& it) { return it.info(); });
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
  const Counters known = engine.held()->counters();  // from any thread
  nb::dict numbers;
  numbers["commits"] = known.commits;
  numbers["commits_failed"] = known.commits_failed;
  numbers["protections"] = known.protections;
  numbers["protections_failed"] = known.protections_failed;
  numbers["flushes"] = known.flushes;
  numbers["flushes_failed"] = known.flushes_failed;
  numbers["flush_retries"] = known.flush_retries;
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

/// The engine calls it without the interpreter's lock, within a call by the application's thread.
void on_complete(const Engine& engine, const Text& tag, int level, nb::object callback) {
  const std::shared_ptr<nb::object> callable = kept_by_engine(std::move(callback));
  const auto tell = [callable](const std::optional<Failure>& failure) {
    in_interpreter([&] {
      try {
        (*callable)(failure ? exception_of(*failure) : nb::object(nb::none()));
      } catch (nb::python_error& error) {
        error.discard_as_unraisable("kedge: the callback of on_complete");
      }
    });
  };
  call(engine, [&](kedge::Engine& it) { it.on_complete(tag.bytes, static_cast<Level>(level), tell); });
}

/// The option's value from kedge.toml and the environment.
Text loaded_option(const Text& name) { return {get_option(Options::load(), name.bytes)}; }

/// Whether the configured value differs from the built-in default. Throws invalid_argument if there is no such option.
bool differs_from_default(const Text& name) { return loaded_option(name).bytes != get_option(Options{}, name.bytes); }

/// Binds a method that closes the checkpoint, however it ends, unless it was called out of order.
auto closing(void (kedge::Engine::*method)()) {
  return [method](const Engine& engine) {
    call(engine, CallKind::ends, [&](kedge::Engine& it) {
      try {
        (it.*method)();
      } catch (const Error& error) {
        if (error.code() != ErrorCode::bad_state) engine.turns()->set_open(false);
        throw;
      }
      engine.turns()->set_open(false);
    });
  };
}

/// Binds a method without arguments.
template <class Result>
auto plain(Result (kedge::Engine::*method)()) {
  return [method](const Engine& engine) { return call(engine, [&](kedge::Engine& it) { return (it.*method)(); }); };
}

void bind_lifetime(nb::class_<Engine>& bound) {
  bound.def("__init__", &start, nb::arg(), nb::arg(), nb::arg().none())
      .def("leave", [](Engine& engine, const Text& why) { engine.leave(why.bytes); })
      .def("finalize_if_all_come",
           [](const Engine& engine, double seconds) {
             const std::chrono::duration<double> at_most(seconds);
             return call(engine, CallKind::ends, [&](kedge::Engine& it) { return it.finalize_if_all_come(at_most); });
           })
      .def(
          "finalize",
          [](const Engine& engine, std::optional<double> timeout_s) {
            return call(engine, CallKind::ends, [&](kedge::Engine& it) {
              if (timeout_s) return it.finalize_for(std::chrono::duration<double>(*timeout_s));
              it.finalize();
              return true;
            });
          },
          nb::arg("timeout_s").none());
}

void bind_saving(nb::class_<Engine>& bound) {
  bound.def("need_checkpoint", plain(&kedge::Engine::need_checkpoint))
      .def("should_exit", plain(&kedge::Engine::should_exit))
      .def("create", &create, nb::arg("tag"), nb::arg("attributes"), nb::arg("is_output") = false)
      .def("save", &save, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg("stream") = nb::none())
      .def("refuse",
           [](const Engine& engine, const Text& name, const Text& reason) {
             call(engine, CallKind::beside, [&](kedge::Engine& it) {
               static_cast<void>(kedge::ForBindings::refuse(it, name.bytes, reason.bytes));
             });
           })
      .def("route_out",
           [](const Engine& engine, const Text& name, std::uint64_t max_bytes) {
             return call(engine, CallKind::beside,
                         [&](kedge::Engine& it) { return path_of(it.route_out(name.bytes, max_bytes)); });
           })
      .def("commit", closing(&kedge::Engine::commit))
      .def("committed",
           [](const Engine& engine, const Text& name) {
             const auto bytes =
                 call(engine, [&](kedge::Engine& it) { return kedge::ForBindings::committed(it, name.bytes); });
             return nb::make_tuple(reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size());
           })
      .def("abandon", closing(&kedge::Engine::abandon));
}

void bind_levels(nb::class_<Engine>& bound) {
  bound
      .def("level",
           [](const Engine& engine, const Text& tag) {
             const Call under_way(engine.held(), nullptr, CallKind::beside);  // does not wait for its turn
             return static_cast<int>(under_way.engine().level(tag.bytes));
           })
      .def("wait",
           [](const Engine& engine, const Text& tag, int level) {
             call(engine, [&](kedge::Engine& it) { it.wait(tag.bytes, static_cast<Level>(level)); });
           })
      .def("wait_for",
           [](const Engine& engine, const Text& tag, int level, double seconds) {
             const std::chrono::duration<double> at_most(seconds);
             return call(engine,
                         [&](kedge::Engine& it) { return it.wait_for(tag.bytes, static_cast<Level>(level), at_most); });
           })
      .def("on_complete", &on_complete)
      .def("pin",
           [](const Engine& engine, const Text& tag) { call(engine, [&](kedge::Engine& it) { it.pin(tag.bytes); }); })
      .def("unpin",
           [](const Engine& engine, const Text& tag) { call(engine, [&](kedge::Engine& it) { it.unpin(tag.bytes); }); })
      .def("pause", [](const Engine& engine) { engine.held()->pause(); })
      .def("resume", [](const Engine& engine) { engine.held()->resume(); });
}

void bind_loading(nb::class_<Engine>& bound) {
  bound
      .def("open", [](const Engine& engine, const Text& tag,
                      bool discard_newer) { return open_selected(engine, Tag(tag.bytes), discard_newer); })
      .def("open_before", [](const Engine& engine, const Text& tag,
                             bool discard_newer) { return open_selected(engine, Before{tag.bytes}, discard_newer); })
      .def("open_source",
           [](const Engine& engine, const Text& prefix, const Text& run, const Text& tag) {
             return open_selected(engine, Source{prefix.bytes, run.bytes, tag.bytes}, false);
           })
      .def("regions", &regions)
      .def("info", &info)
      .def("counters", &counters)
      .def("load", &load, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg("stream") = nb::none())
      .def("load_all", &load_all, nb::arg(), nb::arg().none())
      .def("find_saved", &find_saved, nb::arg(), nb::arg().none())
      .def("logical_ranks", &logical_ranks)
      .def("route_in",
           [](const Engine& engine, const Text& name) {
             return call(engine, CallKind::beside, [&](kedge::Engine& it) { return path_of(it.route_in(name.bytes)); });
           })
      .def("close", closing(&kedge::Engine::close));
}

}  // namespace

void bind_engine(nb::module_& module) {
  nb::class_<Engine> bound(module, "Engine");
  bind_lifetime(bound);
  bind_saving(bound);
  bind_levels(bound);
  bind_loading(bound);
  module.def("end_calls", [](double seconds) { return end_calls(std::chrono::duration<double>(seconds)); });
  Py_AtExit([] { end_engines(); });
  module.attr("HAS_CUDA") = KEDGE_HAS_CUDA != 0;
  module.def("loaded_option", &loaded_option);
  module.def("differs_from_default", &differs_from_default);
  module.attr("__version__") = KEDGE_VERSION;
}

}  // namespace kedge::python
