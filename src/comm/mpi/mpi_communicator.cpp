#include "comm/mpi/mpi_communicator.hpp"

#include <algorithm>
#include <climits>
#include <utility>

#include "base/options_load.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/mpi/mpi_exchange.hpp"
#include "comm/mpi/mpi_launcher.hpp"
#include "comm/mpi/mpi_library.hpp"
#include "comm/mpi/mpi_transfer.hpp"
#include "comm/tree_collectives.hpp"
#include "kedge/mpi.hpp"

namespace kedge::comm {
namespace {

static_assert(kChannelLimit <= 32767, "the MPI standard promises tags up to 32767 only");

/// Added to unsigned values it keeps their order among signed ones.
constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63U;

/// MPICH compares unsigned values as signed ones (pmodels/mpich 6083), and Open MPI those of MPI_UNSIGNED_LONG: in
/// these reductions MPI gets signed ones.
bool is_comparison(Reduction reduction) { return reduction == Reduction::min || reduction == Reduction::max; }

MPI_Op mpi_op(Reduction reduction) {
  switch (reduction) {
    case Reduction::min: return MPI_MIN;
    case Reduction::max: return MPI_MAX;
    case Reduction::sum: return MPI_SUM;
    case Reduction::bit_or: return MPI_BOR;
    case Reduction::bit_and: return MPI_BAND;
  }
  return MPI_OP_NULL;
}

ThreadSupport query_thread_support() {
  int provided = MPI_THREAD_SINGLE;
  check_local_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  if (provided == MPI_THREAD_MULTIPLE) return ThreadSupport::multiple;
  if (provided == MPI_THREAD_SERIALIZED) return ThreadSupport::serialized;
  if (provided == MPI_THREAD_FUNNELED) return ThreadSupport::funneled;
  return ThreadSupport::single;
}

/// The name somebody gave the communicator. Open MPI names derived ones itself, by numbers that differ from
/// start to start, e.g. "MPI COMMUNICATOR 3 SPLIT FROM 0"; that is no name.
std::string given_name(MPI_Comm comm) {
  std::string name(MPI_MAX_OBJECT_NAME, '\0');
  int length = 0;
  check_local_mpi(MPI_Comm_get_name(comm, name.data(), &length), "MPI_Comm_get_name");
  name.resize(static_cast<std::size_t>(length));
  return name.starts_with("MPI COMMUNICATOR ") ? std::string() : name;
}

void check_can_communicate(MPI_Comm comm) {
  int initialized = 0;
  int finalized = 0;
  check_local_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  check_local_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  if (initialized == 0)
    throw Error(ErrorCode::bad_state, "MPI is not initialized; call MPI_Init before the engine is made");
  if (finalized != 0) throw Error(ErrorCode::bad_state, "MPI is finalized; make the engine before MPI_Finalize");
  if (comm == MPI_COMM_NULL) {
    throw Error(ErrorCode::invalid_argument,
                "the communicator is MPI_COMM_NULL; create the engine only on ranks that belong to the communicator");
  }
  int inter = 0;
  check_local_mpi(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter");
  if (inter != 0) {
    throw Error(ErrorCode::invalid_argument,
                "the communicator is an inter-communicator; merge it first (MPI_Intercomm_merge)");
  }
}

int mpi_rank(MPI_Comm comm) {
  check_can_communicate(comm);
  int rank = 0;
  check_local_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}

int mpi_size(MPI_Comm comm) {
  check_can_communicate(comm);
  int size = 0;
  check_local_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

/// Memory of a collective call, on the heap, so that it can outlive a wait that timed out.
template <class Value>
struct PendingValue {
  std::vector<Value> values;
  MPI_Request request = MPI_REQUEST_NULL;
};

/// Polls it; false if the deadline passed. It is leaked then, and where MPI or `check` fails: MPI may still write
/// there.
template <class Value, class Check>
[[nodiscard]] bool wait_for_pending(std::unique_ptr<PendingValue<Value>>& pending, Deadline deadline, Check&& check) {
  try {
    const auto is_done = [&] {
      check();
      return test_mpi(pending->request);
    };
    if (poll_until(is_done, deadline)) return true;
  } catch (...) {
    static_cast<void>(pending.release());
    throw;
  }
  static_cast<void>(pending.release());
  return false;
}

std::string join_ranks(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += compose("{}{}", text.empty() ? "" : ", ", rank);
  return text;
}

}  // namespace

MpiCommunicator::MpiCommunicator(MPI_Comm comm, MpiLimits limits)
    : CheckedCommunicator(mpi_rank(comm), mpi_size(comm)), source_comm_(comm), limits_(limits) {
  limits_.piece_bytes = std::clamp<std::size_t>(limits_.piece_bytes, 1, INT_MAX);
  name_ = given_name(comm);
  thread_support_ = query_thread_support();
}

MpiCommunicator::~MpiCommunicator() {
  if (finalize_key_ == MPI_KEYVAL_INVALID) return;
  int finalized = 0;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
  (void)MPI_Comm_delete_attr(MPI_COMM_SELF, finalize_key_);
  (void)MPI_Comm_free_keyval(&finalize_key_);
}

void MpiCommunicator::interrupt() noexcept {
  set_interrupted();
  const std::lock_guard lock(mpi_mutex_);  // whoever polls sees it, and leaves
}

/// MPI_Finalize begins by deleting what is attached to MPI_COMM_SELF: another thread's calls must be over by then.
void MpiCommunicator::interrupt_at_finalize() {
  const auto deleted = [](MPI_Comm /*self*/, int /*key*/, void* communicator, void* /*extra*/) {
    static_cast<MpiCommunicator*>(communicator)->interrupt();
    return MPI_SUCCESS;
  };
  check_local_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &finalize_key_, nullptr),
                  "MPI_Comm_create_keyval");
  check_local_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, finalize_key_, this), "MPI_Comm_set_attr");
}

