#include "recovery/agreement.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/text.hpp"

namespace kedge::recovery {
namespace {

constexpr std::uint64_t kNobody = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kTextBytes = 512;

/// Order of candidates: newest first.
using Key = std::tuple<std::uint64_t, Id128>;

/// On the wire between processes of one job, never stored.
struct HomeRecord {
  std::uint64_t generation = 0;
  Id128 commit_id;
  std::uint32_t logical_rank = 0;
  std::uint32_t world_size = 0;
  std::uint64_t size_bytes = 0;
};
static_assert(std::is_trivially_copyable_v<HomeRecord>);

struct CandidateRecord {
  std::uint64_t generation = 0;
  Id128 commit_id;
  Id128 parent_commit_id;
  std::uint64_t incarnation = 0;
  std::int64_t time_ns = 0;
  std::uint32_t world_size = 0;
  std::array<char, 132> tag{};
};
static_assert(std::is_trivially_copyable_v<CandidateRecord>);

template <class Value>
std::span<std::byte> bytes_of(Value& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

template <std::size_t size>
std::string text_of(const std::array<char, size>& characters) {
  return {characters.data(), strnlen(characters.data(), size)};
}

template <std::size_t size>
void set_text(std::array<char, size>& characters, std::string_view text) {
  characters.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), size - 1), characters.begin());
}

class Surveyor {
 public:
  Surveyor(Communicator& communicator, std::span<const Holding> mine, const Shelf& shelf, Deadline deadline)
      : communicator_(communicator), mine_(mine), shelf_(shelf), deadline_(deadline) {}

  Survey run() {
    tell_homes();
    Survey result;
    result.processes = static_cast<std::uint32_t>(processes());
    std::set<Key> done;
    while (find_newest_not_in(done)) {
      result.candidates.push_back(judge());
      done.emplace(result.candidates.back().generation, result.candidates.back().commit_id);
    }
    result.unreadable = text_from_lowest(!shelf_.unreadable.empty(), shelf_.unreadable);
    return result;
  }

 private:
  [[nodiscard]] std::uint64_t processes() const { return static_cast<std::uint64_t>(communicator_.size()); }
  [[nodiscard]] std::uint64_t me() const { return static_cast<std::uint64_t>(communicator_.rank()); }

  /// Damaged containers are not told: they count as missing.
  void tell_homes() {
    std::vector<Communicator::Message> messages;
    for (const Holding& holding : mine_) {
      if (!holding.intact) continue;
      HomeRecord record{holding.generation, holding.commit_id, holding.logical_rank.value, holding.world_size,
                        holding.size_bytes};
      Communicator::Message message;
      message.peer = static_cast<int>(holding.logical_rank.value % processes());
      const auto bytes = bytes_of(record);
      message.bytes.assign(bytes.begin(), bytes.end());
      messages.push_back(std::move(message));
    }
    for (const auto& message : communicator_.sparse_exchange(std::move(messages), deadline_)) {
      HomeRecord record{};
      std::memcpy(&record, message.bytes.data(), sizeof record);
      homed_.push_back(record);
    }
  }

  std::uint64_t reduce(std::uint64_t value, Reduction reduction) {
    communicator_.all_reduce(std::span(&value, 1), reduction, deadline_);
    return value;
  }

  /// True while any rank has a commit that was not judged yet; next_ is then the newest of mine, or null.
  bool find_newest_not_in(const std::set<Key>& done) {
    next_ = nullptr;
    for (const Holding& holding : mine_) {
      const Key key{holding.generation, holding.commit_id};
      if (done.contains(key)) continue;
      if (next_ == nullptr || key > Key{next_->generation, next_->commit_id}) next_ = &holding;
    }
    // 0 stands for nothing left; generations begin at 1.
    newest_generation_ = reduce(next_ == nullptr ? 0 : next_->generation, Reduction::max);
    return newest_generation_ != 0;
  }

  /// Among those of the newest generation the greatest commit id, so that the order of candidates does not
  /// depend on who holds what; the others of that generation come in later rounds.
  bool mine_is_next() {
    bool mine = next_ != nullptr && next_->generation == newest_generation_;
    for (const std::size_t half : {0U, 8U}) {
      std::uint64_t value = 0;
      for (std::size_t i = 0; mine && i < 8; ++i) value = value << 8U | next_->commit_id.bytes[half + i];
      mine = reduce(value, Reduction::max) == value && mine;
    }
    return mine;
  }

