// Calls for interfaces to other languages. Not part of kedge.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/engine.hpp"

namespace kedge {

/// For interfaces to other languages; C++ programs do not need it.
struct ForBindings {
  /// Local, never throws. Reports a region that could not be passed to save or load: the next commit or close throws
  /// invalid_argument with the name and the reason, on all ranks.
  static Status refuse(Engine& engine, std::string_view name, std::string_view reason);
  /// COLLECTIVE. Engine::load_all; `refused`, on any rank, is why its wants could not be passed on: thrown on all
  /// ranks.
  static void load_all(Engine& engine, std::span<const Want> wants, std::optional<Failure> refused);
  /// A name that was given to save.
  struct NameToFind {
    std::string name;                    ///< of the region
    std::optional<LogicalRank> of = {};  ///< as this rank alone saved it
  };
  /// How the open checkpoint has a name.
  struct Saved {
    /// Its placement.
    enum class As : std::uint8_t {
      shard,       ///< blocks of a global array
      replicated,  ///< the same on all ranks
      of_rank,     ///< each rank's own
    };
    As as = As::of_rank;                ///< of all ranks that saved it
    DataType dtype = DataType::opaque;  ///< of one element
    Shape shape;                        ///< of one of its regions; of the global array for shards
    std::string members;                ///< of structs
    std::uint32_t regions = 0;          ///< 0: nobody saved it
    bool is_alike = false;              ///< all ranks saved it, with the same type and bytes
  };
  /// COLLECTIVE. Of each name, which may differ between ranks. Throws on all ranks alike, `local` of any of them, too.
  [[nodiscard]] static std::vector<Saved> find_saved(Engine& engine, std::span<const NameToFind> names,
                                                     std::optional<Failure> local);
  /// Local. The bytes of a region in this rank's last committed checkpoint, in the store's memory. Empty if the store
  /// is not in memory or there is no such region. Valid until the next collective call. Waits until a snapshot is
  /// sealed. If another process truncates the file, the bytes from there on read as zeros.
  [[nodiscard]] static std::span<const std::byte> committed(const Engine& engine, std::string_view name);
  /// Local. Tells the engine, before it is destroyed, that the cause is an error of the application that C++ cannot
  /// see. The other ranks' next call throws rank_failed with `why`, if the message layer can tell them.
  static void leave_by_error(Engine& engine, std::string_view why = {}) noexcept;
};

}  // namespace kedge
