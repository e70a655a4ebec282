// The project's own sources keep the rules of its house: what each room includes, how long files are, what lies at the
// top. The second half breaks each rule once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include "unit/structure/project.hpp"
#include "unit/structure/rules.hpp"

namespace kedge::structure::structure_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What git tracks at the top; without git, what lies there but for build directories and the like.
std::vector<std::string> top_level_names() {
  std::set<std::string> names;
  const std::string command = "git -C '" + kRoot.string() + "' ls-files 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> git(::popen(command.c_str(), "r"), ::pclose);
  std::string path;
  for (int c = 0; git && (c = std::fgetc(git.get())) != EOF;) {
    if (c != '\n') {
      path += static_cast<char>(c);
      continue;
    }
    names.insert(path.substr(0, path.find('/')));
    path.clear();
  }
  if (names.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(kRoot)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("build") && name != "checkpoints" && name != "CMakeUserPresets.json") names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

TEST(Structure, IncludesGoDownAndLibrariesStayInTheirRooms) {
  const auto sources = read_sources({"src", "include", "examples"});
  ASSERT_GT(sources.size(), 20U);
  for (const Source& source : sources) {
    if (source.path.ends_with("CMakeLists.txt")) continue;
    EXPECT_THAT(include_problems(source), IsEmpty());
    EXPECT_THAT(use_problems(source), IsEmpty());
  }
}

TEST(Structure, FilesAreShort) {
  for (const Source& source : read_sources({"src", "include", "mpi_tests", "examples"})) {
    EXPECT_THAT(length_problems(source), IsEmpty());
  }
}

TEST(Structure, TopLevelHoldsWhatTheArchitectureNames) {
  const auto names = top_level_names();
  EXPECT_THAT(names, testing::Contains("src"));
  EXPECT_THAT(top_level_problems(names), IsEmpty());
}

// The words that the present rooms have things for. An issue that brings a thing brings its word here.
TEST(Structure, CodeUsesTheWordsOfTheVocabulary) {
  const std::vector<std::string> words = {
      "run",          "incarnation",     "tag",    "generation", "commit id", "container", "region",
      "shard",        "replicated",      "dtype",  "node-local", "store",     "prefix",    "parallel filesystem",
      "logical rank", "failure domains", "level",  "snapshot",   "local",     "protected", "persistent",
      "moved",        "rebuilt",         "fetched"};
  EXPECT_THAT(missing_words(words, read_sources({"src", "include"})), IsEmpty());
}

// The rules can be broken --------------------------------------------------------------------------------

std::vector<std::string> problems(const std::string& path, const std::string& include) {
  return include_problems({path, "#pragma once\n#include " + include + "\n"});
}

TEST(StructureRules, FindEveryFormOfInclude) {
  const auto found = includes_of("#include <a>\n  #  include \"b/c.hpp\"  // why\n// #include <no>\nint include;\n");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "a");
  EXPECT_FALSE(found[0].quoted);
  EXPECT_EQ(found[1].name, "b/c.hpp");
  EXPECT_TRUE(found[1].quoted);
}

TEST(StructureRules, SeeAnIncludeThatGoesUpOrSideways) {
  EXPECT_THAT(problems("src/store/a.cpp", "\"engine/writer.hpp\""), ElementsAre(HasSubstr("goes down only")));
  EXPECT_THAT(problems("src/fs/a.cpp", "\"comm/group.hpp\""), ElementsAre(HasSubstr("goes down only")));
  EXPECT_THAT(problems("src/persist/a.cpp", "\"redundancy/plan.hpp\""), ElementsAre(HasSubstr("goes down only")));
  EXPECT_THAT(problems("src/comm/a.cpp", "\"comm/mpi/request.hpp\""), ElementsAre(HasSubstr("goes down only")));
  EXPECT_THAT(problems("src/base/a.cpp", "\"fs/posix.hpp\""), ElementsAre(HasSubstr("goes down only")));
  EXPECT_THAT(problems("src/store/a.cpp", "\"simulator/run.hpp\""), ElementsAre(HasSubstr("beginning with a room")));
  EXPECT_THAT(problems("src/store/a.cpp", "\"b.hpp\""), ElementsAre(HasSubstr("write it from src/")));
  EXPECT_THAT(problems("src/attic/a.cpp", "<vector>"), ElementsAre(HasSubstr("no room of the house")));
  EXPECT_THAT(problems("src/simulator/a.cpp", "\"store/store.hpp\""), ElementsAre(HasSubstr("commits and redundancy")));
}