void MpiCommunicator::leave(std::string_view why) noexcept { send_notice(failure_notice_, why, 0); }

/// Where it timed out in a call, others may be in that one.
void MpiCommunicator::depart(std::string_view why) noexcept {
  send_notice(departure_notice_, why, has_ended() ? call_number_ : call_number_ + 1);
}

void MpiCommunicator::send_notice(MpiLeaveNotice& notice, std::string_view why, std::uint64_t from_call) noexcept {
  const std::lock_guard lock(mpi_mutex_);
  int finalized = 0;
  if (MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0) return;
  if (comm_ != MPI_COMM_NULL) notice.send_notice({comm_, rank(), size()}, why, from_call);
  set_ended();
}

void MpiCommunicator::poll_notice() {
  auto why = failure_notice_.poll_notice({comm_, rank(), size()}, call_number_);
  if (!why) why = departure_notice_.poll_notice({comm_, rank(), size()}, call_number_);
  if (!why) return;
  set_ended();
  throw Error(ErrorCode::rank_failed, *why);
}

template <class Body>
auto MpiCommunicator::communicate(Body&& body) {
  const std::lock_guard lock(mpi_mutex_);
  require_usable();
  try {
    return body([this] {
      require_usable();
      poll_notice();
    });
  } catch (const MpiError& failed) {
    set_ended();
    const auto ranks = comm_ == MPI_COMM_NULL ? std::vector<int>() : failed_ranks(comm_);
    if (ranks.empty()) throw;
    throw Error(ErrorCode::rank_failed,
                compose("{} {} died: {}; start the job again", ranks.size() == 1 ? "rank" : "ranks", join_ranks(ranks),
                        failed.failure_text()));
  }
}

