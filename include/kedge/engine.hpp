// The engine: create, save, commit to write a checkpoint; open, load, close to read one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/attributes.hpp"
#include "kedge/communicator.hpp"
#include "kedge/counters.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "kedge/selection.hpp"
#include "kedge/types.hpp"

namespace kedge {

class State;

namespace engine {
class EngineImpl;
struct Environment;
struct ForBindings;
}  // namespace engine

/// Path of a file, or directory, routed through a checkpoint, and the call's status.
struct Routed {
  std::string path;  ///< empty if status is not ok
  Status status;     ///< of the call
};

/// One region of the open checkpoint.
struct RegionInfo {
  std::string name;                   ///< as given to save or route_out
  DataType dtype = DataType::opaque;  ///< of one element
  Shape shape;                        ///< on this rank
  Placement placement;                ///< in the whole job
  std::uint64_t size_bytes = 0;       ///< on this rank
  bool routed = false;                ///< a file: read it with route_in
  std::string members;                ///< of structs, as kedge::members describes them; empty: none, or not described
};

/// The open checkpoint.
struct CheckpointInfo : CommitHead {
  LogicalRank logical_rank;                          ///< the one whose container this process loads
  RecoverySource source = RecoverySource::in_place;  ///< the costliest that any rank needed
  std::uint64_t total_bytes = 0;                     ///< container bytes of all ranks
  Attributes attributes;                             ///< as given to create
};

/// One run's checkpoint engine. Calls marked COLLECTIVE must be made by all ranks in the same order; they succeed
/// on all ranks or throw Error with the same code on all (except for `timeout`). Make collective calls from one
/// thread at a time; save, load, route_out, route_in and level may be called from several threads concurrently.
class Engine {
 public:
  /// COLLECTIVE. Starts the run's next incarnation and takes over its node-local store. Throws
  /// invalid_argument (a bad option, or options that differ between ranks), mismatch (the checkpoints here are of
  /// several runs, of another input or another computation, or in stores that the prefix does not know), corrupt
  /// (checkpoints exist, but nothing says of which run), io or not_found (prefix or store cannot be used), busy
  /// (another start of this run is alive).
  Engine(std::unique_ptr<Communicator> communicator, Options options);
  /// COLLECTIVE. Over all ranks of an MPI communicator, see kedge::mpi: `Engine engine(MPI_COMM_WORLD, options)` with
  /// kedge/mpi.hpp included.
  template <class Ranks>
    requires requires(const Ranks& ranks) { CommunicatorOf<Ranks>::make(ranks); }
  Engine(const Ranks& ranks, Options options) : Engine(CommunicatorOf<Ranks>::make(ranks), std::move(options)) {}
  /// Local: never communicates, safe after MPI_Finalize. Call finalize first to shut down in order. Where no error led
  /// here, a later engine of this process does not continue this one's run, unless open.chained is set.
  ~Engine();
  Engine(Engine&&) noexcept;             ///< Local.
  Engine& operator=(Engine&&) noexcept;  ///< Local. The engine that is replaced is destroyed.
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// COLLECTIVE. True when the schedule asks for a checkpoint now, or when the job is to end and no checkpoint was
  /// committed since that is known; the same on every rank. That commit is taken to the highest level that it can reach
  /// in the time that is left, whatever its turn.
  [[nodiscard]] bool need_checkpoint();
  /// COLLECTIVE. True once the job is to end: one of `exit.signals` came to any rank, or `deadline` is so near that a
  /// last checkpoint would soon not fit any more; the same on every rank, and true from then on. In a loop with
  /// need_checkpoint, call it after the checkpoint: it then says what need_checkpoint found, so that the loop does not
  /// end without its last checkpoint. Without need_checkpoint it looks itself.
  [[nodiscard]] bool should_exit();

