// Sparse exchange of small fixed-size records: what processes tell each other's homes.
#pragma once

#include <cstring>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/invariant.hpp"
#include "kedge/communicator.hpp"

namespace kedge::comm {

/// A record to or from a peer.
template <class Record>
struct Addressed {
  int peer = 0;
  Record record;
};

/// COLLECTIVE. Delivers the records, this rank's to itself included; what came for this rank, ordered by sender, those
/// of one sender in order. One message for each pair of ranks that have something to tell.
template <class Record>
[[nodiscard]] std::vector<Addressed<Record>> exchange_records(Communicator& communicator,
                                                              const std::vector<Addressed<Record>>& records,
                                                              Deadline deadline) {
  static_assert(std::is_trivially_copyable_v<Record>, "on the wire between processes of one job, never stored");
  std::map<int, std::vector<std::byte>> by_peer;
  for (const Addressed<Record>& one : records) {
    const auto bytes = std::as_bytes(std::span(&one.record, 1));
    auto& message = by_peer[one.peer];
    message.insert(message.end(), bytes.begin(), bytes.end());
  }
  std::vector<Communicator::Message> messages;
  messages.reserve(by_peer.size());
  for (auto& [peer, bytes] : by_peer) messages.push_back({peer, std::move(bytes)});
  std::vector<Addressed<Record>> arrived;
  for (const auto& message : communicator.sparse_exchange(std::move(messages), deadline)) {
    invariant(message.bytes.size() % sizeof(Record) == 0, "a message of records holds whole ones");
    for (std::size_t at = 0; at + sizeof(Record) <= message.bytes.size(); at += sizeof(Record)) {
      Addressed<Record> one{message.peer, Record{}};
      std::memcpy(&one.record, message.bytes.data() + at, sizeof(Record));
      arrived.push_back(one);
    }
  }
  return arrived;
}

}  // namespace kedge::comm
