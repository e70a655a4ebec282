#include "other_ranks_rows.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "engine/engine_environment.hpp"
#include "engine_run.hpp"
#include "kedge/mpi.hpp"
#include "kedge/state.hpp"
#include "timing.hpp"

namespace kedge_bench {
namespace {

constexpr std::size_t kCallBytes = std::size_t{4} << 20U;

/// For the next engine.
void set_ranks_per_node(int ranks) {
  ::setenv("KEDGE_TEST_RANKS_PER_NODE", std::to_string(std::max(ranks, 1)).c_str(), 1);
}

int half_of(int ranks) { return (ranks + 1) / 2; }

/// With fewer than four, one rank less would leave a node without a process.
int per_node_of_fewer(int ranks) { return ranks < 4 ? ranks : half_of(ranks); }

void read_plainly(const std::string& path, std::uint64_t at, std::span<std::byte> to) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw std::runtime_error("cannot open " + path);
  for (std::size_t done = 0; done < to.size();) {
    const ssize_t got =
        ::pread(file, to.data() + done, std::min(kCallBytes, to.size() - done), static_cast<off_t>(at + done));
    if (got <= 0) {
      ::close(file);
      throw std::runtime_error("cannot read " + path);
    }
    done += static_cast<std::size_t>(got);
  }
  ::close(file);
}

}  // namespace

OtherRanksRows::OtherRanksRows(const Arguments& arguments, const Workplace& workplace, Buffers& buffers, int rank,
                               int ranks)
    : arguments_(arguments),
      workplace_(workplace),
      buffers_(buffers),
      rank_(rank),
      all_(ranks),
      one_less_(ranks - 1),
      half_(ranks / 2),
      // The array is so large that each process has memory for its share of it.
      fewer_{"fewer",
             all_,
             one_less_,
             per_node_of_fewer(ranks),
             per_node_of_fewer(ranks),
             buffers.data.size() * static_cast<std::uint64_t>(ranks - 1)},
      more_{"more",         half_,
            all_,           half_of(ranks / 2),
            half_of(ranks), buffers.data.size() * static_cast<std::uint64_t>(ranks / 2)},
      prefix_{"from-prefix", all_, one_less_, fewer_.saved_per_node, fewer_.restored_per_node, fewer_.words},
      files_(std::make_shared<CountingFileSystem>(kedge::fs::posix_file_system())) {}

void OtherRanksRows::add_to(Table& table, const Arguments& arguments, int ranks) {
  const auto add = [&](const std::string& key, int saved_by, int restored_by, int arrays) {
    const std::uint64_t bytes = arguments.size_bytes * static_cast<std::uint64_t>(arrays);
    const std::string from = std::to_string(saved_by) + " to ";
    table.add({"equal_" + key, "restore of an array on as many ranks, " + from + std::to_string(saved_by), "", bytes});
    table.add({key, "  the same bytes on another number, " + from + std::to_string(restored_by) + ", from the stores",
               "equal_" + key, bytes});
    table.add({key + "_reads", "  bytes that it reads for each of the array", "", 0, Unit::bytes_per_byte});
  };
  add("fewer", ranks, ranks - 1, ranks - 1);
  add("more", ranks / 2, ranks, ranks / 2);
  if (!arguments.persistent) return;
  const std::uint64_t bytes = arguments.size_bytes * static_cast<std::uint64_t>(ranks - 1);
  table.add({"prefix_read", "plain read of an array's files on the prefix, out of the page cache", "", bytes});
  table.add({"fewer_prefix", "  restore of it on one rank less, from there", "prefix_read", bytes});
  table.add({"fewer_prefix_reads", "  bytes that it reads for each of the array", "", 0, Unit::bytes_per_byte});
}

void OtherRanksRows::round(Recorder& recorder) {
  record(recorder, fewer_);
  record(recorder, more_);
  if (arguments_.persistent) record_prefix(recorder);
  set_ranks_per_node(workplace_.ranks_per_node());
}

void OtherRanksRows::record(Recorder& recorder, const Case& one) {
  save(one, false);
  Spent equal;
  if (number_ % 2 == 0) equal = faster(one, one.saved_by, one.saved_per_node);
  const Spent other = faster(one, one.restored_by, one.restored_per_node);
  if (number_ % 2 != 0) equal = faster(one, one.saved_by, one.saved_per_node);
  recorder.record("equal_" + one.name, equal.s);
  recorder.record(one.name, other.s);
  recorder.record(one.name + "_reads", other.bytes);
}

void OtherRanksRows::record_prefix(Recorder& recorder) {
  save(prefix_, true);
  workplace_.warm_prefix();
  const auto plain = [&] { recorder.record("prefix_read", faster_of_two([&] { return plain_read(one_less_); })); };
  const bool plain_first = number_ % 2 == 0;
  if (plain_first) plain();
  const Spent spent = faster(prefix_, one_less_, prefix_.restored_per_node);
  if (!plain_first) plain();
  recorder.record("fewer_prefix", spent.s);
  recorder.record("fewer_prefix_reads", spent.bytes);
  workplace_.remove_tag_directories();
}

