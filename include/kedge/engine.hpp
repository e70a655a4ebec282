// The engine and its bookends: create, save, commit; open, load, close.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kedge/attributes.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"
#include "kedge/options.hpp"
#include "kedge/types.hpp"

namespace kedge {

class State;

namespace engine {
class EngineImpl;
struct Environment;
}  // namespace engine

/// For open: the newest commit that all ranks can have again.
struct Latest {};
inline constexpr Latest latest{};

/// For open: the newest one older than every commit of this tag.
struct Before {
  Tag tag;
};

/// For open: another run's checkpoint, or a copied tag directory, as a new run's beginning. It is read where it lies
/// and never changed; the next commit begins this run's lineage with it as parent. Whose files are believed is
/// persistent.trust.
struct Source {
  std::string prefix;  ///< the directory that holds the tag directories
  std::string run;     ///< whose tags; empty: anybody's
  Tag tag;             ///< the newest of this name; "latest": the newest of all
};

/// What to open; the tag "latest" means Latest.
using Selection = std::variant<Latest, Tag, Before, Source>;

/// What becomes of commits newer than the one opened.
enum class Newer : std::uint8_t {
  keep,     ///< they stay candidates: the next open(latest) may return to them
  discard,  ///< they are recorded as abandoned, durably, and never offered again
};

/// Path of a file routed through a checkpoint, with the outcome beside it.
struct Routed {
  std::string path;  ///< empty if status is not ok
  Status status;
};

/// One region of the open checkpoint.
struct RegionInfo {
  std::string name;
  DataType dtype = DataType::opaque;
  Shape shape;
  Placement placement;
  std::uint64_t size_bytes = 0;
  bool routed = false;  ///< a file: get it with route_in
};

/// Where an opened checkpoint came from; the costliest way that any rank needed.
enum class RecoverySource : std::uint8_t { in_place, moved, rebuilt, fetched };

/// "in place", "moved", "rebuilt", "fetched".
[[nodiscard]] std::string_view to_string(RecoverySource source) noexcept;

/// The open checkpoint.
struct CheckpointInfo : CommitHead {
  LogicalRank logical_rank;  ///< the one that this process loads
  RecoverySource source = RecoverySource::in_place;
  std::uint64_t total_bytes = 0;  ///< container bytes of all ranks
  Attributes attributes;          ///< as given to create
};

/// One run's checkpoint engine. Calls marked COLLECTIVE must be made by all ranks in the same order; they
/// succeed on all or throw Error with the same code on all (but for `timeout`). Collective calls come from
/// one thread at a time; save and load may come from several.
class Engine {
 public:
  /// COLLECTIVE. Takes the next incarnation of the run and its place on the node-local store. Throws
  /// invalid_argument (an option, or options that differ between ranks), io (prefix or store cannot be used),
  /// busy (another start of this run is alive).
  Engine(std::unique_ptr<Communicator> communicator, Options options);
  /// Local: never communicates, harmless after MPI_Finalize. Call finalize first for an orderly end.
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// COLLECTIVE. True when the schedule asks for a checkpoint now; the same on every rank.
  [[nodiscard]] bool need_checkpoint();

  /// COLLECTIVE. Begins a checkpoint. The attributes of rank 0 count.
  void create(std::string_view tag, const Attributes& attributes = {});
  /// Local, never throws. Copies the region; the memory may be reused when it returns. Names are UTF-8, `/`
  /// makes groups.
  Status save(std::string_view name, const Region& region, const Placement& placement = {});
  /// Local, never throws. A path to write a file of at most `max_bytes` to; commit takes the file in as a
  /// region of this name and removes it.
  Routed route_out(std::string_view name, std::uint64_t max_bytes);
  /// COLLECTIVE. Seals the checkpoint on all ranks or on none, and throws the first failure since create.
  void commit();
  /// COLLECTIVE. Drops what create began.
  void abandon();
  /// Local. The level that the newest commit of this tag has reached, as far as this engine knows.
  [[nodiscard]] Level level(std::string_view tag) const;

  /// COLLECTIVE. Returns when the newest commit of this tag has reached the level; protects it now if its turn had not
  /// come (redundancy.every). Throws not_found (no such commit is kept), invalid_argument (a level that the options
  /// rule out), or why the level cannot be reached: the commit is then as it was.
  void wait(std::string_view tag, Level level);

  /// COLLECTIVE. A pinned commit stays on the parallel filesystem whatever persistent.keep says, until it is unpinned.
  /// Throws not_found if no commit of this tag is persistent.
  void pin(std::string_view tag);
  void unpin(std::string_view tag);

  /// COLLECTIVE. Finds the checkpoint and makes every rank's container readable; nothing if the run has no
  /// commit yet or the selection names none. Throws unrecoverable if commits exist and none can be had.
  std::optional<Tag> open(const Selection& selection = latest, Newer newer = Newer::keep);
  /// Local: regions of this rank's container in the open checkpoint. Throws bad_state if none is open.
  [[nodiscard]] std::vector<RegionInfo> regions() const;
  /// Local: the checkpoint that is open, or was opened last. Throws bad_state if none ever was.
  [[nodiscard]] CheckpointInfo info() const;
  /// Local, never throws. Copies a region out; every byte is checked. On failure the memory is undefined.
  Status load(std::string_view name, const MutableRegion& region);
  /// Local, never throws. A path where the routed file was extracted to, valid until close.
  Routed route_in(std::string_view name);
  /// COLLECTIVE. Frees what open took and throws the first failure since then.
  void close();

  /// COLLECTIVE. create, save of every item, commit.
  void checkpoint(std::string_view tag, const State& state, const Attributes& attributes = {});
  /// COLLECTIVE. open(latest), load of every item, close; the tag, or nothing if there is none yet. If the
  /// newest checkpoint turns out damaged while it is loaded, the one before is taken.
  std::optional<Tag> restore(const State& state);

  /// COLLECTIVE. Ends the engine by policy (store.on_exit); afterwards every call throws bad_state.
  void finalize();

 private:
  friend struct engine::Environment;  // tests make engines over other storage and clocks
  explicit Engine(std::unique_ptr<engine::EngineImpl> impl);
  std::unique_ptr<engine::EngineImpl> impl_;
};

}  // namespace kedge
