#include "arrays/plan_records.hpp"

#include <string_view>
#include <utility>

namespace kedge::arrays {
namespace {

/// A message has rows and requests, each behind a word that says which.
enum class ToHome : std::uint8_t { rows, requests };

/// So many follow.
template <class Items>
void put_count(comm::Packer& packer, const Items& items) {
  packer.put(static_cast<std::uint64_t>(items.size()));
}

template <class Get>
void get_each(comm::Unpacker& unpacker, Get&& get) {
  for (auto left = unpacker.get<std::uint64_t>(); left > 0; --left) get();
}

void put_box(comm::Packer& packer, const Box& box) {
  packer.put(offset_of(box));
  packer.put(shape_of(box));
}

Box get_box(comm::Unpacker& unpacker) {
  const Shape offset = unpacker.get_shape();
  const Shape shape = unpacker.get_shape();
  if (offset.dimensions() != shape.dimensions()) {
    throw Error(ErrorCode::io, "a message between ranks was damaged on its way; check the network");
  }
  return box_at(offset, shape);
}

void put_type(comm::Packer& packer, const ArrayType& type) {
  packer.put(type.dtype, kLastDataType);
  packer.put(std::string_view(type.members));
  packer.put(type.shape);
}

ArrayType get_type(comm::Unpacker& unpacker) {
  ArrayType type;
  type.dtype = unpacker.get_enum(kLastDataType, DataType::int8);
  type.members = unpacker.get_text();
  type.shape = unpacker.get_shape();
  return type;
}

void put_head(comm::Packer& packer, ToHome what, const HomedKey& key, const ArrayType& type) {
  packer.put(what, ToHome::requests);
  packer.put(key.look_up, kLastLookUp);
  packer.put(key.tile);
  packer.put(std::string_view(key.name));
  put_type(packer, type);
}

}  // namespace

void put(comm::Packer& packer, const Homed<Row>& rows) {
  put_head(packer, ToHome::rows, rows.key, rows.type);
  put_count(packer, rows.items);
  for (const Row& row : rows.items) {
    packer.put(row.offer);
    packer.put(row.logical_rank);
    packer.put(row.is_in_store);
    put_box(packer, row.box);
  }
}

void put(comm::Packer& packer, const Homed<Request>& requests) {
  put_head(packer, ToHome::requests, requests.key, requests.type);
  put_count(packer, requests.items);
  for (const Request& request : requests.items) {
    packer.put(request.want);
    packer.put(request.logical_rank);
    put_box(packer, request.box);
  }
}

void take_homed(comm::Unpacker& unpacker, int from, Directory& directory) {
  const auto what = unpacker.get_enum(ToHome::requests);
  HomedKey key;
  key.look_up = unpacker.get_enum(kLastLookUp);
  key.tile = unpacker.get<std::uint64_t>();
  key.name = unpacker.get_text();
  const ArrayType type = get_type(unpacker);
  get_each(unpacker, [&] {
    if (what == ToHome::rows) {
      Row row;
      row.steward = from;
      row.offer = unpacker.get<std::uint32_t>();
      row.logical_rank = unpacker.get<std::uint32_t>();
      row.is_in_store = unpacker.get_bool();
      row.box = get_box(unpacker);
      directory.add(key, type, row);
    } else {
      Request request;
      request.process = from;
      request.want = unpacker.get<std::uint32_t>();
      request.logical_rank = unpacker.get<std::uint32_t>();
      request.box = get_box(unpacker);
      directory.ask(key, type, request);
    }
  });
}

void put(comm::Packer& packer, const Match& match) {
  packer.put(match.offer);
  packer.put(match.process);
  packer.put(match.want);
  put_box(packer, match.box);
}

Match get_match(comm::Unpacker& unpacker, int steward) {
  Match match;
  match.steward = steward;
  match.offer = unpacker.get<std::uint32_t>();
  match.process = unpacker.get<int>();
  match.want = unpacker.get<std::uint32_t>();
  match.box = get_box(unpacker);
  return match;
}

void put(comm::Packer& packer, const OrderRecord& order) {
  packer.put(std::string_view(order.name));
  packer.put(order.logical_rank);
  packer.put(order.offer);
  packer.put(order.is_in_store);
  packer.put(order.element_bytes);
  put_box(packer, order.stored);
  put_count(packer, order.blocks);
  for (const std::uint64_t block : order.blocks) packer.put(block);
  put_count(packer, order.parts);
  for (const OrderRecord::Part& part : order.parts) {
    packer.put(part.process);
    packer.put(part.number);
    put_box(packer, part.box);
  }
}

OrderRecord get_order(comm::Unpacker& unpacker) {
  OrderRecord order;
  order.name = unpacker.get_text();
  order.logical_rank = unpacker.get<std::uint32_t>();
  order.offer = unpacker.get<std::uint32_t>();
  order.is_in_store = unpacker.get_bool();
  order.element_bytes = unpacker.get<std::uint64_t>();
  order.stored = get_box(unpacker);
  get_each(unpacker, [&] { order.blocks.push_back(unpacker.get<std::uint64_t>()); });
  get_each(unpacker, [&] {
    OrderRecord::Part part;
    part.process = unpacker.get<int>();
    part.number = unpacker.get<std::uint32_t>();
    part.box = get_box(unpacker);
    order.parts.push_back(part);
  });
  return order;
}

void put(comm::Packer& packer, const PartRecord& part) {
  packer.put(part.number);
  packer.put(part.want);
  put_box(packer, part.stored);
  put_box(packer, part.box);
  put_count(packer, part.readers);
  for (const int reader : part.readers) packer.put(reader);
}

PartRecord get_part(comm::Unpacker& unpacker) {
  PartRecord part;
  part.number = unpacker.get<std::uint32_t>();
  part.want = unpacker.get<std::uint32_t>();
  part.stored = get_box(unpacker);
  part.box = get_box(unpacker);
  get_each(unpacker, [&] { part.readers.push_back(unpacker.get<int>()); });
  return part;
}

void put(comm::Packer& packer, const UnknownName& name) {
  packer.put(name.look_up, kLastLookUp);
  packer.put(std::string_view(name.name));
  put_type(packer, name.type);
}

UnknownName get_unknown_name(comm::Unpacker& unpacker) {
  UnknownName name;
  name.look_up = unpacker.get_enum(kLastLookUp);
  name.name = unpacker.get_text();
  name.type = get_type(unpacker);
  return name;
}

}  // namespace kedge::arrays
