#include "recovery/execute_orders.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/attempt.hpp"
#include "base/keep_forever.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "comm/channels.hpp"
#include "comm/window.hpp"
#include "format/container_reader.hpp"
#include "store/verify_file.hpp"

namespace kedge::recovery {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{256} << 10U;
constexpr std::uint64_t kDepth = 4;

/// A move on this process: sends from `source` or writes to `draft`; both are null after a failure.
struct Lane {
  MoveOrder move;
  store::StoreFile* source = nullptr;
  store::UnsealedFile* draft = nullptr;
  std::uint32_t crc = 0;                        ///< of the written bytes
  std::vector<std::vector<std::byte>> buffers;  ///< kDepth pieces

  [[nodiscard]] std::uint64_t steps() const { return (move.size_bytes + kPieceBytes - 1) / kPieceBytes; }
};

/// CRC32C of the whole file, from checksums that it contains; nothing if they do not cover all bytes.
std::optional<std::uint32_t> crc_by_head(store::UnsealedFile& draft, const store::VerifiedFile& found) {
  if (found.superblock) {
    return format::ContainerReader(draft, found.superblock->file_size, draft.file().path()).file_crc();
  }
  if (found.kind != store::FileKind::parity) return std::nullopt;
  return crc32c_combine(crc32c(draft.head()), found.set_descriptor->parity_crc, found.set_descriptor->parity_bytes);
}

class Relocation {
 public:
  Relocation(const comm::Group& group, store::NodeStore& store, std::span<const MoveOrder> moves, bool durable)
      : group_(group), communicator_(group.communicator()), moves_(moves), sealing_(group, store, durable) {}

  void run() {
    std::vector<store::PlannedFile> planned;
    for (const MoveOrder& move : moves_) {
      if (!sends(move)) planned.push_back({move.kind, move.size_bytes});
    }
    comm::throw_if(sealing_.begin_on_all_ranks(planned, [&] { begin(); }));
    transfer();
    if (!failure_) failure_ = attempt([&] { check(); });
    comm::throw_if(sealing_.seal(failure_));
  }

 private:
  [[nodiscard]] bool sends(const MoveOrder& move) const { return move.from == group_.rank(); }

  void begin() {
    for (const MoveOrder& move : moves_) {
      Lane lane;
      lane.move = move;
      if (sends(move)) lane.source = &sealing_.pin(move.kind, move.logical_rank, move.key);
      else lane.draft = &sealing_.begin_file(move.kind, move.key, move.generation, move.size_bytes);
      lane.buffers.resize(kDepth, std::vector<std::byte>(std::min(kPieceBytes, move.size_bytes)));
      lanes_->push_back(std::move(lane));
    }
  }

  /// Advances all moves together, piece by piece: a process sends and receives at the same time, and a ring of moves
  /// does not become a chain.
  void transfer() {
    std::uint64_t steps = 0;
    for (const Lane& lane : *lanes_) steps = std::max(steps, lane.steps());
    try {
      comm::run_window(
          steps, kDepth, [&](std::uint64_t step) { post(step); }, [&](std::uint64_t step) { complete(step); });
    } catch (const Error&) {
      // Messages may still arrive in these buffers, so they are never freed, as the communicator requires.
      keep_forever(lanes_);
      keep_forever(requests_);
      throw;
    }
  }

  [[nodiscard]] static std::span<std::byte> piece(Lane& lane, std::uint64_t step) {
    const std::uint64_t begin = step * kPieceBytes;
    return std::span(lane.buffers[step % kDepth]).first(std::min(kPieceBytes, lane.move.size_bytes - begin));
  }

  void post(std::uint64_t step) {
    auto& requests = (*requests_)[step % kDepth];
    for (Lane& lane : *lanes_) {
      if (step >= lane.steps()) continue;
      const std::span<std::byte> bytes = piece(lane, step);
      if (!sends(lane.move)) {
        requests.push_back(communicator_.receive(lane.move.from, comm::channel::kRelocate, bytes));
        continue;
      }
      // After a read error the piece is sent anyway: the other side waits for it, and the vote reports the failure.
      remember(attempt([&] { lane.source->bytes().read(step * kPieceBytes, bytes); }));
      requests.push_back(communicator_.send(lane.move.to, comm::channel::kRelocate, bytes));
    }
  }

  void complete(std::uint64_t step) {
    auto& requests = (*requests_)[step % kDepth];
    communicator_.wait(requests, group_.deadline());
    requests.clear();
    for (Lane& lane : *lanes_) {
      if (step >= lane.steps() || lane.draft == nullptr) continue;
      remember(
          attempt([&] { lane.crc = lane.draft->write_with_crc(step * kPieceBytes, piece(lane, step), lane.crc); }));
    }
  }

  void remember(std::optional<Failure> failure) {
    if (failure && !failure_) failure_ = std::move(failure);
  }

  /// Verifies the received file. If its checksum differs from the one in its head, reads all of it to find the damage.
  void check() {
    for (Lane& lane : *lanes_) {
      if (lane.draft == nullptr) continue;
      const MoveOrder& move = lane.move;
      store::ExpectedFile expected;
      expected.kind = move.kind;
      expected.logical_rank = move.logical_rank;
      expected.key = move.key;
      expected.generation = move.generation;
      const std::string& path = lane.draft->file().path();
      const auto found = store::require_intact_file(*lane.draft, move.size_bytes, path, expected, Verify::headers);
      if (crc_by_head(*lane.draft, found) == lane.crc) continue;
      (void)store::require_intact_file(*lane.draft, move.size_bytes, path, expected, Verify::all);
    }
  }

  using Requests = std::vector<std::vector<Communicator::Request>>;

  const comm::Group& group_;
  Communicator& communicator_;
  std::span<const MoveOrder> moves_;
  store::SealTransaction sealing_;
  std::shared_ptr<std::vector<Lane>> lanes_ = std::make_shared<std::vector<Lane>>();
  std::shared_ptr<Requests> requests_ = std::make_shared<Requests>(kDepth);
  std::optional<Failure> failure_;
};

}  // namespace

void relocate(const comm::Group& group, store::NodeStore& store, std::span<const MoveOrder> moves,
              const RecoverySettings& settings, Recovered& recovered) {
  if (!group.any(!moves.empty())) return;
  Relocation(group, store, moves, settings.durable).run();
  for (const MoveOrder& move : moves) {
    if (move.kind != store::FileKind::container || move.to != group.rank()) continue;
    recovered.source = RecoverySource::moved;
    recovered.container_bytes = move.size_bytes;
    recovered.summary =
        compose("rank {}: container moved here from the node of rank {}", move.logical_rank.value, move.from);
  }
}

}  // namespace kedge::recovery
