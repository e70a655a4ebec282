#include "start/sharing_check.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/attempt.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "persist/prefix_runs.hpp"
#include "start/full_prefix_advice.hpp"
#include "store/file_name.hpp"

namespace kedge::start {
namespace {

constexpr std::size_t kNonceCharacters = 32;

/// Nothing if the file is shorter than a nonce or holds something else.
std::optional<Id128> read_nonce(fs::FileSystem& file_system, const std::string& path) {
  const auto file = file_system.open(path, fs::Access::read);
  std::string text(kNonceCharacters, '\0');
  if (file->status().size_bytes < text.size()) return std::nullopt;
  file->read(0, std::as_writable_bytes(std::span(text)));
  return parse_id(text);
}

/// Local. By the name that this rank was given, not by rank 0's canonical one: that is what is to be proven.
void require_nonce(const CheckedStorage& prefix, int rank, const Id128& nonce) {
  const std::string path =
      fs::join(persist::records_directory(prefix.path, prefix.run.name), persist::nonce_name(prefix.run.incarnation));
  std::string_view seen = "sees another record than the one";
  try {
    if (read_nonce(prefix.file_system, path) == nonce) return;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    seen = "does not see the record";
  }
  refuse(ErrorCode::invalid_argument,
         compose("the prefix is not the same filesystem on rank {}, which {} that rank 0 wrote; set "
                 "persistent.path to a directory that all nodes share",
                 rank, seen),
         path);
}

/// A nonce in a store: an empty file nonce-<incarnation>-<rank>-<nonce>, which needs no space.
struct StoreNonce {
  std::string path;
  std::uint64_t incarnation = 0;
  int rank = 0;
  std::optional<Id128> nonce = {};
};

std::optional<StoreNonce> parse_store_nonce(const std::string& directory, const std::string& name) {
  if (!name.starts_with(store::kNoncePrefix)) return std::nullopt;
  StoreNonce nonce{fs::join(directory, name), 0, 0};
  const char* end = name.data() + name.size();
  const auto incarnation = std::from_chars(name.data() + store::kNoncePrefix.size(), end, nonce.incarnation);
  if (incarnation.ec != std::errc{} || incarnation.ptr == end || *incarnation.ptr != '-') return std::nullopt;
  const auto rank = std::from_chars(incarnation.ptr + 1, end, nonce.rank);
  if (rank.ec != std::errc{} || (rank.ptr != end && *rank.ptr != '-')) return std::nullopt;
  if (rank.ptr != end) nonce.nonce = parse_id(std::string_view(rank.ptr + 1, end));
  return nonce;
}

/// One node's part in the proof of its store. All calls are local.
class StoreSharingCheck {
 public:
  StoreSharingCheck(const CheckedStorage& store, const comm::Topology& topology, int rank, const Id128& nonce)
      : store_(store),
        topology_(topology),
        rank_(rank),
        nonce_(nonce),
        own_(fs::join(store.path,
                      compose("{}{}-{}-{}", store::kNoncePrefix, store.run.incarnation, rank, to_string(nonce)))) {}

  void write() const {
    if (store_.file_system.create(own_)) return;
    refuse(ErrorCode::io, "file already exists: another program writes to this directory; end it or remove the file",
           own_);
  }

  void probe() {
    for (const std::string& name : store_.file_system.list(store_.path)) {
      const auto found = parse_store_nonce(store_.path, name);
      if (found && found->incarnation <= store_.run.incarnation) found_.push_back(*found);
    }
    for (const StoreNonce& found : found_) {
      if (found.incarnation == store_.run.incarnation && is_foreign(found)) throw_shared(found.rank);
    }
  }

  /// Removes nonces of earlier starts too; nobody looks any more.
  void remove() const {
    for (const StoreNonce& found : found_) store_.file_system.remove(found.path);
    store_.file_system.remove(own_);  // removed also if the directory could not be listed
  }

 private:
  [[nodiscard]] bool is_foreign(const StoreNonce& found) const {
    if (std::ranges::binary_search(topology_.domain_ranks, found.rank)) return false;
    // The number of a start that failed is taken again, what it wrote is not.
    return found.nonce == nonce_;
  }

  [[noreturn]] void throw_shared(int other) const {
    refuse(ErrorCode::invalid_argument,
           compose("ranks {} and {} are in different failure domains and share a node-local store, so losing it "
                   "would lose both; put {{node}} into store.path, so that each node has its own",
                   std::min(rank_, other), std::max(rank_, other)),
           store_.path);
  }

  const CheckedStorage& store_;
  const comm::Topology& topology_;
  int rank_;
  Id128 nonce_;
  std::string own_;
  std::vector<StoreNonce> found_;
};

/// COLLECTIVE. The lowest rank of each node proves what all of them see alike, and beside it whoever sees something
/// else.
bool is_checking_rank(const comm::Group& group, const std::string& what, const std::vector<int>& node) {
  const int lowest = node.front();
  const std::uint32_t mine = crc32c(std::as_bytes(std::span(what)));
  std::uint32_t theirs = mine;
  group.communicator().broadcast(std::as_writable_bytes(std::span(&theirs, 1)), lowest, group.deadline(), node);
  return lowest == group.rank() || mine != theirs;
}

/// COLLECTIVE. A later start that has begun swept the record away: that is no fault of the prefix.
void refuse_if_replaced(const comm::Group& group, persist::RunStart* start) {
  group.run_on_all_ranks([&] {
    if (start == nullptr || start->is_newest()) return;
    refuse(ErrorCode::busy,
           "another start of this run has taken over; end one of the two jobs, or give each its own run (KEDGE_RUN)",
           start->directory().prefix());
  });
}

}  // namespace

Id128 require_shared_prefix(const comm::Group& group, const CheckedStorage& prefix, const comm::Topology& topology,
                            persist::RunStart* start) {
  const Id128 nonce = group.decide_on_root([&] {
    const Id128 drawn = random_id();
    with_full_prefix_advice([&] { start->write_nonce(drawn); });
    return drawn;
  });
  // All ranks of a node see what one of them sees, if the name leads them to the same place.
  const bool reads =
      is_checking_rank(group, prefix.path + '\0' + prefix.mounts, topology.node_ranks) || prefix.mounts.empty();
  const auto unseen = group.try_on_all_ranks([&] {
    if (reads) require_nonce(prefix, group.rank(), nonce);
  });
  if (unseen) refuse_if_replaced(group, start);
  comm::throw_if(unseen);
  return nonce;
}

void require_separate_stores(const comm::Group& group, const CheckedStorage& store, const comm::Topology& topology,
                             const Id128& nonce) {
  const bool is_one = is_checking_rank(group, store.path, topology.node_ranks);  // paths may differ by rank
  StoreSharingCheck proof(store, topology, group.rank(), nonce);
  const auto step = [&](auto&& action) {
    return group.try_on_all_ranks([&] {
      if (is_one) action();
    });
  };
  const auto written = step([&] { proof.write(); });
  const auto looked = step([&] { proof.probe(); });
  const auto removed = step([&] { proof.remove(); });
  comm::throw_if(written);
  comm::throw_if(looked);
  comm::throw_if(removed);
}

}  // namespace kedge::start
