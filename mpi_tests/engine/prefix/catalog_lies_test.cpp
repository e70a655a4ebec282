// A catalog of tags, with a right checksum, that says something else than the manifests: what is opened goes by these.
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "base/text.hpp"
#include "checksum/crc32c.hpp"
#include "harness/flush_fixture.hpp"
#include "harness/several_starts.hpp"

namespace kedge::faults::catalog_lies_test {
namespace {

const std::string kCatalog = "/prefix/.kedge/test/tags.jsonl";

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  const auto found = text.find(part);
  EXPECT_NE(found, std::string::npos) << part << " in " << text;
  return found == std::string::npos ? text : text.replace(found, part.size(), by);
}

/// The value of a text field of a line.
std::string field(const std::string& line, const std::string& name) {
  const auto begin = line.find(compose("\"{}\":\"", name)) + name.size() + 4;
  return line.substr(begin, line.find('"', begin) - begin);
}

/// The line with the checksum of what it says now.
std::string sealed(const std::string& line) {
  const std::string said = line.substr(0, line.rfind(",\"crc\":"));
  return compose("{},\"crc\":\"{:08x}\"}}\n", said, crc32c(std::as_bytes(std::span(said))));
}

class CatalogLies : public FlushFixture {
 protected:
  static void write(SimulatedJob& job, const std::string& text) {
    job.disk.write_all(kCatalog, std::as_bytes(std::span(text)));
  }
  /// Another run that goes on from this one's commits.
  static Opened open_as_source(SimulatedJob& job, const Tag& tag) {
    job.options.run = "new";
    job.options.store.path = "/nodes/{node}/new";
    return reopen(job, Source{"/prefix", "test", tag});
  }
};

TEST_F(CatalogLies, AboutTheNumberOfRanks) {
  for (const auto& [saved_by, opened_by] : {std::pair(4, 2), std::pair(2, 4)}) {
    SCOPED_TRACE(saved_by);
    PersistentJob job(saved_by);
    job.options.open.other_ranks = OtherRanks::refuse;
    commit_steps(job, {{"a", 1}});
    lose_stores(job, {0, 1, 2, 3});
    write(job, sealed(replaced(text_of(job, kCatalog), compose("\"world_size\":{}", saved_by),
                               compose("\"world_size\":{}", opened_by))));
    job.ranks = opened_by;
    const std::vector<std::string> parts{"cannot be recovered", compose("was saved by {} ranks", saved_by)};
    for (const Opened& opened : {reopen(job, Tag("a")), open_as_source(job, "a")}) {
      EXPECT_FALSE(opened.tag);
      ASSERT_TRUE(opened.failure);
      EXPECT_EQ(opened.failure->code, ErrorCode::unrecoverable);
      EXPECT_TRUE(says(opened.failure->message, parts)) << opened.failure->message;
    }
  }
}

TEST_F(CatalogLies, AboutTheRun) {
  for (const bool by_name_alone : {false, true}) {
    PersistentJob job(2);
    commit_steps(job, {{"a", 1}});
    job.options.run = "other";
    job.options.store.path = "/nodes/{node}/other";
    commit_steps(job, {{"z", 7}});
    const std::string own = text_of(job, kCatalog);
    const std::string theirs = text_of(job, "/prefix/.kedge/other/tags.jsonl");
    std::string stolen = replaced(theirs, "\"run\":\"other\"", "\"run\":\"test\"");
    if (!by_name_alone) stolen = replaced(stolen, field(stolen, "run_id"), field(own, "run_id"));
    write(job, own + sealed(stolen));
    job.options.run = "test";
    job.options.store.path = "/nodes/{node}";
    EXPECT_EQ(reopen(job).tag, "a");
    EXPECT_EQ(open_as_source(job, "latest").tag, "a");
  }
}

}  // namespace
}  // namespace kedge::faults::catalog_lies_test
