// Help of every command, completion for bash, zsh and fish from the command line's own description, and the width of
// all that kedge prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "command/checkpoints_fixture.hpp"
#include "harness/sample_store.hpp"

namespace kedge::testing::kedge_help_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr std::size_t kColumns = 80;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// Behind the first `mark`, as far as it consists of `characters`. By hand: std::regex makes g++ 12 warn falsely under
/// the sanitizers.
std::string first_of(const std::string& line, const std::string& mark, const std::string& characters) {
  const std::size_t at = line.find(mark);
  if (at == std::string::npos) return {};
  const std::size_t from = at + mark.size();
  const std::size_t end = line.find_first_not_of(characters, from);
  return line.substr(from, end == std::string::npos ? end : end - from);
}

/// Subcommands as the help lists them: what is added later is tried as well.
std::vector<std::string> commands() {
  std::vector<std::string> names;
  bool listed = false;
  for (const std::string& line : lines_of(kedge("--help").text)) {
    const std::string name = first_of(line, "  ", "abcdefghijklmnopqrstuvwxyz");
    if (listed && line.starts_with("  " + name + " ") && !name.empty()) names.push_back(name);
    if (line == "Subcommands:") listed = true;
    else if (line.empty()) listed = false;
  }
  return names;
}

/// Paths, names and values are the user's own: a line that has a word of more than kOwnColumns may be longer.
constexpr std::size_t kOwnColumns = 50;

void expect_fits(const std::string& arguments) {
  const Result result = shell("'" KEDGE_PROGRAM "' " + arguments);
  for (const std::string& line : lines_of(result.text)) {
    // It lists the stores of whatever runs on this machine meanwhile, with who holds them.
    if (arguments == "drop" && line.starts_with('/')) continue;
    std::size_t longest = 0;
    std::istringstream words(line);
    for (std::string word; words >> word;) longest = std::max(longest, columns(word));
    EXPECT_TRUE(columns(line) <= kColumns || longest > kOwnColumns) << arguments << "\n"
                                                                    << columns(line) << ": " << line;
  }
}

class KedgeHelp : public KedgeCheckpoints {};

TEST_F(KedgeHelp, OfEveryCommandInBothForms) {
  const auto names = commands();
  EXPECT_THAT(names, IsSupersetOf({"ls", "show", "verify", "config", "drop", "help", "completion"}));
  EXPECT_EQ(kedge("help").text, kedge("--help").text);
  EXPECT_EQ(kedge("help").status, 0);
  for (const std::string& name : names) {
    const Result help = kedge("help " + name);
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.text, HasSubstr("Usage: kedge " + name));
    EXPECT_EQ(help.text, kedge(name + " --help").text);
  }
  const Result unknown = kedge("help shw");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.text, HasSubstr("did you mean 'show'?"));
}

TEST_F(KedgeHelp, EveryHelpFits80Columns) {
  expect_fits("--help");
  expect_fits("help");
  for (const std::string& name : commands()) expect_fits(name + " --help");
}

TEST_F(KedgeHelp, EveryOutputFits80Columns) {
  add_three();
  write_containers(prefix_.directory(), sample_entry(4));
  std::ofstream(prefix_.path(sample_entry(2).directory) + "/pinned") << "\n";
  truncate(manifest(sample_entry(1)), 5000);
  SampleStore store;
  store.add("rank-2.0.h5", sample_regions(), sample_identity());
  store.add("rank-5.0.h5", sample_regions(), sample_identity());  // rank 2's
  store.add_file("rank-2.1.h5", 8192, '\0');
  const std::string prefix = " --prefix " + prefix_.directory();
  for (const std::string& words : std::vector<std::string>{"ls " + prefix_.directory(),
                                                           "ls " + store.directory(),
                                                           "show step-000300 --containers" + prefix,
                                                           "show step-000300 --rank 1" + prefix,
                                                           "show step-000100" + prefix,
                                                           "show step-000400" + prefix,
                                                           "show step-00030" + prefix,
                                                           "show " + store.path("rank-2.0.h5"),
                                                           "show " + store.directory(),
                                                           "show " + store.path("rank-2.1.h5"),
                                                           "verify " + prefix_.directory(),
                                                           "verify " + store.directory(),
                                                           "verify " + store.directory() + " " + prefix_.directory(),
                                                           "verify /nothing/there",
                                                           "config",
                                                           "drop",
                                                           "drop " + store.directory(),
                                                           "drop --run heat" + prefix,
                                                           "drop --run other" + prefix,
                                                           "ls /nothing/there",
                                                           "shw",
                                                           "show --jsn x",
                                                           ""}) {
    expect_fits(words);
  }
}