OtherRanksRows::Share OtherRanksRows::share(const Case& one, const Team& team) const {
  const auto begin_of = [&](int rank) {
    return one.words / static_cast<std::uint64_t>(team.size()) * static_cast<std::uint64_t>(rank);
  };
  const std::uint64_t begin = begin_of(rank_);
  return {begin, (rank_ + 1 == team.size() ? one.words : begin_of(rank_ + 1)) - begin};
}

/// COLLECTIVE over the team.
std::optional<kedge::Engine> OtherRanksRows::start(const Case& one, const Team& team, int per_node, bool to_prefix) {
  set_ranks_per_node(per_node);
  kedge::Options options = options_of(one.name, arguments_, workplace_);
  options.redundancy.scheme = kedge::Scheme::single;
  options.pipeline.mode = kedge::PipelineMode::inline_;
  if (to_prefix) options.store.on_exit = kedge::OnExit::remove_if_persistent;
  auto environment = kedge::start::Environment::system();
  environment.file_system = files_;
  return kedge::engine::EngineEnvironment::make_engine(kedge::mpi(team.communicator()), options,
                                                       std::move(environment));
}

void OtherRanksRows::save(const Case& one, bool to_prefix) {
  ++number_;
  (void)one.saved_by.time([&] {
    auto engine = start(one, one.saved_by, one.saved_per_node, to_prefix);
    const Share mine = share(one, one.saved_by);
    const auto words = std::span(buffers_.data).first(mine.count);
    fill_from(mine.first, words, number_);
    engine->create("content-" + std::to_string(number_));
    (void)engine->save("field", kedge::region(words), kedge::Shard{kedge::Shape{one.words}, kedge::Shape{mine.first}});
    engine->commit();
    if (to_prefix) engine->wait("content-" + std::to_string(number_), kedge::Level::persistent);
    engine->finalize();
  });
}

/// COLLECTIVE over all ranks.
OtherRanksRows::Spent OtherRanksRows::restart(const Case& one, const Team& team, int per_node) {
  std::optional<kedge::Engine> engine;
  kedge::State state;
  const Share mine = team.has_me() ? share(one, team) : Share{};
  const auto back = std::span(buffers_.back).first(mine.count);
  (void)team.time([&] {
    engine = start(one, team, per_node, false);
    std::ranges::fill(back, 0);
    state.add("field", kedge::mutable_region(back), kedge::Shard{kedge::Shape{one.words}, kedge::Shape{mine.first}});
  });
  (void)files_->take_bytes_read();
  std::optional<std::string> found;
  Spent spent;
  spent.s = team.time([&] { found = engine->restore(state); });
  spent.bytes =
      sum(static_cast<double>(files_->take_bytes_read())) / (static_cast<double>(one.words) * sizeof(std::uint64_t));
  (void)team.time([&] {
    if (found != "content-" + std::to_string(number_))
      throw std::runtime_error("restored " + found.value_or("nothing"));
    const auto expected = std::span(buffers_.data).first(mine.count);
    fill_from(mine.first, expected, number_);
    if (arguments_.spoil && rank_ == 0) std::as_writable_bytes(back).back() ^= std::byte{1};
    if (!std::ranges::equal(back, expected)) throw std::runtime_error("what came back differs from what was saved");
    engine->finalize();
  });
  return spent;
}

OtherRanksRows::Spent OtherRanksRows::faster(const Case& one, const Team& team, int per_node) {
  Spent best = restart(one, team, per_node);
  const Spent again = restart(one, team, per_node);
  best.s = std::min(best.s, again.s);
  best.bytes = std::max(best.bytes, again.bytes);
  return best;
}

/// COLLECTIVE over all ranks. The containers' files, as if they were one after the other, an equal share for each
/// member.
double OtherRanksRows::plain_read(const Team& team) {
  std::vector<std::pair<std::string, std::uint64_t>> files;
  std::uint64_t total = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(workplace_.prefix())) {
    if (!entry.is_regular_file() || entry.path().extension() != ".h5") continue;
    files.emplace_back(entry.path().string(), entry.file_size());
    total += entry.file_size();
  }
  std::ranges::sort(files);
  return team.time([&] {
    const auto members = static_cast<std::uint64_t>(team.size());
    const std::uint64_t begin = total / members * static_cast<std::uint64_t>(rank_);
    const std::uint64_t end = begin + std::min<std::uint64_t>(total / members, buffers_.back_bytes().size());
    std::uint64_t file_begin = 0;
    for (const auto& [path, size] : files) {
      const std::uint64_t from = std::max(begin, file_begin);
      const std::uint64_t until = std::min(end, file_begin + size);
      if (from < until)
        read_plainly(path, from - file_begin, buffers_.back_bytes().subspan(from - begin, until - from));
      file_begin += size;
    }
  });
}

}  // namespace kedge_bench