  /// The lowest rank that has the next candidate names it.
  Candidate judge() {
    const bool mine_is_newest = mine_is_next();
    const std::uint64_t speaker = reduce(mine_is_newest ? me() : kNobody, Reduction::min);
    CandidateRecord record{};
    if (next_ != nullptr && speaker == me()) {
      record = CandidateRecord{next_->generation,
                               next_->commit_id,
                               next_->parent_commit_id,
                               next_->incarnation,
                               next_->time_ns,
                               next_->world_size,
                               {}};
      set_text(record.tag, next_->tag);
    }
    communicator_.broadcast(bytes_of(record), static_cast<int>(speaker), deadline_);
    Candidate candidate{record.generation,
                        record.commit_id,
                        record.parent_commit_id,
                        record.incarnation,
                        record.world_size,
                        record.time_ns,
                        0,
                        text_of(record.tag),
                        false,
                        {}};
    count(candidate);
    return candidate;
  }

  void count(Candidate& candidate) {
    std::set<std::uint32_t> held;
    std::uint64_t bytes = 0;
    for (const HomeRecord& record : homed_) {
      if (record.commit_id != candidate.commit_id || record.generation != candidate.generation) continue;
      if (record.world_size != candidate.world_size || record.logical_rank >= candidate.world_size) continue;
      if (held.insert(record.logical_rank).second) bytes += record.size_bytes;
    }
    std::array<std::uint64_t, 2> sums = {held.size(), bytes};
    communicator_.all_reduce(sums, Reduction::sum, deadline_);
    candidate.total_bytes = sums[1];
    if (candidate.world_size != processes()) {
      candidate.reason = compose("it was saved by {} ranks and this job has {}; start it with {} ranks",
                                 candidate.world_size, processes(), candidate.world_size);
      return;
    }
    candidate.recoverable = sums[0] == candidate.world_size;
    if (!candidate.recoverable) explain(candidate, held);
  }

  void explain(Candidate& candidate, const std::set<std::uint32_t>& held) {
    std::uint64_t missing = kNobody;
    for (std::uint64_t rank = me(); rank < candidate.world_size; rank += processes()) {
      if (!held.contains(static_cast<std::uint32_t>(rank))) {
        missing = rank;
        break;
      }
    }
    missing = reduce(missing, Reduction::min);
    std::string damage;
    for (const Holding& holding : mine_) {
      const bool is_it = holding.commit_id == candidate.commit_id && holding.logical_rank.value == missing;
      if (is_it && !holding.intact) damage = holding.damage;
    }
    const std::string told = text_from_lowest(!damage.empty(), damage);
    candidate.reason = told.empty()
                           ? compose("the container of rank {} is missing: {}", missing, where_it_should_be(missing))
                           : compose("the container of rank {} is damaged: {}", missing, told);
  }

  /// What the process in the lost container's place found instead of it, on every rank.
  std::string where_it_should_be(std::uint64_t logical_rank) {
    return text_from_lowest(logical_rank % processes() == me(), shelf_.unreadable.empty()
                                                                    ? compose("it is not in {}", shelf_.folder)
                                                                    : compose("found instead: {}", shelf_.unreadable));
  }

  /// The text of the lowest rank that has one, on every rank; empty if none has.
  std::string text_from_lowest(bool have, const std::string& text) {
    const std::uint64_t speaker = reduce(have ? me() : kNobody, Reduction::min);
    if (speaker == kNobody) return {};
    std::array<char, kTextBytes> characters{};
    if (speaker == me()) set_text(characters, text);
    communicator_.broadcast(std::as_writable_bytes(std::span(characters)), static_cast<int>(speaker), deadline_);
    return text_of(characters);
  }

  Communicator& communicator_;
  std::span<const Holding> mine_;
  const Shelf& shelf_;
  Deadline deadline_;
  std::vector<HomeRecord> homed_;
  const Holding* next_ = nullptr;
  std::uint64_t newest_generation_ = 0;
};

}  // namespace

Survey survey(Communicator& communicator, std::span<const Holding> mine, const Shelf& shelf, Deadline deadline) {
  return Surveyor(communicator, mine, shelf, deadline).run();
}

}  // namespace kedge::recovery
