#include "base/options_fields.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/expand_path.hpp"
#include "base/hash.hpp"
#include "base/options_field.hpp"
#include "base/options_valid.hpp"

namespace kedge {
namespace {

using namespace options_table;  // NOLINT(google-build-using-namespace): the words of one table
using namespace options_valid;  // NOLINT(google-build-using-namespace): likewise

std::vector<Field> run_fields() {
  using enum Scope;
  return {
      field(
          {"", "run"}, [](auto& o) -> auto& { return o.run; }, all_ranks,
          "1 to 64 of A-Z a-z 0-9 . _ -, not starting with a dot, or empty",
          "Name of the run; empty: the name given to the communicator or main, or the only run that has checkpoints "
          "here.",
          kRunName),
      field(
          {"", "fingerprint"}, [](auto& o) -> auto& { return o.fingerprint; }, all_ranks,
          "one line of at most 4096 bytes, or empty",
          "What the results depend on besides the state; a start with another one is refused.", kLine),
      field(
          {"", "fingerprint_files"}, [](auto& o) -> auto& { return o.fingerprint_files; }, all_ranks,
          "a list of paths without colons (in the environment, separated by colons)",
          "Input files whose content belongs to the fingerprint.", kPaths),
      field<FieldKind::time>(
          {"", "deadline"}, [](auto& o) -> auto& { return o.deadline; }, each_rank,
          "seconds since 1970, a date and time as in 2026-11-25T22:00:00Z, none, or empty",
          "When the job is going to be ended; empty: SLURM_JOB_END_TIME, if it is set; none: never.", kTimestamp),
  };
}

std::vector<Field> store_fields() {
  using enum Scope;
  return {
      field(
          {"store", "path"}, [](auto& o) -> auto& { return o.store.path; }, each_rank,
          "a path, or empty, with no names in braces but {node} (each run has a directory of its own there)",
          "Node-local directory; {node} becomes the node's name; empty: the first in memory of the usual places.",
          kStorePath),
      field(
          {"store", "keep"}, [](auto& o) -> auto& { return o.store.keep; }, all_ranks,
          "a whole number from 1 to 4294967295", "Number of commits kept per rank on the node-local store.",
          kAtLeastOne),
      field<FieldKind::size>(
          {"store", "quota_bytes"}, [](auto& o) -> auto& { return o.store.quota_bytes; }, all_ranks,
          "a whole number of bytes, or a number followed by KiB, MiB, GiB or TiB",
          "Maximum number of bytes that this run's ranks on one node may use together on its store; 0 = no limit."),
      field(
          {"store", "durable"}, [](auto& o) -> auto& { return o.store.durable; }, all_ranks, "true or false",
          "Sync all data before commit returns, so that the commit survives a power loss."),
      field(
          {"store", "lock_timeout_s"}, [](auto& o) -> auto& { return o.store.lock_timeout_s; }, all_ranks,
          "seconds, 0 or more", "How long a start waits for processes of an earlier start to exit.", kWait),
      field(
          {"store", "on_exit"}, [](auto& o) -> auto& { return o.store.on_exit; }, all_ranks,
          "keep, remove_if_persistent or remove", "What finalize does with the node-local files."),
      field(
          {"store", "copy_threads"}, [](auto& o) -> auto& { return o.store.copy_threads; }, all_ranks,
          "a whole number from 0 to 64",
          "Number of threads that copy a large region; 0 = automatic: the machine's cores per rank, at most 4.",
          kThreads),
      field(
          {"store", "io"}, [](auto& o) -> auto& { return o.store.io; }, all_ranks, "auto, buffered or direct",
          "How large writes reach a store on block storage."),
  };
}

std::vector<Field> persistent_fields() {
  using enum Scope;
  return {
      field(
          {"persistent", "path"}, [](auto& o) -> auto& { return o.persistent.path; }, all_ranks,
          "a path, not empty, without names in braces",
          "The prefix: a directory on the parallel filesystem, the same for all ranks.", kSomePath),
      field(
          {"persistent", "every"}, [](auto& o) -> auto& { return o.persistent.every; }, all_ranks,
          "a whole number, 0 or more", "Flush every Nth commit to the prefix; 0 = none."),
      field(
          {"persistent", "keep"}, [](auto& o) -> auto& { return o.persistent.keep; }, all_ranks,
          "a whole number, 0 or more", "Number of commits kept on the prefix, not counting pinned ones; 0 = all."),
      field(
          {"persistent", "latest"}, [](auto& o) -> auto& { return o.persistent.latest; }, all_ranks, "true or false",
          "Write the newest commit's directory name to the file latest on the prefix."),
      field(
          {"persistent", "mode"}, [](auto& o) -> auto& { return o.persistent.mode; }, all_ranks,
          "octal permission bits from \"0700\" to \"0775\"", "Permissions of tag directories, less the umask.", kMode),
      field(
          {"persistent", "plain_routed"}, [](auto& o) -> auto& { return o.persistent.plain_routed; }, all_ranks,
          "true or false", "Also flush routed files as plain files, beside the manifest."),
      field(
          {"persistent", "trust"}, [](auto& o) -> auto& { return o.persistent.trust; }, all_ranks, "self, group or any",
          "Whose files on a prefix are trusted."),
      field(
          {"persistent", "io"}, [](auto& o) -> auto& { return o.persistent.io; }, all_ranks, "auto, buffered or direct",
          "How containers are written to the prefix."),
      field<FieldKind::size>(
          {"persistent", "bandwidth_limit"}, [](auto& o) -> auto& { return o.persistent.bandwidth_limit; }, all_ranks,
          "a whole number of bytes, or a number followed by KiB, MiB, GiB or TiB",
          "Maximum number of bytes per second that a node writes to the prefix; 0 = no limit."),
      field(
          {"persistent", "retries"}, [](auto& o) -> auto& { return o.persistent.retries; }, all_ranks,
          "a whole number from 0 to 1000",
          "In the background, how often a flush that failed for lack of space or with an I/O error is tried again.",
          kRetries),
      field(
          {"persistent", "view_limit"}, [](auto& o) -> auto& { return o.persistent.view_limit; }, all_ranks,
          "a whole number, 0 or more",
          "Maximum number of shards in the manifest's HDF5 view; with more there is no view."),
  };
}

std::vector<Field> redundancy_fields() {
  using enum Scope;
  return {
      field(
          {"redundancy", "scheme"}, [](auto& o) -> auto& { return o.redundancy.scheme; }, all_ranks,
          "auto, single, partner, xor or rs", "How ranks of different failure domains protect each other."),
      field(
          {"redundancy", "set_size"}, [](auto& o) -> auto& { return o.redundancy.set_size; }, all_ranks,
          "a whole number from 2 to 32", "Number of members of a redundancy set to aim for.", kSetSize),
      field(
          {"redundancy", "parity"}, [](auto& o) -> auto& { return o.redundancy.parity; }, all_ranks,
          "a whole number from 1 to 4", "With scheme rs: how many members of each set may be lost.", kParity),
      field(
          {"redundancy", "every"}, [](auto& o) -> auto& { return o.redundancy.every; }, all_ranks,
          "a whole number, 0 or more", "Protect every Nth commit; 0 = none."),
      field<FieldKind::size>(
          {"redundancy", "piece_bytes"}, [](auto& o) -> auto& { return o.redundancy.piece_bytes; }, all_ranks,
          "a size from \"4 KiB\" to \"16 MiB\", or 0",
          "Bytes per message when protecting and rebuilding; 0 = automatic.", kPieceBytes),
      field(
          {"redundancy", "depth"}, [](auto& o) -> auto& { return o.redundancy.depth; }, all_ranks,
          "a whole number from 1 to 64",
          "Number of pieces that a rank has in flight at once when protecting and rebuilding.", kDepth),
      field<FieldKind::size>(
          {"redundancy", "bandwidth_limit"}, [](auto& o) -> auto& { return o.redundancy.bandwidth_limit; }, all_ranks,
          "a whole number of bytes, or a number followed by KiB, MiB, GiB or TiB",
          "Maximum number of bytes per second that a node sends while it protects in the background; 0 = no "
          "limit."),
  };
}

std::vector<Field> pipeline_fields() {
  using enum Scope;
  return {
      field(
          {"pipeline", "mode"}, [](auto& o) -> auto& { return o.pipeline.mode; }, all_ranks,
          "auto, inline or background",
          "Whether commit protects and flushes before it returns, or a thread does so in the background."),
      field(
          {"pipeline", "max_pending"}, [](auto& o) -> auto& { return o.pipeline.max_pending; }, all_ranks,
          "a whole number from 1 to 1024",
          "Number of commits that may be on their way to higher levels at once, the one being written included.",
          kPending),
      field(
          {"pipeline", "when_full"}, [](auto& o) -> auto& { return o.pipeline.when_full; }, all_ranks,
          "block, skip or fail", "What create does when pipeline.max_pending commits are under way."),
      field(
          {"pipeline", "cores"}, [](auto& o) -> auto& { return o.pipeline.cores; }, each_rank,
          "numbers of cores and ranges of them, such as \"0,64-67\", or empty",
          "Cores of each node on which threads protect and flush in the background.", kCores),
      field(
          {"pipeline", "messages"}, [](auto& o) -> auto& { return o.pipeline.messages; }, all_ranks, "auto, mpi or tcp",
          "How background threads exchange messages: over MPI or TCP."),
      field(
          {"pipeline", "interface"}, [](auto& o) -> auto& { return o.pipeline.interface; }, all_ranks,
          "names of network interfaces and subnets, such as \"ib0,10.1.0.0/16\", or empty",
          "Network interfaces or subnets for background messages over TCP.", kNetworks),
  };
}

std::vector<Field> open_fields() {
  using enum Scope;
  return {
      field(
          {"open", "verify"}, [](auto& o) -> auto& { return o.open.verify; }, all_ranks, "all, loaded or headers",
          "How much of the selected commit open verifies."),
      field(
          {"open", "fresh"}, [](auto& o) -> auto& { return o.open.fresh; }, all_ranks, "true or false",
          "Start a new run, ignoring the earlier checkpoints; for one start only."),
      field(
          {"open", "adopt_store"}, [](auto& o) -> auto& { return o.open.adopt_store; }, all_ranks, "true or false",
          "Continue from commits in the stores of a run that the prefix has no record of, or of a run whose "
          "prefix was moved and whose former path cannot be read."),
      field(
          {"open", "accept_fingerprint"}, [](auto& o) -> auto& { return o.open.accept_fingerprint; }, all_ranks,
          "true or false", "Continue from the run's checkpoints even if the fingerprint differs."),
      field(
          {"open", "chained"}, [](auto& o) -> auto& { return o.open.chained; }, all_ranks, "true or false",
          "Continue from checkpoints of another task of the job array, another part of the launch, or an engine that "
          "already finished in this process."),
  };
}

std::vector<Field> schedule_fields() {
  using enum Scope;
  return {
      field(
          {"schedule", "every"}, [](auto& o) -> auto& { return o.schedule.every; }, all_ranks,
          "a whole number, 0 or more",
          "need_checkpoint returns true at every Nth call; 0 = by schedule.seconds and schedule.overhead."),
      field(
          {"schedule", "seconds"}, [](auto& o) -> auto& { return o.schedule.seconds; }, all_ranks, "seconds, 0 or more",
          "need_checkpoint returns true when the last checkpoint, committed or failed, was this long ago; 0 = "
          "disabled.",
          kWait),
      field(
          {"schedule", "overhead"}, [](auto& o) -> auto& { return o.schedule.overhead; }, all_ranks,
          "a share from 0 to 1",
          "need_checkpoint returns true when checkpoints cost at most this share of the run time; 0 = disabled.",
          kShare),
  };
}

std::vector<Field> exit_fields() {
  using enum Scope;
  return {
      field(
          {"exit", "signals"}, [](auto& o) -> auto& { return o.exit.signals; }, all_ranks,
          "a list of SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU (in the environment, separated by colons)",
          "Signals that ask the job to end after a last checkpoint, instead of killing it.", kSignals),
      field(
          {"exit", "margin_s"}, [](auto& o) -> auto& { return o.exit.margin_s; }, all_ranks, "seconds, 0 or more",
          "How long before the deadline the last checkpoint is to be done.", kWait),
      field(
          {"exit", "grace_s"}, [](auto& o) -> auto& { return o.exit.grace_s; }, all_ranks, "seconds, 0 or more",
          "How long after a signal the job is killed; 0 = not known.", kWait),
  };
}

std::vector<Field> device_fields() {
  using enum Scope;
  return {
      field(
          {"device", "direct"}, [](auto& o) -> auto& { return o.device.direct; }, all_ranks, "true or false",
          "Copy GPU memory straight into an in-memory store instead of through pinned buffers."),
      field(
          {"device", "snapshot"}, [](auto& o) -> auto& { return o.device.snapshot; }, all_ranks, "true or false",
          "Copy GPU memory only within the GPU in save, and to the store in the background."),
      field(
          {"device", "gds"}, [](auto& o) -> auto& { return o.device.gds; }, all_ranks, "auto, off or on",
          "Write GPU memory to a store on a disk by GPUDirect Storage (cuFile)."),
  };
}

std::vector<Field> topology_fields() {
  using enum Scope;
  return {
      field(
          {"topology", "ranks_per_node"}, [](auto& o) -> auto& { return o.topology.ranks_per_node; }, all_ranks,
          "a whole number from 0 to 4294967295",
          "Simulates nodes of this many consecutive ranks each; 0 = the real nodes."),
      field(
          {"topology", "failure_domain"}, [](auto& o) -> auto& { return o.topology.failure_domain; }, all_ranks,
          "node or env:NAME",
          "What fails together: the node, or all ranks with the same value of an environment variable.", kDomain),
  };
}

std::vector<Field> comm_fields() {
  using enum Scope;
  return {
      field(
          {"comm", "timeout_s"}, [](auto& o) -> auto& { return o.comm.timeout_s; }, all_ranks, "seconds, more than 0",
          "How long a collective call waits for the other ranks.", kPositive),
  };
}

std::vector<Field> log_fields() {
  using enum Scope;
  return {
      field(
          {"log", "level"}, [](auto& o) -> auto& { return o.log.level; }, each_rank,
          "debug, info, warning, error or off", "The lowest severity that is logged."),
  };
}

std::vector<Field> event_fields() {
  using enum Scope;
  return {
      field(
          {"events", "path"}, [](auto& o) -> auto& { return o.events.path; }, all_ranks,
          "a path, or empty, with no names in braces but {node}, {run}, {user} and {job}",
          "Where events are written as JSON lines: a directory, or with {node} in it a file; empty: nowhere.",
          kEventsPath),
      field<FieldKind::size>(
          {"events", "max_bytes"}, [](auto& o) -> auto& { return o.events.max_bytes; }, all_ranks,
          "a size from \"4 KiB\", or 0", "Size at which a file of events is renamed and a new one begun; 0 = never.",
          kRotation),
  };
}

std::vector<Field> make_fields() {
  std::vector<Field> fields;
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

std::span<const Field> option_fields() {
  static const std::vector<Field> fields = make_fields();
  return fields;
}

std::string dotted_name(const Field& field) {
  return field.section.empty() ? std::string(field.key) : compose("{}.{}", field.section, field.key);
}

std::string variable_name(const Field& field) {
  std::string name = "KEDGE_";
  if (!field.section.empty()) name += upper_case(field.section) + "_";
  return name + upper_case(field.key);
}

bool is_path(const Field& field) noexcept { return field.key == "path"; }

std::optional<Failure> check(const Options& options) {
  for (const Field& field : option_fields()) {
    if (is_path(field) && is_expandable(field.get(options))) {
      return Failure{
          ErrorCode::invalid_argument,
          compose("option {} is \"{}\": ~ and variables are not expanded in fields of kedge::Options; expand "
                  "them in the program, or set the option in kedge.toml or the environment",
                  dotted_name(field), field.get(options)),
          -1,
          {},
          0};
    }
    if (field.valid(options)) continue;
    return Failure{ErrorCode::invalid_argument,
                   compose("option {} must be {}, not \"{}\"", dotted_name(field), field.expects, field.get(options)),
                   -1,
                   {},
                   0};
  }
  return std::nullopt;
}

std::vector<FieldDigest> digest(const Options& options) {
  std::vector<FieldDigest> digests;
  for (const Field& field : option_fields()) {
    if (field.scope == Scope::all_ranks) digests.push_back({dotted_name(field), fnv1a(field.get(options))});
  }
  return digests;
}

}  // namespace kedge