TEST_F(KedgeHelp, TagsAloneForScripts) {
  add_three();
  prefix_.add(sample_entry(3));
  EXPECT_EQ(kedge("ls --tags " + prefix_.directory()).text, "step-000300\nstep-000200\nstep-000100\n");
  EXPECT_EQ(kedge("ls --tags --json " + prefix_.directory()).status, 2);
}

// --- completion ---

/// What bash offers for the last word.
std::vector<std::string> offered(const std::vector<std::string>& words, const std::string& directory = "/") {
  std::string quoted;
  for (const std::string& word : words) quoted += compose(" {}", in_quotes(word));
  const std::string script = compose(
      "PATH={}:$PATH; cd '{}'; eval \"$(kedge completion bash)\"; COMP_WORDS=(kedge{}); COMP_CWORD={}; _kedge; "
      "printf '%s\\n' \"${{COMPREPLY[@]}}\"",
      std::string(KEDGE_PROGRAM).substr(0, std::string(KEDGE_PROGRAM).rfind('/')), directory, quoted, words.size());
  ::setenv("KEDGE_TEST_SCRIPT", script.c_str(), 1);  // spares one level of quotes
  const Result result = shell("bash --norc -c \"$KEDGE_TEST_SCRIPT\"");
  EXPECT_EQ(result.status, 0) << result.text;
  return lines_of(result.text);
}

bool has(const std::string& program) { return shell("command -v " + program).status == 0; }

TEST_F(KedgeHelp, BashCompletesCommandsOptionsAndTags) {
  if (!has("bash")) GTEST_SKIP() << "no bash here";
  add_three();
  EXPECT_THAT(offered({""}), IsSupersetOf(commands()));
  EXPECT_THAT(offered({"sh"}), ::testing::ElementsAre("show"));
  EXPECT_THAT(offered({"help", "ve"}), ::testing::ElementsAre("verify"));
  EXPECT_THAT(offered({"completion", ""}), IsSupersetOf({"bash", "fish", "zsh"}));
  EXPECT_THAT(offered({"show", "--r"}), ::testing::ElementsAre("--run", "--rank"));
  EXPECT_THAT(offered({"show", "--prefix", prefix_.directory(), "step-0002"}), ::testing::ElementsAre("step-000200"));
  EXPECT_THAT(offered({"extract", "--prefix", prefix_.directory(), "step-0002"}),
              ::testing::ElementsAre("step-000200"));
  std::filesystem::create_directories(prefix_.path("place/checkpoints"));
  EXPECT_THAT(offered({"extract", "--output", "pl"}, prefix_.directory()), ::testing::ElementsAre("place"));
  EXPECT_THAT(offered({"show", "--prefix", "pl"}, prefix_.directory()), ::testing::ElementsAre("place"));
  EXPECT_THAT(offered({"verify", "pl"}, prefix_.directory()), Contains("place"));
  std::ofstream(prefix_.path("place.h5")) << "";
  EXPECT_THAT(offered({"verify", "pl"}, prefix_.directory()), Contains("place.h5"));
  EXPECT_THAT(offered({"ls", ""}, prefix_.directory()), Not(Contains("step-000200")));
}

/// bash passes the words as they were typed, with quotes and backslashes.
TEST_F(KedgeHelp, BashCompletesTagsOfAPrefixWithSpaces) {
  if (!has("bash")) GTEST_SKIP() << "no bash here";
  const std::string prefix = prefix_.path("my check points");
  write_checkpoint(prefix, sample_entry(2));
  for (const std::string& typed :
       {prefix, in_quotes(prefix), compose("\"{}\"", prefix), prefix_.path("my\\ check\\ points")}) {
    EXPECT_THAT(offered({"show", "--prefix", typed, "step"}), ::testing::ElementsAre("step-000200")) << typed;
  }
  EXPECT_THAT(offered({"verify", "my"}, prefix_.directory()), Contains("my check points"));
  EXPECT_THAT(offered({"extract", "-o", "my"}, prefix_.directory()), ::testing::ElementsAre("my check points"));
}

/// The options that a command's help lists are those that the completion offers: both are made from one list.
TEST_F(KedgeHelp, BashOffersEveryOptionOfEveryCommand) {
  if (!has("bash")) GTEST_SKIP() << "no bash here";
  for (const std::string& name : commands()) {
    std::set<std::string> listed;
    const std::string help = kedge(name + " --help").text;
    for (const std::string& line : lines_of(help)) {
      const std::string option = first_of(line, "--", "abcdefghijklmnopqrstuvwxyz-");
      if (line.starts_with("  -") && !option.empty()) listed.insert("--" + option);
    }
    ASSERT_FALSE(listed.empty()) << name;
    EXPECT_THAT(offered({name, "--"}), ::testing::UnorderedElementsAreArray(listed)) << name;
  }
}