void MpiCommunicator::connect(Deadline deadline) {
  require_unconnected();
  if (has_ended()) require_usable();
  auto duplicate = std::make_unique<PendingValue<MPI_Comm>>();
  duplicate->values.assign(1, MPI_COMM_NULL);
  check_mpi(MPI_Comm_idup(source_comm_, duplicate->values.data(), &duplicate->request), "MPI_Comm_idup");
  if (!wait_for_pending(duplicate, deadline, [] {})) throw_not_all_connected(deadline);
  comm_ = duplicate->values.front();
  set_connected();
  check_local_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

/// Not all ranks of the application's communicator came to create their engine.
void MpiCommunicator::throw_not_all_connected(Deadline deadline) {
  set_ended();
  int relation = MPI_UNEQUAL;
  check_local_mpi(MPI_Comm_compare(source_comm_, MPI_COMM_WORLD, &relation), "MPI_Comm_compare");
  const bool is_world = relation == MPI_IDENT || relation == MPI_CONGRUENT;
  const std::string others = is_world ? ranks_of_other_programs(rank(), size(), process_variable) : "";
  Failure failure = timeout_error(rank(), describe_ranks_in_call("MPI_Comm_idup"), deadline).failure();
  failure.message += compose(
      "; {}all ranks of the communicator must create the engine: in a launch of several programs, give it a "
      "communicator of those that do (MPI_Comm_split)",
      others.empty() ? "" : others + " were started as another program, and ");
  throw Error(std::move(failure));
}

std::string MpiCommunicator::library() const { return mpi_library(); }

std::string MpiCommunicator::start_warning() const {
  int world_size = 0;
  check_local_mpi(MPI_Comm_size(MPI_COMM_WORLD, &world_size), "MPI_Comm_size");
  return launcher_warning(world_size, process_variable, mpi_library()).value_or("");
}

std::unique_ptr<Communicator> MpiCommunicator::duplicate(Deadline deadline) {
  require_usable();
  auto copy = std::make_unique<MpiCommunicator>(comm_, limits_);
  copy->name_ = name_;
  try {
    copy->connect(deadline);
    copy->interrupt_at_finalize();
  } catch (const Error&) {
    set_ended();  // MPI may still work on this one for it
    throw;
  }
  return copy;
}

Communicator::Request MpiCommunicator::send(int to, int channel, std::span<const std::byte> bytes) {
  return start_transfer(to, channel, bytes);
}

Communicator::Request MpiCommunicator::receive(int from, int channel, std::span<std::byte> bytes) {
  return start_transfer(from, channel, bytes);
}

template <class Bytes>
Communicator::Request MpiCommunicator::start_transfer(int peer, int channel, Bytes bytes) {
  return communicate([&](const auto&) {
    require_peer_and_channel(peer, channel);
    auto transfer = std::make_unique<MpiTransfer>(peer, channel, bytes);
    transfer->start(comm_, limits_.piece_bytes);
    return Request(std::move(transfer));
  });
}

bool MpiCommunicator::test(Request& request) {
  return communicate([&](const auto&) {
    if (request != nullptr && static_cast<MpiTransfer&>(*request).test()) request.reset();
    return request == nullptr;
  });
}

void MpiCommunicator::wait(std::span<Request> requests, Deadline deadline) {
  require_usable();
  const auto all_done = [&] {
    bool all = true;
    for (auto& request : requests) all = test(request) && all;
    if (!all) communicate([](const auto& go_on) { go_on(); });
    return all;
  };
  if (poll_until(all_done, deadline)) return;
  std::string whom;
  for (const auto& request : requests) {
    if (request == nullptr) continue;
    whom += compose("{}rank {}", whom.empty() ? "" : ", ", static_cast<const MpiTransfer&>(*request).peer());
  }
  throw_timeout(whom, deadline);
}

void MpiCommunicator::all_reduce(std::span<std::uint64_t> values, Reduction reduction, Deadline deadline,
                                 std::span<const int> group) {
  if (!group.empty()) return tree_all_reduce(*this, values, reduction, deadline, group);
  if (values.size() > INT_MAX) {
    throw Error(ErrorCode::invalid_argument,
                compose("all_reduce got {} values; pass at most {}", values.size(), INT_MAX));
  }
  communicate([&](const auto& go_on) {
    const std::uint64_t bias = is_comparison(reduction) ? kSignBit : 0;
    auto pending = std::make_unique<PendingValue<std::uint64_t>>();
    for (const std::uint64_t value : values) pending->values.push_back(value ^ bias);
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, pending->values.data(), static_cast<int>(values.size()),
                             is_comparison(reduction) ? MPI_INT64_T : MPI_UINT64_T, mpi_op(reduction), comm_,
                             &pending->request),
              "MPI_Iallreduce");
    if (!wait_for_pending(pending, deadline, go_on)) throw_timeout(describe_ranks_in_call("MPI_Iallreduce"), deadline);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = pending->values[i] ^ bias;
  });
}