  /// COLLECTIVE. Begins a checkpoint. Only rank 0's attributes are stored. Throws invalid_argument, bad_state,
  /// no_space, io.
  void create(std::string_view tag, const Attributes& attributes = {});
  /// COLLECTIVE. Begins an output: data for people and other programs, such as a plot, not state to restart from. It is
  /// saved, committed, protected and read as a checkpoint is, by its own tag; open(latest) and open(Before) skip it, it
  /// counts in no `keep` and no `every` and replaces no checkpoint. Every output is flushed to the parallel filesystem,
  /// stays in the node-local stores until then, and is never removed from the parallel filesystem. Throws as create.
  void create_output(std::string_view tag, const Attributes& attributes = {});
  /// Local, never throws. Copies the region; the memory may be reused when it returns. Names are UTF-8; `/`
  /// separates groups. Outside of create and commit nothing but the status says that it was refused (bad_state).
  Status save(std::string_view name, const Region& region, const Placement& placement = {});
  /// Local, never throws. Returns a path on the node-local store to write a file of the application's own to; commit
  /// stores the file as a region of this name. The path ends with `name`, whose directories exist; all files that a
  /// rank routes in one checkpoint lie in one directory, which is this rank's alone, and which commit and abandon
  /// remove with everything in it. A name that ends with '/' is a directory: everything written below it is stored,
  /// each file as a region. Each file is routed once, and closed before commit. `max_bytes` is a bound that the
  /// application sets itself (of a directory: on all of it); 0 is none.
  Routed route_out(std::string_view name, std::uint64_t max_bytes = 0);
  /// COLLECTIVE. Seals the checkpoint on all ranks or on none, and throws the first failure since create: that of a
  /// save or route_out, mismatch (blocks of a global array that do not fit each other, ranks that disagree about a
  /// name), not_found or invalid_argument (routed files), no_space, io. With device.snapshot,
  /// commit may return at level snapshot: it is sealed in the background, and may still fail.
  void commit();
  /// COLLECTIVE. Drops the checkpoint that create began.
  void abandon();
  /// Local. The level that the newest commit of this tag has reached, to this engine's knowledge; none if it
  /// knows of no such commit. `snapshot`: it is not on the node-local stores yet (device.snapshot), and may still fail.
  [[nodiscard]] Level level(std::string_view tag) const;
  /// Local, from any thread. What this engine has done so far, to this rank's knowledge; without communication.
  [[nodiscard]] Counters counters() const;

  /// COLLECTIVE. Returns when the newest commit of this tag has reached the level; protects or flushes it now if it was
  /// not due yet (redundancy.every, persistent.every). Throws not_found (no such commit is kept), invalid_argument (a
  /// level that the options rule out), or why the level cannot be reached: the commit is then unchanged.
  void wait(std::string_view tag, Level level);
  /// COLLECTIVE. As wait, but a commit that is under way in the background is waited for so long at most; false on
  /// all ranks if any gave up: it goes on as far as it was due. What is not under way is done now, however long it
  /// takes.
  [[nodiscard]] bool wait_for(std::string_view tag, Level level, std::chrono::duration<double> at_most);

  /// What has become of a commit: nothing if it has reached the level, else why it will not.
  using OnComplete = std::function<void(const std::optional<Failure>& failure)>;
  /// Local. `callback` is called once, when the newest commit of this tag has reached the level, or cannot: its stage
  /// failed, a newer commit took its place in the stores, or the engine was finalized. It is called by the
  /// application's thread, within the next create, commit, wait, open, close, need_checkpoint, should_exit or finalize
  /// that finds this out, on each rank for itself, and must not make collective calls. What it throws is logged. Never
  /// called if the engine is destroyed before, or fails. Throws not_found if the stores have no commit of this tag,
  /// bad_state if the engine was finalized or is dead.
  void on_complete(std::string_view tag, Level level, OnComplete callback);

  /// Local, from any thread; never throws. Suspends this rank's background work until
  /// resume, so that the application has network and memory bandwidth to itself. The work resumes by itself when the
  /// application waits for it, and after at most a quarter of comm.timeout_s per commit, because other ranks depend on
  /// it. While paused, do not wait for a rank that may be in create.
  void pause() noexcept;
  void resume() noexcept;  ///< Ends a pause.