TEST_F(KedgeHelp, ZshAndFishTakeTheirScripts) {
  for (const std::string& shell_name : {std::string("zsh"), std::string("fish")}) {
    const Result script = kedge("completion " + shell_name);
    EXPECT_EQ(script.status, 0);
    for (const std::string& name : commands()) EXPECT_THAT(script.text, HasSubstr(name)) << shell_name;
    EXPECT_THAT(script.text, AllOf(HasSubstr("containers"), HasSubstr("kedge ls --tags")));
    if (!has(shell_name)) continue;
    const Result read = shell(compose("'" KEDGE_PROGRAM "' completion {0} | {0} -n /dev/stdin", shell_name));
    EXPECT_EQ(read.status, 0) << read.text;
    EXPECT_EQ(read.text, "");
  }
  EXPECT_EQ(kedge("completion tcsh").status, 2);
  if (!has("zsh") || !has("fish"))
    GTEST_SKIP() << "zsh or fish is missing: what they make of their script was not tried";
}

TEST_F(KedgeHelp, ZshOffersCommandsAndTags) {
  if (!has("zsh")) GTEST_SKIP() << "no zsh here";
  add_three();
  const std::string path = std::string(KEDGE_PROGRAM).substr(0, std::string(KEDGE_PROGRAM).rfind('/'));
  // A zsh on a terminal of its own; -r waits for what the completion types.
  const std::string script = compose(
      "zmodload zsh/zpty; zpty z zsh -f -i\n"
      "zpty -w z \"PATH={}:\\$PATH; PS1=; autoload -U compinit; compinit -u -D; source <(kedge completion zsh)\"\n"
      "zpty -w -n z $'kedge show --prefix {} step-0002\\t'; zpty -r z out '*step-000200*'; print found\n",
      path, prefix_.directory());
  ::setenv("KEDGE_TEST_SCRIPT", script.c_str(), 1);
  EXPECT_THAT(shell("timeout 60 zsh -f -c \"$KEDGE_TEST_SCRIPT\"").text, HasSubstr("found"));
}

TEST_F(KedgeHelp, FishOffersCommandsAndTags) {
  if (!has("fish")) GTEST_SKIP() << "no fish here";
  add_three();
  const std::string path = std::string(KEDGE_PROGRAM).substr(0, std::string(KEDGE_PROGRAM).rfind('/'));
  const auto complete = [&](const std::string& line) {
    return shell("PATH='" + path + "':$PATH fish --no-config -c 'kedge completion fish | source; complete -C \"" +
                 line + "\"'")
        .text;
  };
  EXPECT_THAT(complete("kedge sh"), HasSubstr("show"));
  EXPECT_THAT(complete("kedge show --prefix " + prefix_.directory() + " step"), HasSubstr("step-000200"));
  EXPECT_THAT(complete("kedge verify --"), AllOf(HasSubstr("--quiet"), Not(HasSubstr("--containers"))));
}

TEST_F(KedgeHelp, ACommandWithoutACheckpointSaysWhatToGive) {
  for (const std::string name : {"show", "verify", "extract"}) {
    for (const std::string more : {"", " --json", " --prefix /nowhere"}) {
      const Result bare = kedge_in(prefix_.directory(), name + more);
      EXPECT_EQ(bare.status, 2) << bare.text;
      for (const std::string& part :
           {"kedge " + name + " latest", std::string("kedge ls"), "kedge " + name + " --help"})
        EXPECT_THAT(bare.text, HasSubstr(part));
    }
  }
}

// These take the configured prefix.
TEST_F(KedgeHelp, ACommandWithoutAPrefixSaysWhereItLooked) {
  for (const auto& [name, option] :
       {std::pair<std::string, std::string>{"drain --dry-run", ""}, {"drop --run main", "--prefix"}}) {
    if (name.starts_with("drain") && !std::filesystem::exists(KEDGE_PROGRAM "-mpi")) continue;  // built without MPI
    const Result bare = kedge_in(prefix_.directory(), name);
    EXPECT_EQ(bare.status, 2) << bare.text;
    EXPECT_THAT(bare.text, AllOf(HasSubstr("./checkpoints"), HasSubstr("persistent.path"), HasSubstr("kedge config")));
    const Result named = kedge_in(prefix_.directory(), compose("{} {} /no", name, option));
    EXPECT_THAT(named.text, AllOf(HasSubstr("no such prefix"), Not(HasSubstr("persistent.path"))));
  }
}

}  // namespace
}  // namespace kedge::testing::kedge_help_test