void MpiCommunicator::broadcast(std::span<std::byte> bytes, int root, Deadline deadline, std::span<const int> group) {
  require_peer(root);
  if (!group.empty()) return tree_broadcast(*this, bytes, root, deadline, group);
  communicate([&](const auto& go_on) {
    for (std::size_t offset = 0; offset < bytes.size(); offset += limits_.piece_bytes) {
      const auto part = bytes.subspan(offset, std::min(limits_.piece_bytes, bytes.size() - offset));
      auto pending = std::make_unique<PendingValue<std::byte>>();
      if (rank() == root) pending->values.assign(part.begin(), part.end());
      else pending->values.resize(part.size());
      check_mpi(
          MPI_Ibcast(pending->values.data(), static_cast<int>(part.size()), MPI_BYTE, root, comm_, &pending->request),
          "MPI_Ibcast");
      if (!wait_for_pending(pending, deadline, go_on)) throw_timeout(describe_ranks_in_call("MPI_Ibcast"), deadline);
      std::copy(pending->values.begin(), pending->values.end(), part.begin());
    }
  });
}

void MpiCommunicator::barrier(Deadline deadline, std::span<const int> group) {
  if (!group.empty()) return tree_barrier(*this, deadline, group);
  communicate([&](const auto& go_on) {
    auto pending = std::make_unique<PendingValue<std::byte>>();
    check_mpi(MPI_Ibarrier(comm_, &pending->request), "MPI_Ibarrier");
    if (!wait_for_pending(pending, deadline, go_on)) throw_timeout(describe_ranks_in_call("MPI_Ibarrier"), deadline);
  });
}

std::vector<Communicator::Message> MpiCommunicator::sparse_exchange(std::vector<Message> messages, Deadline deadline) {
  for (const auto& message : messages) require_peer(message.peer);
  return communicate([&](const auto& go_on) {
    is_odd_exchange_ = !is_odd_exchange_;
    const int tag = is_odd_exchange_ ? kExchangeChannelOdd : kExchangeChannel;
    auto exchange = std::make_unique<MpiExchange>(comm_, tag, std::move(messages), limits_.piece_bytes);
    try {
      exchange->start();
      const auto is_done = [&] {
        go_on();
        return exchange->test();
      };
      if (poll_until(is_done, deadline)) return exchange->take_messages();
    } catch (...) {
      static_cast<void>(exchange.release());  // MPI still works on it
      throw;
    }
    const auto whom = exchange->describe_awaited_ranks();
    static_cast<void>(exchange.release());
    throw_timeout(whom, deadline);
  });
}

std::string MpiCommunicator::describe_ranks_in_call(std::string_view call) const {
  return compose("at least one of ranks 0 to {} (in {})", size() - 1, call);
}

}  // namespace kedge::comm

namespace kedge {
inline namespace KEDGE_MPI_FAMILY {

std::unique_ptr<Communicator> mpi(MPI_Comm comm) { return std::make_unique<comm::MpiCommunicator>(comm); }

}  // namespace KEDGE_MPI_FAMILY
}  // namespace kedge
