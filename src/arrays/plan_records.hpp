// What processes tell each other while they plan a read, as bytes: never stored.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "arrays/directory.hpp"
#include "arrays/read_plan.hpp"
#include "comm/wire.hpp"

namespace kedge::arrays {

/// Rows and requests on their way to a home, many under one key and type.
template <class Item>
struct Homed {
  HomedKey key;
  ArrayType type;
  std::vector<Item> items;
};

/// What a steward tells a reader: which blocks of a region to read, and for whom.
struct OrderRecord {
  std::string name;
  std::uint32_t logical_rank = 0;
  std::uint32_t offer = 0;
  bool is_in_store = false;
  std::uint64_t element_bytes = 0;
  Box stored;
  std::vector<std::uint64_t> blocks;
  struct Part {
    int process = 0;
    std::uint32_t number = 0;
    Box box;
  };
  std::vector<Part> parts;
};

/// What a steward tells a receiver: who sends part of a want.
struct PartRecord {
  std::uint32_t number = 0;
  std::uint32_t want = 0;
  Box stored;
  Box box;
  std::vector<int> readers;
};

// One behind the other in a message. To get one throws Error{io} if that is damaged.
void put(comm::Packer& packer, const Homed<Row>& rows);
void put(comm::Packer& packer, const Homed<Request>& requests);
void put(comm::Packer& packer, const Match& match);
void put(comm::Packer& packer, const OrderRecord& order);
void put(comm::Packer& packer, const PartRecord& part);
void put(comm::Packer& packer, const UnknownName& name);

/// Takes rows and requests from the process `from` into the directory.
void take_homed(comm::Unpacker& unpacker, int from, Directory& directory);
[[nodiscard]] Match get_match(comm::Unpacker& unpacker, int steward);
[[nodiscard]] OrderRecord get_order(comm::Unpacker& unpacker);
[[nodiscard]] PartRecord get_part(comm::Unpacker& unpacker);
[[nodiscard]] UnknownName get_unknown_name(comm::Unpacker& unpacker);

}  // namespace kedge::arrays