TEST(StructureRules, PermitWhatTheFloorsPermit) {
  for (const auto& [path, include] :
       std::vector<std::pair<std::string, std::string>>{{"src/engine/a.cpp", "\"store/store.hpp\""},
                                                        {"src/comm/a.cpp", "\"fs/file_system.hpp\""},
                                                        {"src/comm/a.cpp", "\"kedge/communicator.hpp\""},
                                                        {"src/comm/mpi/a.cpp", "\"comm/group.hpp\""},
                                                        {"src/comm/mpi/a.cpp", "<mpi.h>"},
                                                        {"src/format/a.cpp", "<hdf5.h>"},
                                                        {"src/codec/a.cpp", "<isa-l/raid.h>"},
                                                        {"src/tools/a.cpp", "<CLI/CLI.hpp>"},
                                                        {"src/fs/a.cpp", "<sys/mman.h>"},
                                                        {"src/simulator/a.cpp", "\"redundancy/plan.hpp\""},
                                                        {"include/kedge/mpi.hpp", "<mpi.h>"},
                                                        {"include/kedge/kedge_mpi.h", "<mpi.h>"},
                                                        {"include/kedge/kedge_mpi.h", "\"kedge/kedge.h\""},
                                                        {"include/kedge/kedge.h", "<stdint.h>"},
                                                        {"src/bindings/c/a.cpp", "\"kedge/engine.hpp\""},
                                                        {"src/bindings/c/a.cpp", "\"kedge/mpi.hpp\""},
                                                        {"src/bindings/fortran/a.cpp", "\"kedge/kedge_mpi.h\""},
                                                        {"src/bindings/c/a.cpp", "\"bindings/c/handle.hpp\""},
                                                        {"src/bindings/c/a.cpp", "\"base/attempt.hpp\""},
                                                        {"src/testing/a.cpp", "\"comm/tree_collectives.hpp\""},
                                                        {"src/testing/a.cpp", "\"base/text.hpp\""},
                                                        {"src/testing/a.cpp", "\"kedge/engine.hpp\""},
                                                        {"src/testing/a.cpp", "\"kedge/testing/a.hpp\""},
                                                        {"src/testing/a.cpp", "\"testing/b.hpp\""},
                                                        {"include/kedge/testing/a.hpp", "\"kedge/testing/b.hpp\""},
                                                        {"examples/heat2d/a.cpp", "<mpi.h>"}}) {
    EXPECT_THAT(problems(path, include), IsEmpty());
  }
}

TEST(StructureRules, SeeALibraryOutsideItsRoom) {
  for (const std::string include :
       {"<fmt/format.h>", "<spdlog/spdlog.h>", "<nlohmann/json.hpp>", "<toml++/toml.h>", "<hdf5.h>", "<H5Cpp.h>",
        "<isa-l/crc.h>", "<isa-l.h>", "<mpi.h>", "<CLI/CLI.hpp>", "<boost/filesystem.hpp>", "<liburing.h>",
        "<cuda_runtime.h>", "<netinet/tcp.h>", "<net/if.h>", "<ifaddrs.h>", "<arpa/inet.h>"}) {
    EXPECT_THAT(problems("src/store/a.cpp", include), ElementsAre(HasSubstr("belongs to room"))) << include;
    EXPECT_THAT(problems("include/kedge/types.hpp", include), ElementsAre(HasSubstr("belongs to room"))) << include;
  }
  EXPECT_THAT(problems("src/comm/a.cpp", "<mpi.h>"), ElementsAre(HasSubstr("comm/mpi")));
  EXPECT_THAT(problems("src/store/a.cpp", "\"kedge/mpi.hpp\""), ElementsAre(HasSubstr("know MPI")));
  EXPECT_THAT(problems("src/store/a.cpp", "<zlib.h>"), ElementsAre(HasSubstr("no room yet")));
}

TEST(StructureRules, SeeBindingsThatReachIntoTheHouseAndCHeadersThatAreNoC) {
  EXPECT_THAT(problems("src/bindings/c/a.cpp", "\"engine/writer.hpp\""), ElementsAre(HasSubstr("public interface")));
  EXPECT_THAT(problems("src/bindings/c/a.cpp", "\"fs/file_system.hpp\""), ElementsAre(HasSubstr("public interface")));
  EXPECT_THAT(problems("src/store/a.cpp", "\"kedge/kedge_mpi.h\""), ElementsAre(HasSubstr("know MPI")));
  for (const std::string include : {"<mpi.h>", "<cstdint>", "<string>", "\"kedge/types.hpp\"", "\"base/text.hpp\""}) {
    EXPECT_THAT(problems("include/kedge/kedge.h", include), ElementsAre(HasSubstr("a header for C"))) << include;
  }
}

