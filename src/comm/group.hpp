// A group of ranks that decide together; every collective step above this room uses one.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/invariant.hpp"
#include "comm/vote.hpp"
#include "kedge/communicator.hpp"
#include "kedge/error.hpp"
#include "kedge/types.hpp"

namespace kedge::comm {

/// A record that is sent to a peer, or came from one.
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

/// All ranks of a communicator, and how long they wait for each other. A value: copies share the communicator. All
/// calls but the first few are COLLECTIVE, and throw Error{timeout} when a rank does not answer in time: after that the
/// communicator must not be used again.
class Group {
 public:
  using Seconds = std::chrono::duration<double>;

  /// `timeout` is for each collective call. The communicator must be connected before the first of them.
  Group(std::shared_ptr<Communicator> communicator, Seconds timeout)
      : communicator_(std::move(communicator)), timeout_(timeout) {}
  /// Does not own the communicator, which must outlive all copies.
  Group(Communicator& communicator, Seconds timeout)
      : Group(std::shared_ptr<Communicator>(std::shared_ptr<void>(), &communicator), timeout) {}

  /// Returns a group of the same ranks with another timeout, for a step in which one rank may be busy for longer.
  [[nodiscard]] Group with_timeout(Seconds timeout) const { return {communicator_, timeout}; }
  /// COLLECTIVE. Returns a group of the same ranks over a channel of its own, so that another thread can use it.
  [[nodiscard]] Group duplicate() const { return {communicator_->duplicate(deadline()), timeout_}; }

  [[nodiscard]] int rank() const noexcept { return communicator_->rank(); }
  [[nodiscard]] int size() const noexcept { return communicator_->size(); }
  [[nodiscard]] bool is_root() const noexcept { return rank() == 0; }
  /// Returns the logical rank whose container this process has; there are as many processes as logical ranks.
  [[nodiscard]] LogicalRank logical_rank() const noexcept { return {static_cast<std::uint32_t>(rank())}; }
  /// Returns the number of ranks, as commits record it.
  [[nodiscard]] std::uint32_t world_size() const noexcept { return static_cast<std::uint32_t>(size()); }
  [[nodiscard]] Seconds timeout() const noexcept { return timeout_; }
  /// Returns the time, counted from now, at which a call times out.
  [[nodiscard]] Deadline deadline() const { return Deadline::after(timeout_); }
  /// Returns the communicator, for messages from rank to rank (channels.hpp).
  [[nodiscard]] Communicator& communicator() const noexcept { return *communicator_; }

  // One outcome on all ranks.

  /// Runs what ranks do together. An exception that is not an Error was seen by no vote: this rank then leaves the
  /// others, and all get Error{rank_failed} with one text.
  template <class Body>
  auto run_or_leave(Body&& body) const {
    try {
      return std::forward<Body>(body)();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(leave_with_failure(error));
    }
  }
  /// Returns the failure of the lowest rank that has one, alike on all ranks; nothing if no rank has one.
  [[nodiscard]] std::optional<Failure> vote(const std::optional<Failure>& local) const {
    return comm::vote(*communicator_, local, deadline());
  }
  /// Votes as vote() does, and returns whether any rank asks for what this step is about.
  [[nodiscard]] VoteResult vote_with_request(const std::optional<Failure>& local, bool asks) const {
    return comm::vote_with_request(*communicator_, local, asks, deadline());
  }
  /// Runs a step that must not communicate on each rank. Returns the failure of the lowest rank, alike on all ranks.
  template <class Step>
  [[nodiscard]] std::optional<Failure> try_on_all_ranks(Step&& step) const {
    return vote(attempt(std::forward<Step>(step)));
  }
  /// Runs a step as try_on_all_ranks() does, and throws its failure on all ranks.
  template <class Step>
  void run_on_all_ranks(Step&& step) const {
    throw_if(try_on_all_ranks(std::forward<Step>(step)));
  }
  /// Rank 0 alone runs the step; all ranks get what it returned, or its failure. `value` is unchanged by a failure.
  template <class Value, class Step>
  [[nodiscard]] std::optional<Failure> try_decide_on_root(Value& value, Step&& step) const {
    Value decided{};
    auto failure = try_on_all_ranks([&] {
      if (is_root()) decided = std::forward<Step>(step)();
    });
    if (failure) return failure;
    broadcast(decided);
    value = std::move(decided);
    return std::nullopt;
  }
  /// Runs the step on rank 0 as try_decide_on_root() does; returns the value, or throws the failure.
  template <class Step>
  [[nodiscard]] auto decide_on_root(Step&& step) const {
    std::invoke_result_t<Step> value{};
    throw_if(try_decide_on_root(value, std::forward<Step>(step)));
    return value;
  }

