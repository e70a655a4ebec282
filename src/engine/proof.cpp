#include "engine/proof.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/attempt.hpp"
#include "base/checksum.hpp"
#include "base/random.hpp"
#include "base/text.hpp"

namespace kedge::engine {
namespace {

constexpr std::string_view kNoncePrefix = "nonce-";
constexpr std::size_t kNonceCharacters = 32;

/// Nothing if the file is shorter than a nonce or holds something else.
std::optional<Id128> read_nonce(fs::FileSystem& file_system, const std::string& path) {
  const auto file = file_system.open(path, fs::Access::read);
  std::string text(kNonceCharacters, '\0');
  if (file->status().size_bytes < text.size()) return std::nullopt;
  (void)file->copy_out(0, std::as_writable_bytes(std::span(text)), 0);
  return parse_id(text);
}

/// Local. By the name that this rank was given, not by rank 0's canonical one: that is what is to be proven.
void read_back(const Context& context, const Id128& nonce) {
  const std::string path = fs::join(context.options.persistent.path,
                                    compose(".kedge/{}/{}{}", context.run, kNoncePrefix, context.incarnation));
  std::string_view seen = "sees another record than the one";
  try {
    if (read_nonce(*context.environment.file_system, path) == nonce) return;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    seen = "does not see the record";
  }
  throw Error(Failure{ErrorCode::invalid_argument,
                      compose("the prefix is not the same filesystem on rank {}, which {} that rank 0 wrote; set "
                              "persistent.path to a directory that all nodes share",
                              context.rank(), seen),
                      -1, path, 0});
}

/// A nonce file in a store: nonce-<incarnation>-<rank>.
struct StoreNonce {
  std::string path;
  std::uint64_t incarnation = 0;
  int rank = 0;
};

std::optional<StoreNonce> parse_store_nonce(const std::string& directory, const std::string& name) {
  if (!name.starts_with(kNoncePrefix)) return std::nullopt;
  StoreNonce nonce{fs::join(directory, name), 0, 0};
  const char* end = name.data() + name.size();
  const auto incarnation = std::from_chars(name.data() + kNoncePrefix.size(), end, nonce.incarnation);
  if (incarnation.ec != std::errc{} || incarnation.ptr == end || *incarnation.ptr != '-') return std::nullopt;
  const auto rank = std::from_chars(incarnation.ptr + 1, end, nonce.rank);
  if (rank.ec != std::errc{} || rank.ptr != end) return std::nullopt;
  return nonce;
}

/// One node's part in the proof of its store. All calls are local.
class StoreProof {
 public:
  StoreProof(const Context& context, const Id128& nonce)
      : context_(context),
        file_system_(*context.environment.file_system),
        nonce_(nonce),
        own_(fs::join(context.store->directory(),
                      compose("{}{}-{}", kNoncePrefix, context.incarnation, context.rank()))) {}

  void write() const {
    file_system_.remove(own_);
    const auto file = file_system_.create(own_);
    if (!file) throw Error(Failure{ErrorCode::io, "something else makes files of this start's name", -1, own_, 0});
    const std::string text = to_string(nonce_) + "\n";
    file->copy_in(0, std::as_bytes(std::span(text)), 0);
  }

  void look() {
    for (const std::string& name : file_system_.list(context_.store->directory())) {
      const auto found = parse_store_nonce(context_.store->directory(), name);
      if (found && found->incarnation <= context_.incarnation) found_.push_back(*found);
    }
    for (const StoreNonce& found : found_) {
      if (found.incarnation == context_.incarnation && is_foreign(found)) refuse(found.rank);
    }
  }

  /// Those of earlier starts too; nobody looks any more.
  void remove() const {
    for (const StoreNonce& found : found_) file_system_.remove(found.path);
    file_system_.remove(own_);  // also if the directory could not be listed
  }

 private:
  [[nodiscard]] bool is_foreign(const StoreNonce& found) const {
    if (std::ranges::binary_search(context_.topology.domain, found.rank)) return false;
    // The number of a start that came to nothing is taken again, what it wrote is not.
    return read_nonce(file_system_, found.path) == nonce_;
  }

  [[noreturn]] void refuse(int other) const {
    throw Error(
        Failure{ErrorCode::invalid_argument,
                compose("ranks {} and {} are in different failure domains and share a node-local store, so "
                        "losing it would lose both; put {{node}} into store.path, so that each node has its own",
                        std::min(context_.rank(), other), std::max(context_.rank(), other)),
                -1, context_.store->directory(), 0});
  }

  const Context& context_;
  fs::FileSystem& file_system_;
  Id128 nonce_;
  std::string own_;
  std::vector<StoreNonce> found_;
};

/// COLLECTIVE. The lowest rank of each node speaks for it, and beside it whoever has a store of its own there: paths
/// may differ by rank.
bool speaks_for_its_store(const Context& context) {
  const std::string& directory = context.store->directory();
  const int lowest = context.topology.node.front();
  const std::uint32_t mine = crc32c(std::as_bytes(std::span(directory)));
  std::uint32_t theirs = mine;
  context.comm->broadcast(std::as_writable_bytes(std::span(&theirs, 1)), lowest, context.deadline(),
                          context.topology.node);
  return lowest == context.rank() || mine != theirs;
}

/// COLLECTIVE. A later start that has begun swept the record away: that is no fault of the prefix.
void refuse_if_replaced(Context& context) {
  comm::throw_if(context.vote(attempt([&] {
    if (!context.catalog || context.catalog->is_newest_incarnation()) return;
    throw Error(Failure{ErrorCode::busy, "another start of this run came in between; end one of the two jobs", -1,
                        context.catalog->prefix(), 0});
  })));
}

}  // namespace

Id128 prove_prefix(Context& context) {
  Id128 nonce;
  const auto written = attempt([&] {
    if (!context.catalog) return;
    nonce = random_id();
    context.catalog->write_nonce(nonce);
  });
  comm::throw_if(context.vote(written));
  context.broadcast(nonce);
  const auto unseen = context.vote(attempt([&] { read_back(context, nonce); }));
  if (unseen) refuse_if_replaced(context);
  comm::throw_if(unseen);
  return nonce;
}

void prove_stores(Context& context, const Id128& nonce) {
  const bool speaks = speaks_for_its_store(context);
  StoreProof proof(context, nonce);
  const auto step = [&](auto&& action) {
    return attempt([&] {
      if (speaks) action();
    });
  };
  const auto written = context.vote(step([&] { proof.write(); }));
  const auto looked = context.vote(step([&] { proof.look(); }));
  const auto removed = context.vote(step([&] { proof.remove(); }));
  comm::throw_if(written);
  comm::throw_if(looked);
  comm::throw_if(removed);
}

}  // namespace kedge::engine