TEST(StructureRules, SeeAProductThatKnowsTheTestingLibraryAndOneThatKnowsTheProductsInside) {
  for (const std::string path : {"src/comm/a.cpp", "src/engine/a.cpp", "src/tools/a.cpp", "include/kedge/a.hpp"}) {
    EXPECT_THAT(problems(path, "\"kedge/testing/a.hpp\""), ElementsAre(HasSubstr("only tests"))) << path;
  }
  EXPECT_THAT(problems("src/engine/a.cpp", "\"testing/mailboxes.hpp\""), ElementsAre(HasSubstr("only tests")));
  for (const std::string include : {"\"engine/environment.hpp\"", "\"fs/posix_file.hpp\"", "\"codec/xor.hpp\"",
                                    "\"fs/file_system.hpp\"", "\"comm/mpi/mpi_call.hpp\""}) {
    EXPECT_THAT(problems("src/testing/a.cpp", include), ElementsAre(HasSubstr("base and comm only"))) << include;
  }
  EXPECT_THAT(problems("src/testing/a.cpp", "\"kedge/mpi.hpp\""), ElementsAre(HasSubstr("know MPI")));
  EXPECT_THAT(problems("include/kedge/testing/a.hpp", "\"testing/mailboxes.hpp\""),
              ElementsAre(HasSubstr("not public")));
}

TEST(StructureRules, SeeTheWorldInAPureRoom) {
  EXPECT_THAT(problems("src/commits/a.cpp", "<fstream>"), ElementsAre(HasSubstr("takes values")));
  EXPECT_THAT(problems("src/codec/a.cpp", "\"fs/file_system.hpp\""), ElementsAre(HasSubstr("takes values")));
  EXPECT_THAT(problems("src/redundancy/plan.cpp", "\"kedge/communicator.hpp\""),
              ElementsAre(HasSubstr("takes values")));
  EXPECT_THAT(problems("src/redundancy/exchange.cpp", "\"kedge/communicator.hpp\""), IsEmpty());
}

TEST(StructureRules, SeeWhatPublicHeadersAndExamplesMustNotShow) {
  EXPECT_THAT(problems("include/kedge/a.hpp", "\"base/text.hpp\""), ElementsAre(HasSubstr("not public")));
  EXPECT_THAT(problems("examples/heat2d/a.cpp", "\"base/text.hpp\""), ElementsAre(HasSubstr("what users have")));
}

TEST(StructureRules, SeeAFortranModuleInTheWrongPlace) {
  const auto uses = [](const std::string& path, const std::string& line) { return use_problems({path, line + "\n"}); };
  EXPECT_THAT(uses("src/bindings/fortran/a.f90", "  use kedge_m_engine, only: kedge_engine"), IsEmpty());
  EXPECT_THAT(uses("src/bindings/fortran/a.f90", "  use, intrinsic :: iso_c_binding, only: c_int"), IsEmpty());
  EXPECT_THAT(uses("src/bindings/fortran/mpi_f08.f90", "  use mpi_f08, only: MPI_Comm"), IsEmpty());
  EXPECT_THAT(uses("examples/a/main.f90", "use mpi_f08\n  use kedge"), IsEmpty());
  EXPECT_THAT(uses("src/bindings/fortran/a.f90", "use mpi_f08"), ElementsAre(HasSubstr("no room here")));
  EXPECT_THAT(uses("src/bindings/fortran/a.f90.in", "use, intrinsic :: hdf5"), ElementsAre(HasSubstr("uses hdf5")));
  EXPECT_THAT(uses("examples/a/main.f90", "  use kedge_m_engine"), ElementsAre(HasSubstr("what users have")));
}

TEST(StructureRules, SeeALongFileAStrayNameAndAMissingWord) {
  EXPECT_THAT(length_problems({"src/a.cpp", std::string(400, '\n')}), IsEmpty());
  EXPECT_THAT(length_problems({"src/a.cpp", std::string(401, '\n')}), ElementsAre(HasSubstr("401 lines")));
  EXPECT_THAT(top_level_problems({"src", ".gitignore", "tools"}), ElementsAre(HasSubstr("tools")));
  const std::vector<Source> sources = {{"a", "Id128 commit_id;"}, {"b", "struct LogicalRank {}; // node-local"}};
  EXPECT_THAT(missing_words({"commit id", "logical rank", "node-local", "logical", "log"}, sources),
              ElementsAre("log"));
}

}  // namespace
}  // namespace kedge::structure::structure_test