  // One value on all ranks.

  [[nodiscard]] bool any(bool local) const { return max(local ? 1 : 0) != 0; }
  [[nodiscard]] bool all(bool local) const { return !any(!local); }
  [[nodiscard]] std::uint64_t max(std::uint64_t local) const;
  [[nodiscard]] std::uint64_t min(std::uint64_t local) const;
  /// Returns the sum modulo 2^64.
  [[nodiscard]] std::uint64_t sum(std::uint64_t local) const;
  template <std::size_t count>
  [[nodiscard]] std::array<std::uint64_t, count> sum(std::array<std::uint64_t, count> local) const {
    reduce(local, Reduction::sum);
    return local;
  }
  /// Returns the bits that are set on any rank.
  template <std::size_t count>
  [[nodiscard]] std::array<std::uint64_t, count> bit_or(std::array<std::uint64_t, count> local) const {
    reduce(local, Reduction::bit_or);
    return local;
  }
  /// Returns the lowest rank for which `local` is true; nothing if there is none.
  [[nodiscard]] std::optional<int> lowest_rank_with(bool local) const;

  /// Replaces `value` by that of rank `from`.
  template <class Value>
  requires std::is_trivially_copyable_v<Value>
  void broadcast(Value& value, int from = 0) const {
    communicator_->broadcast(std::as_writable_bytes(std::span(&value, 1)), from, deadline());
  }
  /// Replaces `values`, of whatever length, by those of rank `from`.
  template <class Value>
  void broadcast(std::vector<Value>& values, int from = 0) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    values.resize(broadcast_length(values.size(), from));
    if (!values.empty()) communicator_->broadcast(std::as_writable_bytes(std::span(values)), from, deadline());
  }
  void broadcast(std::string& text, int from = 0) const;
  /// Returns the text of the lowest rank that has one, on all ranks; empty if none has.
  [[nodiscard]] std::string text_of_lowest_rank(const std::optional<std::string>& local) const;

  /// Delivers each record to its peer; what came for this rank, ordered by sender.
  template <class Record>
  [[nodiscard]] std::vector<Addressed<Record>> exchange(const std::vector<Addressed<Record>>& records) const {
    return exchange_records(*communicator_, records, deadline());
  }
  /// Delivers messages of any length; returns those for this rank, ordered by sender.
  [[nodiscard]] std::vector<Communicator::Message> exchange(std::vector<Communicator::Message> messages) const {
    return communicator_->sparse_exchange(std::move(messages), deadline());
  }
  /// Runs comm::first_difference over this group.
  [[nodiscard]] std::optional<Difference> first_difference(std::span<const std::uint64_t> values) const {
    return comm::first_difference(*communicator_, values, deadline());
  }
  /// Runs comm::agree_on_call over this group.
  std::uint64_t agree_on_call(const CallId& call, const std::optional<Failure>& local, CallName name) const {
    communicator_->begin_call();
    return comm::agree_on_call(*communicator_, call, local, name, deadline());
  }

 private:
  void reduce(std::span<std::uint64_t> values, Reduction reduction) const;
  [[nodiscard]] std::uint64_t broadcast_length(std::uint64_t local, int from) const;
  [[nodiscard]] Failure leave_with_failure(const std::exception& error) const;

  std::shared_ptr<Communicator> communicator_;
  Seconds timeout_;
};

}  // namespace kedge::comm
