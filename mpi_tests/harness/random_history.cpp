#include "harness/random_history.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "base/attempt.hpp"
#include "base/text.hpp"
#include "format/set_descriptor.hpp"

namespace kedge::faults {
namespace {

std::string name_of(const std::optional<RemainingCommit>& commit) { return commit ? commit->tag : "nothing"; }

std::string describe(const Selection& selection) {
  if (const auto* tag = std::get_if<Tag>(&selection)) return *tag;
  if (const auto* before = std::get_if<Before>(&selection)) return "before " + before->tag;
  return "latest";
}

std::string describe(const RankObservation& saw) {
  return compose("opened {} of level {}, reached {}: {}", saw.first.tag.value_or("nothing"), to_string(saw.first.level),
                 saw.reached, saw.failure ? to_string(*saw.failure) : "ok");
}

/// "s7(3000002+) s6(3000001p-)": with a plus what can be had, with a p what is persistent.
std::string describe(const std::vector<RemainingCommit>& held) {
  std::string text;
  for (const RemainingCommit& commit : held) {
    text += compose(" {}({}{}{})", commit.tag, commit.generation, commit.persistent ? "p" : "",
                    commit.can_be_recovered() ? "+" : "-");
  }
  return text;
}

/// Ranks fail together, with the same code, at the same call, and see the same until then.
void expect_agreement(const std::vector<RankObservation>& ranks) {
  const auto code = [](const RankObservation& saw) {
    return saw.failure ? std::optional(saw.failure->code) : std::nullopt;
  };
  for (const RankObservation& saw : ranks) {
    const bool same = saw.first == ranks[0].first && saw.again == ranks[0].again &&
                      saw.committed == ranks[0].committed && saw.reached == ranks[0].reached &&
                      code(saw) == code(ranks[0]);
    EXPECT_TRUE(same) << "rank " << &saw - ranks.data() << " " << describe(saw) << "; rank 0 " << describe(ranks[0]);
  }
}

int draw_ranks(RandomChoices& choices) { return choices.one_of({2, 3, 3, 4, 4, 5, 6, 6, 8, 9}); }
int draw_ranks_per_node(RandomChoices& choices, int ranks) {
  return ranks >= 4 && ranks % 2 == 0 && choices.one_in(3) ? 2 : 1;
}

/// How many members of a set may be lost by the strongest protection of the commit; 0 if there is none.
std::size_t tolerance_on_disk(const FaultyDisk& disk, const Id128& commit_id) {
  std::size_t most = 0;
  for (const auto& [path, entry] : disk.snapshot()) {
    const std::span bytes(entry.bytes);
    if (path.find("/set-") == std::string::npos || bytes.size() < format::kSuperblockBytes) continue;
    (void)attempt([&, where = path] {
      const auto set = format::decode_set_descriptor(bytes.first(format::kSuperblockBytes), where);
      if (set.commit_id == commit_id) most = std::max<std::size_t>(most, set.parity_count);
    });
  }
  return most;
}

}  // namespace

void PrintTo(Corruption harm, std::ostream* stream) {
  constexpr std::string_view kNames[] = {"between starts", "while it runs", "behind checks"};
  *stream << kNames[static_cast<int>(harm)];
}

RandomHistory::RandomHistory(std::uint64_t seed, Corruption harm)
    : seed_(seed),
      kind_(harm),
      choices_(seed),
      job_(draw_ranks(choices_), SimulatedJob::memory_disk()),
      corruption_(job_, draw_ranks_per_node(choices_, job_.ranks), choices_, told_),
      oracle_(job_.disk) {
  job_.options.persistent.every = choices_.one_of<std::uint64_t>({0, 0, 0, 1, 2});
  configure();
}

std::string RandomHistory::story() const {
  std::string text = told_;
  for (const std::string& line : job_.log()) text += "    " + line + "\n";
  return text;
}

void RandomHistory::run() {
  run_one_start({.opens = false, .commits = 1 + choices_.int_below(3)}, false, {});
  const int rounds = 3 + choices_.int_below(6);
  for (int round = 0; round < rounds && !ended_ && !testing::Test::HasFailure(); ++round) {
    tell(compose("-- round {}", round));
    if (choices_.one_in(3)) configure();
    corruption_.move_ranks();
    const std::uint64_t how = choices_.below(6);
    if (how <= 2) corruption_.lose_nodes();
    if (how >= 2) corruption_.damage_files();
    if (kind_ == Corruption::behind_checks) {
      corruption_.arm_files();
      armed_ = true;
    }
    const auto held = oracle_.look(corruption_.nodes());
    const RandomStart start = draw_start(held);
    const bool faulty = start.opens && choices_.one_in(5);
    if (faulty) corruption_.plan_fault();
    run_one_start(start, faulty, held);
  }
}

void RandomHistory::configure() {
  draw_redundancy();
  Options& options = job_.options;
  options.store.keep = choices_.one_of<std::uint32_t>({1, 1, 2, 3});
  options.store.copy_threads = choices_.one_of<std::uint32_t>({1, 2, 3});
  options.open.verify = Verify::all;
  if (kind_ == Corruption::behind_checks) {
    options.open.verify = choices_.one_of<Verify>({Verify::all, Verify::all, Verify::loaded, Verify::headers});
  }
  tell(
      compose("configured: {} ranks, {}, {} parities, sets of {}, pieces of {}, depth {}, every {}, keep {}, {}, "
              "persistent every {}",
              job_.ranks, to_string(options.redundancy.scheme), options.redundancy.parity, options.redundancy.set_size,
              job_.pieces.bytes, job_.pieces.depth, options.redundancy.every, options.store.keep,
              options.open.verify == Verify::all      ? "all verified"
              : options.open.verify == Verify::loaded ? "verified when loaded"
                                                      : "headers verified",
              options.persistent.every));
}

void RandomHistory::draw_redundancy() {
  // Members of a set are on different nodes: what one node's ranks need more than that, the engine refuses.
  const int most = std::min(4, job_.ranks / corruption_.most_ranks_on_a_node() - 1);
  std::vector<Scheme> schemes = {Scheme::automatic};
  if (most > 0) {
    schemes.insert(schemes.end(), {Scheme::partner, Scheme::xor_, Scheme::xor_});
    schemes.insert(schemes.end(), {Scheme::rs, Scheme::rs, Scheme::rs, Scheme::rs});
  }
  auto& redundancy = job_.options.redundancy;
  redundancy.scheme = choices_.one_of(schemes);
  redundancy.parity = 1 + static_cast<std::uint32_t>(choices_.int_below(std::max(most, 1)));
  redundancy.set_size = choices_.one_of<std::uint32_t>({2, 3, 4, 5, 8, 32});
  if (redundancy.scheme == Scheme::rs) redundancy.set_size = std::max(redundancy.set_size, redundancy.parity + 1);
  job_.pieces.bytes = choices_.one_of<std::uint64_t>({0, 4096, 4097, 5000, 8191, 65537, 100003});
  job_.pieces.depth = choices_.one_of<std::uint32_t>({1, 2, 3, 4, 7, 64});
  redundancy.every = choices_.one_of<std::uint64_t>({1, 1, 1, 2});
}

bool RandomHistory::protects() const { return job_.options.redundancy.scheme != Scheme::automatic; }

RandomStart RandomHistory::draw_start(const std::vector<RemainingCommit>& held) {
  RandomStart start;
  start.commits = choices_.int_below(3);
  start.opens = !choices_.one_in(10);
  start.restores = choices_.one_in(2);
  if (!start.opens || held.empty() || !choices_.one_in(3)) return start;
  const Tag tag = choices_.one_of(held).tag;
  start.selection = choices_.one_in(2) ? Selection(tag) : Selection(Before{tag});
  if (choices_.one_in(2)) {
    start.newer = Newer::discard;
    start.restores = false;                     // it keeps them
    if (choices_.one_in(2)) start.commits = 0;  // else the next start has a newer one than what was discarded
  }
  return start;
}

std::optional<RemainingCommit> RandomHistory::expected_of(const std::vector<RemainingCommit>& held,
                                                          const Selection& selection) const {
  const auto* tag = std::get_if<Tag>(&selection);
  const auto* before = std::get_if<Before>(&selection);
  bool passed = before == nullptr;
  for (const RemainingCommit& commit : held) {
    const bool fits = passed && (tag == nullptr || commit.tag == *tag);
    if (fits && commit.can_be_recovered()) return commit;
    if (before != nullptr && commit.tag == before->tag) passed = true;
  }
  return std::nullopt;
}

void RandomHistory::run_one_start(const RandomStart& start, bool faulty, const std::vector<RemainingCommit>& held) {
  Case now{start, faulty, held, {}, {}};
  now.expected = expected_of(now.held, start.selection);
  now.start.seed = seed_;
  now.start.first_step = next_step_;
  next_step_ += start.commits;
  if (kind_ == Corruption::while_it_runs && !faulty && start.newer == Newer::keep && choices_.one_in(2)) {
    now.start.opens_again = 1 + choices_.int_below(2);
    now.start.between = [&] { corrupt_between_opens(now); };
  }
  // An engine that finds a file of its store removed while it runs says so in finalize.
  now.start.finalizes = start.commits == 1 && now.start.opens_again == 0;
  tell(compose("start that {}{}; on disk{}; expected {}",
               start.opens ? (start.restores ? "restores " : "opens ") + describe(start.selection) : "does not open",
               start.newer == Newer::discard ? ", discards" : "", describe(now.held), name_of(now.expected)));
  const Started started = carry_out(job_, now.start);
  tell(describe(started.ranks[0]) + (started.any_died ? " (somebody died)" : ""));
  judge(now, started);
  corruption_.remember();
}

void RandomHistory::corrupt_between_opens(Case& now) {
  corruption_.damage_files_in_use();
  const auto held = oracle_.look(corruption_.nodes());
  now.again.push_back(expected_of(held, latest));
  tell(compose("again: on disk{}; expected {}", describe(held), name_of(now.again.back())));
}

void RandomHistory::judge(const Case& now, const Started& started) {
  const RankObservation& saw = started.ranks[0];
  if (!started.any_died) expect_agreement(started.ranks);
  const bool exact = !armed_ && !now.faulty && job_.options.open.verify == Verify::all;
  if (exact) {
    if (now.start.opens) judge_first_open(now, saw);
    judge_later_opens(now, saw);
  }
  if (now.start.newer == Newer::discard) record_discarded(now, saw);
  judge_stores(now, started, exact);
  const bool lost = saw.failure && saw.failure->code == ErrorCode::unrecoverable;
  ended_ = ended_ || (lost && choices_.one_in(2));  // else another start goes on without it
}

void RandomHistory::judge_first_open(const Case& now, const RankObservation& saw) const {
  if (!now.expected) {
    EXPECT_FALSE(saw.first.tag) << "opened what is lost: " << *saw.first.tag;
    return;
  }
  EXPECT_EQ(saw.first.commit_id, now.expected->id) << now.expected->tag << " can be had";
  EXPECT_NE(saw.first.step, Opening::kNotLoaded) << "a load failed after all was verified";
  const bool is_latest = std::holds_alternative<Latest>(now.start.selection);
  EXPECT_TRUE(!protects() || !is_latest || saw.first.level >= Level::protected_) << "opened and not protected";
}

void RandomHistory::judge_later_opens(const Case& now, const RankObservation& saw) const {
  for (std::size_t i = 0; i < saw.again.size(); ++i) {
    const Opening& opening = saw.again[i];
    const auto& expected = now.again.at(i);
    EXPECT_EQ(opening.tag.value_or("nothing"), name_of(expected)) << "opened again";
    if (!expected || !opening.tag) continue;
    EXPECT_EQ(opening.commit_id, expected->id);
    EXPECT_NE(opening.step, Opening::kNotLoaded) << "a load failed after it was opened again";
    EXPECT_TRUE(!protects() || opening.level >= Level::protected_) << "opened again and not protected";
  }
  // Without a fault calls may fail for one reason only: what they should open is lost.
  const bool first_lost = now.start.opens && !now.expected && saw.reached == "open";
  const bool later_lost = saw.reached == "open again" && !now.again.empty() && !now.again.back();
  EXPECT_TRUE(!saw.failure || first_lost || later_lost) << saw.reached << ": " << to_string(*saw.failure);
}

void RandomHistory::record_discarded(const Case& now, const RankObservation& saw) {
  if (now.faulty) ended_ = true;  // it is not known what was recorded
  const auto opened = std::ranges::find(now.held, saw.first.commit_id, &RemainingCommit::id);
  if (!saw.first.tag || opened == now.held.end()) return;
  for (const RemainingCommit& commit : now.held) {
    if (commit.generation > opened->generation) oracle_.discard(commit.id);
  }
}

void RandomHistory::judge_stores(const Case& now, const Started& started, bool exact) {
  const RankObservation& saw = started.ranks[0];
  if (exact && protects() && job_.options.redundancy.every == 1) {
    for (const Level level : saw.committed) EXPECT_GE(level, Level::protected_) << "committed and not protected";
  }
  const auto held = oracle_.look(corruption_.nodes());
  // What was armed, or damaged in use, may have struck after the engine looked.
  if (armed_ || now.start.opens_again > 0 || job_.options.open.verify != Verify::all) return;
  // The newest commit that returned everywhere, else what was opened.
  std::string tag;
  Level level = Level::none;
  if (!saw.committed.empty()) {
    const auto returned = [&](const RankObservation& each) { return each.committed.size() == saw.committed.size(); };
    if (!std::ranges::all_of(started.ranks, returned)) return;
    tag = tag_of(now.start.first_step + static_cast<int>(saw.committed.size()) - 1);
    level = saw.committed.back();
  } else if (saw.first.tag && !saw.failure) {
    tag = *saw.first.tag;
    level = saw.first.level;
  } else {
    return;
  }
  // Who dies in a commit may have completed it, and have given up for it what was opened.
  const auto next = std::ranges::find(held, tag_of(now.start.first_step), &RemainingCommit::tag);
  if (started.any_died && saw.committed.empty() && next != held.end() && next->in_stores()) return;
  const auto commit = std::ranges::find(held, tag, &RemainingCommit::tag);
  if (commit == held.end() || !commit->in_stores()) {
    ADD_FAILURE() << tag << " was opened or committed and the stores do not have it";
  } else if (level == Level::protected_) {
    std::size_t survived = job_.options.redundancy.scheme == Scheme::rs ? job_.options.redundancy.parity : 1;
    // Where protecting again failed, what was opened keeps the protection that it had, which may be a weaker one.
    if (!exact) survived = std::min(survived, tolerance_on_disk(job_.disk, commit->id));
    const std::string fatal = fatal_loss(job_.disk, corruption_.nodes(), survived, commit->id);
    EXPECT_TRUE(fatal.empty()) << tag << " is protected and does not survive the loss of" << fatal;
  }
}

}  // namespace kedge::faults
