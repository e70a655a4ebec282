#include "base/options_fields.hpp"

#include <algorithm>

#include "base/expand_path.hpp"
#include "base/hash.hpp"
#include "base/options_field.hpp"
#include "base/options_valid.hpp"

namespace kedge {
namespace {

using namespace options_table;  // NOLINT(google-build-using-namespace): the words of one table
using namespace options_valid;  // NOLINT(google-build-using-namespace): the limits in it

std::vector<OptionField> run_fields() {
  using enum Scope;
  return {
      field(
          {"", "run"}, [](auto& o) -> auto& { return o.run; }, all_ranks,
          "1 to 64 of A-Z a-z 0-9 . _ -, not starting with a dot, or empty", kRunName),
      field(
          {"", "fingerprint"}, [](auto& o) -> auto& { return o.fingerprint; }, all_ranks,
          "one line of at most 4096 bytes, or empty", kLine),
      field(
          {"", "fingerprint_files"}, [](auto& o) -> auto& { return o.fingerprint_files; }, all_ranks,
          "a list of paths without colons (in the environment, separated by colons)", kPaths),
      field<FieldKind::time>(
          {"", "deadline"}, [](auto& o) -> auto& { return o.deadline; }, each_rank,
          "seconds since 1970, a date and time as in 2026-11-25T22:00:00Z, none, or empty", kTimestamp),
      field(
          {"", "start"}, [](auto& o) -> auto& { return o.start; }, all_ranks,
          "continue, fresh, adopt, accept or adopt_and_accept"),
      field(
          {"", "io"}, [](auto& o) -> auto& { return o.io; }, all_ranks, "auto, buffered or direct"),
  };
}

std::vector<OptionField> store_fields() {
  using enum Scope;
  return {
      field(
          {"store", "path"}, [](auto& o) -> auto& { return o.store.path; }, each_rank,
          "a path, or empty, with no names in braces but {node} (each run has a directory of its own there)",
          kStorePath),
      field(
          {"store", "keep"}, [](auto& o) -> auto& { return o.store.keep; }, all_ranks,
          "a whole number from 1 to 4294967295", kAtLeastOne),
      field<FieldKind::size>(
          {"store", "quota_bytes"}, [](auto& o) -> auto& { return o.store.quota_bytes; }, all_ranks,
          "a whole number of bytes, or a number followed by KiB, MiB, GiB or TiB"),
      field(
          {"store", "durable"}, [](auto& o) -> auto& { return o.store.durable; }, all_ranks, "true or false"),
      field(
          {"store", "lock_timeout_s"}, [](auto& o) -> auto& { return o.store.lock_timeout_s; }, all_ranks,
          "seconds, 0 or more", kWait),
      field(
          {"store", "on_exit"}, [](auto& o) -> auto& { return o.store.on_exit; }, all_ranks,
          "keep, remove_if_persistent or remove"),
      field(
          {"store", "copy_threads"}, [](auto& o) -> auto& { return o.store.copy_threads; }, all_ranks,
          "a whole number from 0 to 64", kThreads),
  };
}

std::vector<OptionField> persistent_fields() {
  using enum Scope;
  return {
      field(
          {"persistent", "path"}, [](auto& o) -> auto& { return o.persistent.path; }, all_ranks,
          "a path, not empty, without names in braces", kSomePath),
      field(
          {"persistent", "every"}, [](auto& o) -> auto& { return o.persistent.every; }, all_ranks,
          "a whole number, 0 or more"),
      field(
          {"persistent", "keep"}, [](auto& o) -> auto& { return o.persistent.keep; }, all_ranks,
          "a whole number, 0 or more"),
      field(
          {"persistent", "mode"}, [](auto& o) -> auto& { return o.persistent.mode; }, all_ranks,
          "octal permission bits from \"0700\" to \"0775\"", kMode),
      field(
          {"persistent", "plain_routed"}, [](auto& o) -> auto& { return o.persistent.plain_routed; }, all_ranks,
          "true or false"),
      field(
          {"persistent", "trust"}, [](auto& o) -> auto& { return o.persistent.trust; }, all_ranks,
          "self, group or any"),
      field<FieldKind::size>(
          {"persistent", "bandwidth_limit"}, [](auto& o) -> auto& { return o.persistent.bandwidth_limit; }, all_ranks,
          "a whole number of bytes, or a number followed by KiB, MiB, GiB or TiB"),
      field(
          {"persistent", "retries"}, [](auto& o) -> auto& { return o.persistent.retries; }, all_ranks,
          "a whole number from 0 to 1000", kRetries),
  };
}

std::vector<OptionField> redundancy_fields() {
  using enum Scope;
  return {
      field(
          {"redundancy", "scheme"}, [](auto& o) -> auto& { return o.redundancy.scheme; }, all_ranks,
          "auto, single, partner, xor or rs"),
      field(
          {"redundancy", "set_size"}, [](auto& o) -> auto& { return o.redundancy.set_size; }, all_ranks,
          "a whole number from 2 to 32", kSetSize),
      field(
          {"redundancy", "parity"}, [](auto& o) -> auto& { return o.redundancy.parity; }, all_ranks,
          "a whole number from 1 to 4", kParity),
      field(
          {"redundancy", "every"}, [](auto& o) -> auto& { return o.redundancy.every; }, all_ranks,
          "a whole number, 0 or more"),
      field<FieldKind::size>(
          {"redundancy", "bandwidth_limit"}, [](auto& o) -> auto& { return o.redundancy.bandwidth_limit; }, all_ranks,
          "a whole number of bytes, or a number followed by KiB, MiB, GiB or TiB"),
  };
}

std::vector<OptionField> pipeline_fields() {
  using enum Scope;
  return {
      field(
          {"pipeline", "mode"}, [](auto& o) -> auto& { return o.pipeline.mode; }, all_ranks,
          "auto, inline or background"),
      field(
          {"pipeline", "max_pending"}, [](auto& o) -> auto& { return o.pipeline.max_pending; }, all_ranks,
          "a whole number from 1 to 1024", kPending),
      field(
          {"pipeline", "when_full"}, [](auto& o) -> auto& { return o.pipeline.when_full; }, all_ranks, "block or fail"),
      field(
          {"pipeline", "cores"}, [](auto& o) -> auto& { return o.pipeline.cores; }, each_rank,
          "numbers of cores and ranges of them, such as \"0,64-67\", or empty", kCores),
      field(
          {"pipeline", "messages"}, [](auto& o) -> auto& { return o.pipeline.messages; }, all_ranks,
          "auto, mpi or tcp"),
      field(
          {"pipeline", "interface"}, [](auto& o) -> auto& { return o.pipeline.interface; }, all_ranks,
          "names of network interfaces and subnets, such as \"ib0,10.1.0.0/16\", or empty", kNetworks),
  };
}

std::vector<OptionField> open_fields() {
  using enum Scope;
  return {
      field(
          {"open", "verify"}, [](auto& o) -> auto& { return o.open.verify; }, all_ranks, "all, loaded or headers"),
      field(
          {"open", "chained"}, [](auto& o) -> auto& { return o.open.chained; }, all_ranks, "true or false"),
      field(
          {"open", "other_ranks"}, [](auto& o) -> auto& { return o.open.other_ranks; }, all_ranks, "accept or refuse"),
      field<FieldKind::size>(
          {"open", "buffer_bytes"}, [](auto& o) -> auto& { return o.open.buffer_bytes; }, all_ranks,
          "a size from \"1 MiB\"", kLoadBuffer),
  };
}

std::vector<OptionField> schedule_fields() {
  using enum Scope;
  return {
      field(
          {"schedule", "every"}, [](auto& o) -> auto& { return o.schedule.every; }, all_ranks,
          "a whole number, 0 or more"),
      field(
          {"schedule", "seconds"}, [](auto& o) -> auto& { return o.schedule.seconds; }, all_ranks, "seconds, 0 or more",
          kWait),
      field(
          {"schedule", "overhead"}, [](auto& o) -> auto& { return o.schedule.overhead; }, all_ranks,
          "a share from 0 to 1", kShare),
  };
}

std::vector<OptionField> exit_fields() {
  using enum Scope;
  return {
      field(
          {"exit", "signals"}, [](auto& o) -> auto& { return o.exit.signals; }, all_ranks,
          "a list of SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU (in the environment, separated by colons)",
          kSignals),
      field(
          {"exit", "margin_s"}, [](auto& o) -> auto& { return o.exit.margin_s; }, all_ranks, "seconds, 0 or more",
          kWait),
      field(
          {"exit", "grace_s"}, [](auto& o) -> auto& { return o.exit.grace_s; }, all_ranks, "seconds, 0 or more", kWait),
  };
}

std::vector<OptionField> device_fields() {
  using enum Scope;
  return {
      field(
          {"device", "path"}, [](auto& o) -> auto& { return o.device.path; }, all_ranks, "auto, buffers or gds"),
      field(
          {"device", "snapshot"}, [](auto& o) -> auto& { return o.device.snapshot; }, all_ranks, "true or false"),
  };
}

std::vector<OptionField> topology_fields() {
  using enum Scope;
  return {
      field(
          {"topology", "failure_domain"}, [](auto& o) -> auto& { return o.topology.failure_domain; }, all_ranks,
          "node or env:NAME", kDomain),
  };
}

std::vector<OptionField> comm_fields() {
  using enum Scope;
  return {
      field(
          {"comm", "timeout_s"}, [](auto& o) -> auto& { return o.comm.timeout_s; }, all_ranks, "seconds, more than 0",
          kPositive),
  };
}

std::vector<OptionField> log_fields() {
  using enum Scope;
  return {
      field(
          {"log", "level"}, [](auto& o) -> auto& { return o.log.level; }, each_rank,
          "debug, info, warning, error or off"),
  };
}

std::vector<OptionField> event_fields() {
  using enum Scope;
  return {
      field(
          {"events", "path"}, [](auto& o) -> auto& { return o.events.path; }, all_ranks,
          "a path, or empty, with no names in braces but {node}, {run}, {user} and {job}", kEventsPath),
      field<FieldKind::size>(
          {"events", "max_bytes"}, [](auto& o) -> auto& { return o.events.max_bytes; }, all_ranks,
          "a size from \"4 KiB\", or 0", kRotation),
  };
}

std::vector<OptionField> make_fields() {
  std::vector<OptionField> fields;
  for (const auto section :
       {run_fields, store_fields, persistent_fields, redundancy_fields, pipeline_fields, open_fields, schedule_fields,
        exit_fields, device_fields, topology_fields, comm_fields, log_fields, event_fields}) {
    std::ranges::move(section(), std::back_inserter(fields));
  }
  return fields;
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

}  // namespace

std::span<const OptionField> option_fields() {
  static const std::vector<OptionField> fields = make_fields();
  return fields;
}

std::string dotted_name(const OptionField& field) {
  return field.section.empty() ? std::string(field.key) : compose("{}.{}", field.section, field.key);
}

std::string variable_name(const OptionField& field) { return variable_name(dotted_name(field)); }

std::string variable_name(std::string_view dotted) {
  std::string name = "KEDGE_" + upper_case(dotted);
  std::ranges::replace(name, '.', '_');
  return name;
}

bool is_path(const OptionField& field) noexcept { return field.kind == FieldKind::text && field.key == "path"; }

std::optional<Failure> check_options(const Options& options) {
  for (const OptionField& field : option_fields()) {
    if (is_path(field) && is_expandable(field.get(options))) {
      return Failure{ErrorCode::invalid_argument,
                     compose("option {} is \"{}\": ~ and variables are not expanded in fields of kedge::Options; "
                             "expand them in the program, or set the option in kedge.toml or the environment",
                             dotted_name(field), field.get(options))};
    }
    if (field.is_valid(options)) continue;
    return Failure{ErrorCode::invalid_argument,
                   compose("option {} must be {}, not \"{}\"", dotted_name(field), field.expects, field.get(options))};
  }
  return std::nullopt;
}

std::vector<FieldDigest> option_digests(const Options& options) {
  std::vector<FieldDigest> digests;
  for (const OptionField& field : option_fields()) {
    if (field.scope == Scope::all_ranks) digests.push_back({dotted_name(field), fnv1a(field.get(options))});
  }
  return digests;
}

}  // namespace kedge
