// What a home process knows of the names and tiles that it is in charge of, and what it finds out: which offers serve
// which wants, that both agree about elements and shape, and that nothing that is wanted is missing. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arrays/wants.hpp"
#include "kedge/error.hpp"

namespace kedge::arrays {

/// What a home looks things up by.
struct HomedKey {
  LookUp look_up = LookUp::shard;
  std::uint64_t tile = 0;
  std::string name;
  auto operator<=>(const HomedKey&) const = default;
};

/// An offer as its home knows it.
struct Row {
  int steward = 0;
  std::uint32_t offer = 0;  ///< its position among the steward's
  std::uint32_t logical_rank = 0;
  bool is_in_store = false;
  Box box;  ///< its part of the array
};

/// A want as a home knows it.
struct Request {
  int process = 0;
  std::uint32_t want = 0;          ///< its position among the process's
  std::uint32_t logical_rank = 0;  ///< whose region, for LookUp::of_rank
  Box box;
};

/// These elements of the array are taken from this offer for that want.
struct Match {
  int steward = 0;
  std::uint32_t offer = 0;
  int process = 0;
  std::uint32_t want = 0;
  Box box;
};

/// A name of which its home knows nothing that was saved as is asked for.
struct UnknownName {
  std::string name;
  LookUp look_up = LookUp::shard;
  ArrayType type;
};

/// Why a want cannot be served.
struct Refusal {
  Failure failure;
  std::optional<UnknownName> unknown = {};  ///< other processes may know more
};

class Directory {
 public:
  /// Of a commit that `logical_ranks` ranks saved, in a job of `processes`.
  Directory(std::uint64_t logical_ranks, std::uint64_t processes)
      : logical_ranks_(logical_ranks), processes_(processes) {}

  void add(const HomedKey& key, const ArrayType& type, const Row& row);
  void ask(const HomedKey& key, const ArrayType& type, const Request& request);

  /// Each element that is wanted and lies in a tile of this home is in exactly one of the matches of all homes: a match
  /// belongs to the tile of its first element. Or the first want that is refused, by name, process and number; a want
  /// without elements is refused only if what is known of its name disagrees with it.
  struct Matched {
    std::vector<Match> matches;
    std::optional<Refusal> refusal;
  };
  [[nodiscard]] Matched match() const;

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }

 private:
  struct TypeOrder {
    [[nodiscard]] bool operator()(const ArrayType& a, const ArrayType& b) const;
  };
  template <class Item>
  struct Typed {
    std::uint32_t type = 0;  ///< position in Entry::types
    Item item;
  };
  struct Entry {
    std::vector<ArrayType> types;  ///< each once
    std::map<ArrayType, std::uint32_t, TypeOrder> position_of_type;
    std::vector<Typed<Row>> rows;
    std::vector<Typed<Request>> requests;
    [[nodiscard]] std::uint32_t position_of(const ArrayType& type);
  };
  using Refused = std::optional<Refusal>;
  Refused match_shards(const HomedKey& key, const Entry& entry, std::vector<Match>& matches) const;
  Refused match_regions(const HomedKey& key, const Entry& entry, std::vector<Match>& matches) const;
  [[nodiscard]] static Refused check_type(const HomedKey& key, const Entry& entry, const Typed<Row>& row,
                                          const Typed<Request>& request);

  std::uint64_t logical_ranks_;
  std::uint64_t processes_;
  std::map<HomedKey, Entry> entries_;
  std::size_t rows_ = 0;
};

/// How a process saved what has this name, if that is not what is asked for; nothing if it did not, or just so.
[[nodiscard]] std::optional<std::string> saved_differently(const UnknownName& asked, std::span<const Offer> offers);
[[nodiscard]] bool saved_the_same(const UnknownName& asked, std::span<const Offer> offers);

// Describe the fault of a want.
[[nodiscard]] Failure saved_otherwise(const UnknownName& asked, const std::string& saved);
[[nodiscard]] Failure saved_by_no_rank(const std::string& name);

}  // namespace kedge::arrays
