// Selections for open, and sources that a checkpoint was recovered from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "kedge/types.hpp"

namespace kedge {

/// For open: the newest checkpoint (never an output) that can be recovered on all ranks.
struct Latest {};
inline constexpr Latest latest{};  ///< Default of open.

/// For open: the newest checkpoint that is older than every commit of this tag. If there are commits but none has this
/// tag, open throws not_found, because it cannot know which commits are older.
struct Before {
  Tag tag;  ///< the opened commit is older than every commit of this tag
};

/// For open: another run's checkpoint, or a copied tag directory, as the origin of a new run. It is read in place and
/// never changed; it becomes the parent of this run's next commit. persistent.trust decides whose files are trusted. If
/// a commit is damaged, an older one of the same tag is opened. If a job that flushes there removes listed commits
/// meanwhile (persistent.keep), they are listed again, for at most 10 s.
struct Source {
  std::string prefix;    ///< the directory that holds the tag directories
  std::string run = {};  ///< the run whose tags to consider; empty: any run
  Tag tag = "latest";    ///< the newest commit of this tag; "latest": the newest of all
};

/// The checkpoint to open. The tag "latest" means Latest.
using Selection = std::variant<Latest, Tag, Before, Source>;

/// How open treats commits newer than the one it opens.
enum class Newer : std::uint8_t {
  keep,     ///< they stay candidates: the next open(latest) may return to them
  discard,  ///< the newer checkpoints that can be seen are durably recorded as abandoned, and never offered again;
            ///< outputs stay
};

/// Where an opened checkpoint came from: in_place, moved, rebuilt, fetched; the costliest that any rank needed.
enum class RecoverySource : std::uint8_t { in_place, moved, rebuilt, fetched };

/// "in place", "moved", "rebuilt", "fetched".
[[nodiscard]] std::string_view to_string(RecoverySource source) noexcept;

}  // namespace kedge