  /// COLLECTIVE. A pinned commit stays on the parallel filesystem until it is unpinned, regardless of persistent.keep.
  /// Throws not_found if no commit of this tag is persistent.
  void pin(std::string_view tag);
  void unpin(std::string_view tag);  ///< COLLECTIVE. The reverse of pin.

  /// COLLECTIVE. Finds the checkpoint and makes every rank's container readable. Returns its tag, or nothing if the
  /// run has no commit yet or none matches. A Source that matches nothing throws not_found.
  /// Throws unrecoverable if commits that match exist and none of them can be recovered.
  std::optional<Tag> open(const Selection& selection = latest, Newer newer = Newer::keep);
  /// Local: regions of this rank's container in the open checkpoint. Throws bad_state if none is open.
  [[nodiscard]] std::vector<RegionInfo> regions() const;
  /// Local: the checkpoint that is open, or was opened last. Throws bad_state if there was none.
  [[nodiscard]] CheckpointInfo info() const;
  /// Local, never throws. Copies a region out and checks every byte. On failure the memory's content is undefined.
  Status load(std::string_view name, const MutableRegion& region);
  /// Local, never throws. Extracts a routed file and returns its path, which ends with `name` and is valid until close;
  /// with a name that ends with '/', all that this rank routed in that directory, which is empty if there was nothing.
  Routed route_in(std::string_view name);
  /// COLLECTIVE. Releases what open acquired and throws the first failure since then: that of a load or route_in
  /// (not_found, mismatch, corrupt, io, no_space).
  void close();

  /// COLLECTIVE. Calls create, save for every item, commit.
  void checkpoint(std::string_view tag, const State& state, const Attributes& attributes = {});
  /// COLLECTIVE. Calls open, load for every item, close. Returns the tag, or nothing if there is none yet. Variables
  /// are resized to what was saved. If an item gives a position in a global array, it must be the saved one
  /// (`mismatch`). What is loaded is checked while it is loaded, and not read before; what the State does not load is
  /// checked, too, unless open.verify is headers or it is another run's (Source). If the checkpoint turns out to be
  /// damaged then, it is rebuilt, or the next that fits the selection is used, and all variables are loaded again.
  /// After an error the variables' content is undefined.
  std::optional<Tag> restore(const State& state, const Selection& selection = latest);

  /// COLLECTIVE. Flushes the newest commit, if any commits are flushed, and shuts the engine down as store.on_exit
  /// says; afterwards every call but level and counters throws bad_state. A flush that fails is logged, and does not
  /// throw. Then throws, and keeps the node-local files, if the newest commit was a snapshot that could not be written
  /// to the stores; not if wait has thrown that already, or open was told to discard what is newer.
  void finalize();
  /// COLLECTIVE. As finalize, but what is done in the background is waited for so long at most, and 10 s more for a
  /// write that has begun. False on all ranks if any gave up, if the newest commit could not be flushed, or if it was a
  /// snapshot that is lost; the log says why. The newest commit then keeps the level that it has, and the node-local
  /// files are kept, whatever store.on_exit says, for `kedge drain` or the next start. 0 gives up at once unless
  /// the commit is where it belongs already. Where work is done inline, nothing is given up.
  [[nodiscard]] bool finalize_for(std::chrono::duration<double> at_most);
  /// COLLECTIVE, if all ranks come: as finalize(), but waits at most so long for the others. For a program that exits
  /// and cannot know whether they do. False, on this rank alone, if they do not come, or make other calls: then destroy
  /// the engine. To the others it is a rank that does not answer (timeout), or one in another call (bad_state).
  [[nodiscard]] bool finalize_if_all_come(std::chrono::duration<double> at_most);

 private:
  friend struct engine::Environment;  // tests create engines over other storage and clocks
  friend struct engine::ForBindings;
  explicit Engine(std::unique_ptr<engine::EngineImpl> impl);
  std::unique_ptr<engine::EngineImpl> impl_;
};

}  // namespace kedge
